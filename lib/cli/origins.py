"""Where a setting's value comes from: make's command line, the environment, config.mk.

A cluster, or another tool, may export REPAIR or JOBS and mean something of its own. So a setting that the environment
has is told, and a switch counts there only under a name of ours.
"""

import os
import re

# Those that change, delete or fetch what a run would leave alone, or take hours; SHARD_LAYOUT converts shards that are
# there only if make's command line has it.
SWITCHES = "REPAIR", "RETRY", "DEEP", "OUTDATED"


def given(makeflags):
    """name -> value, as it was written, of the variables of make's command line, which MAKEFLAGS ends with."""
    _, dashes, words = f" {makeflags}".partition(" -- ")
    found = {}
    for word in re.findall(r"(?:\\.|[^\s\\])+", words) if dashes else []:
        name, _, value = re.sub(r"\\(.)", r"\1", word).partition("=")
        found[name.rstrip(":+?")] = value.replace("$$", "$").strip()
    return found


def on_make_line():
    """As `given`, of the make that started this process; nothing if none did."""
    return given(os.environ.get("MAKEFLAGS", "")) if os.environ.get("MAKELEVEL") else {}


def key(name):
    """Under which name the environment may have a setting."""
    return f"PAIPU_{name}" if name in SWITCHES else name


def value(name):
    """A setting's value as text, '' if only config.mk has one."""
    line = on_make_line() if name in SWITCHES else {}  # the others of its command line make exports
    return line[name] if name in line else os.environ.get(key(name), "").strip()


def environment(defaults):
    """name -> value of what the environment has of the settings `defaults`, name -> value, where it differs from them
    and counts."""
    line = on_make_line()
    found = {}
    for name, default in defaults.items():
        text = os.environ.get(key(name), "").strip()
        if name not in line and text not in ("", default):
            found[key(name)] = text
    return found


def ignored(names=SWITCHES):
    """Yield a line about each of these switches that the environment turns on under its plain name."""
    line = on_make_line()
    for name in names:
        text = os.environ.get(name, "").strip()
        if name not in line and text not in ("", "0"):
            yield (f"{name}={ascii(text)[1:-1]} in the environment is ignored: "
                   f"there it has to be {key(name)}=1, or call make with {name}=1")
