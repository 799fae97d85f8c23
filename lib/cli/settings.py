"""Settings: the environment overrides the defaults of config.mk, and the flags of a script override both. Of switches
see lib/cli/origins.py.

This module knows which values each setting may have.
"""

import datetime
import difflib
import functools
import os
import re
import shlex
import urllib.parse

from ..store import config
from ..store.errors import Usage
from . import origins

NUMBERS = {"MAX_NEW": (int, 0), "DELAY": (float, 0), "TIMEOUT": (float, 0.01), "MAX_REFUSALS": (int, 1),
           "SHARD_ROWS": (int, 1), "JUDGE": (int, 1), "JOBS": (int, 1), "PIECE": (int, 1)}  # type, smallest value
CHOICES = {"SHARD_LAYOUT": ("dense", "parquet"), "DISTRIBUTE": ("local", "parallel", "slurm"),
           **dict.fromkeys(origins.SWITCHES, ("", "0", "1"))}
NAMES = {"PYTHON", "WORK", "YEAR", "IDS", "FROM", "ROOMS", "TENHOU_URL", "USER_AGENT", "HOSTS", "SBATCH", *NUMBERS,
         *CHOICES}
JAPAN = datetime.timezone(datetime.timedelta(hours=9))  # Tenhou's clock
MIN_DELAY = 1  # seconds, for every server but one on this machine
_MOST = 10 ** 9  # the largest number that a setting may be
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
_OPTIONAL = {"YEAR", "IDS", "FROM", "MAX_NEW", "JOBS", "HOSTS", "SBATCH", *origins.SWITCHES}
_ALIKE = 0.8  # as difflib measures it: MAXNEW is meant to be MAX_NEW, MY_NAS is a variable of the user's own
_ODD = "$ ' \" ` \\ ; & | < > ( ) { } [ ] * ? ! : % = ~ #"  # they mean something to make or to a shell


@functools.cache
def knobs():
    """name -> (default, what it is), as texts, of every setting, in the order of config.mk.

    Raises Usage if config.mk lacks one, or sets something whose name looks like one that is misspelt."""
    found = config.read(ROOT)
    for name in found.keys() - NAMES:
        if meant := difflib.get_close_matches(name.upper(), NAMES, 1, _ALIKE):
            raise Usage(f"config.mk, line {found[name][2]}: {name} is not a setting; {meant[0]} is one")
    for name in sorted(NAMES - found.keys()):
        raise Usage(f"config.mk has no line that sets {name}; put it back: {name} ?= and its value")
    return {name: more[:2] for name, more in found.items() if name in NAMES}


def defaults():
    """name -> default, as text, of every setting. Raises Usage as `knobs`."""
    return {name: default for name, (default, _) in knobs().items()}


def get(name):
    """The setting as text: from the environment if it is set there, else the default of config.mk. One of _OPTIONAL may
    be emptied on make's command line."""
    text = origins.value(name)
    return text if text or (name in _OPTIONAL and name in origins.on_make_line()) else defaults()[name]


def work():
    """The work directory: $WORK, else the default. The default counts from the tree, not from the current directory."""
    return os.environ.get("WORK", "").strip() or os.path.join(ROOT, defaults()["WORK"])


