"""How messages put things: so many of something, and a command that can be pasted."""

import functools
import os
import shlex

from . import config

CALLED_IN = "CALLED_IN"
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))


def count(n, noun):
    """So many of something: '1 game', '2 games'."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def without_rows(n, whose=""):
    """That so many games wait for their logs; whose: more about these games."""
    has, logs = ("has", "its log is") if n == 1 else ("have", "their logs are")
    return f"{count(n, 'game')}{whose} {has} no rows until {logs} downloaded again"


def make(work, words):
    """The command `make <words>` for a work directory, to be pasted where the user is. It stands last on its line."""
    there = "" if _is_here() else f"-C {shlex.quote(_ROOT)} "
    return f"make {there}{words}" + ("" if is_default(work) else f" WORK={_path(work)}")


def script(work, words):
    """The same for a script of bin/."""
    if _is_here():
        return f"bin/{words}" + ("" if is_default(work) else f" --work {_path(work)}")
    # unlike make, a script takes paths from where the user is
    return f"{shlex.quote(_ROOT)}/bin/{words}" + (
        "" if is_default(work) else f" --work {shlex.quote(os.path.abspath(work))}")


def called_in():
    """Where the user is. make tells it in CALLED_IN, because -C takes its scripts into the tree; so does distribute."""
    return os.environ.get(CALLED_IN) or os.getcwd()


def _is_here():
    """True if the user is in this tree, or has it only as a package, without a Makefile."""
    try:
        return _default() is None or os.path.samefile(called_in(), _ROOT)
    except OSError:
        return False


def is_default(work):
    """True if make and the scripts take this work directory when they are not told which."""
    taken = os.environ.get("WORK", "").strip() or _default()
    return _default() is not None and _whole(_default()) == _whole(taken) == os.path.abspath(work)


@functools.cache
def _default():
    """The work directory of config.mk; None where there is no config.mk, in the package that pip installs."""
    try:
        return config.read(_ROOT).get("WORK", [""])[0]
    except FileNotFoundError:
        return None


def _whole(path):
    return os.path.normpath(os.path.join(_ROOT, path))


def _path(work):
    """A work directory as make reads it, whose paths count from this tree."""
    path = os.path.abspath(work)
    return shlex.quote(os.path.relpath(path, _ROOT) if path.startswith(_ROOT + os.sep) else path)
