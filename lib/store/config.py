"""config.mk as make reads it: the settings with their defaults. Lines of make that set nothing are not looked at."""

import os
import re

# `?=`, `=`, `:=`, `::=`, `:::=` and `+=`; a line that begins with a tab belongs to a rule
_LINE = re.compile(r"^ *(?:export[ \t]+)?(\w+)[ \t]*(\?|\+|:{0,3})=[ \t]*([^#\n]*?)[ \t]*(?:#[ \t]*(.*))?$", re.M)


def read(root):
    """name -> (default, what it is, number of its line), as texts and a number, of all that config.mk sets, in its
    order. Of several lines the last with `=` counts, or else the first with `?=`. Raises OSError."""
    with open(os.path.join(root, "config.mk"), encoding="utf-8") as f:
        text = f.read()
    found = {}
    for line in _LINE.finditer(text):
        name, how, value, what = line.groups("")
        before = found.get(name, ("", "", 0))
        if how == "?" and name in found:
            continue
        if how == "+":
            value = f"{before[0]} {value}".strip()
        found[name] = value, what or before[1], text.count("\n", 0, line.start()) + 1
    return found