def cores():
    """How many processors this process may use; in a Slurm job or a container, only those that it was given."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def number(name):
    """The setting as a number, None if empty. Raises Usage if the value is not allowed."""
    return parse_number(get(name), name, *NUMBERS[name])


def parse_number(text, name, kind=int, least=0):
    """`text` as a number of type `kind`, None if empty. Raises Usage, which names `name`, if the value is not
    allowed."""
    if text == "":
        return None
    try:
        value = kind(text)
    except ValueError:
        raise Usage(f"{name}={text}: must be a {'whole ' if kind is int else ''}number") from None
    if not least <= value <= _MOST:
        raise Usage(f"{name}={text}: must be a number from {least} to {_MOST}")
    return value


def choice(name):
    """The setting, one of CHOICES[name]. Raises Usage if it is something else."""
    text = get(name)
    if text not in CHOICES[name]:
        raise Usage(f"{name}={text}: must be {' or '.join(text or 'empty' for text in CHOICES[name])}")
    return text


def switch(name):
    """True if the setting is 1, False if it is 0 or empty. Raises Usage for anything else."""
    return choice(name) == "1"


def parse_year(text, name="YEAR"):
    """`text` as a year that has begun, None if empty. Raises Usage, which names `name`, for anything else."""
    if text == "":
        return None
    if not re.fullmatch("20[0-9]{2}", text):
        raise Usage(f"{name}={text}: must be a year like 2024")
    if int(text) > datetime.datetime.now(JAPAN).year:
        raise Usage(f"{name}={text} has not begun yet")
    return int(text)


def parse_rooms(text, name="ROOMS"):
    """The table types in `text`, in its order, in small letters. Raises Usage, which names `name`, for anything
    else."""
    rooms = text.lower().replace(",", " ").split()
    if not all(re.fullmatch("[0-9a-f]{4}", room) for room in rooms):
        raise Usage(f"{name}={text}: must be table types of four hex digits, like 00a9")
    return rooms


def server(delay):
    """(address, host) of the server. Raises Usage if TENHOU_URL is not an address, or `delay` seconds are too few."""
    base = get("TENHOU_URL").rstrip("/")
    try:
        parts = urllib.parse.urlsplit(base)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not re.fullmatch(r"https?://[!-~]+", base) or not host:
        raise Usage(f"TENHOU_URL={base}: must be an http or https address")
    if delay < MIN_DELAY and host not in ("127.0.0.1", "localhost", "::1"):
        raise Usage(f"DELAY={delay:g}: must be at least {MIN_DELAY} second for a server on another machine")
    return base, host


def user_agent():
    """The name under which we send requests. Raises Usage if an HTTP header cannot contain it."""
    if not re.fullmatch("[ -~]+", get("USER_AGENT")):
        raise Usage(f"USER_AGENT={get('USER_AGENT')}: must be ASCII text in one line")
    return get("USER_AGENT")


def sbatch():
    """The options for sbatch as words. Raises Usage if a quote is not closed."""
    try:
        return shlex.split(get("SBATCH"))
    except ValueError as e:
        raise Usage(f"SBATCH={get('SBATCH')}: {e}") from None


def parse_path(text, name):
    """`text` as a path. Raises Usage, which names `name`, if it has a character that means something to make or to a
    shell."""
    if not text:
        raise Usage(f"{name}='': must be a path")
    if "~" in text:
        raise Usage(f"{name}='{text}': write the path without ~")
    if not set(text).isdisjoint(f"{_ODD}\t\n"):
        raise Usage(f"{name}='{text}': must not contain spaces or any of {_ODD}")
    return text


def check():
    """Raise Usage for the first setting, in the order of config.mk, whose value is not allowed."""
    for name in defaults():
        text = get(name)
        if name in NUMBERS:
            number(name)
        elif name in CHOICES:
            choice(name)
        elif name == "YEAR":
            parse_year(text)
        elif name == "ROOMS":
            parse_rooms(text)
        elif name == "SBATCH":
            sbatch()
        elif name == "WORK" or (name == "IDS" and text):
            parse_path(text, name)
    if get("IDS") and not os.path.exists(get("IDS")):
        raise Usage(f"IDS={get('IDS')}: no such file")
    if os.path.isdir(get("IDS")):
        raise Usage(f"IDS={get('IDS')}: must be a file with ids or links, not a folder")
    if get("DISTRIBUTE") == "parallel" and not get("HOSTS").strip(","):
        raise Usage("HOSTS is empty: name the machines, e.g. HOSTS=alpha,beta")
    server(number("DELAY"))
    user_agent()
