"""Settings: the defaults of config.mk, overridden by the environment. Script flags override both."""

import functools
import os
import re

from lib.errors import Usage

_MOST = 10 ** 9  # nothing here is counted, or waited for, beyond it
ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
_LINE = re.compile(r"^(\w+)[ \t]*\?=[ \t]*([^#\n]*?)[ \t]*(?:#.*)?$", re.M)


@functools.cache
def defaults():
    """name -> default, as text, for every knob of config.mk."""
    with open(os.path.join(ROOT, "config.mk"), encoding="utf-8") as f:
        return dict(_LINE.findall(f.read()))


def get(name):
    """The setting as text: the environment's if it says anything there, else config.mk's default."""
    return os.environ.get(name, "").strip() or defaults()[name]


def work():
    """The work directory: $WORK, else the default, which is below the tree wherever the script is called from."""
    return os.environ.get("WORK", "").strip() or os.path.join(ROOT, defaults()["WORK"])


def cores():
    """How many processors this process may use: those of its Slurm job or container, where there is one."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def number(name, kind=int, least=0):
    """The setting as a number, None when empty; raises Usage when it is no number or below `least`."""
    return parse_number(get(name), name, kind, least)


def parse_number(text, name, kind=int, least=0):
    """`text` as a number of `kind`, None when empty; raises Usage naming `name` when it cannot be."""
    if text == "":
        return None
    try:
        value = kind(text)
    except ValueError:
        raise Usage(f"{name}={text}: not a number") from None
    if not least <= value <= _MOST:
        raise Usage(f"{name}={text}: must be a number from {least} to {_MOST}")
    return value
