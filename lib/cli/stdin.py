"""Game ids from the command line or from stdin, where other lines are skipped and counted."""

import contextlib
import itertools
import os
import select
import stat

from ..store import gid
from ..store.errors import Interrupted, Usage
from ..store.wording import count
from . import script
from .signals import stop

_EXAMPLES = 5  # bad lines that are printed; the others are only counted


class Lines:
    """How many lines of stdin were game ids (good), and how many were something else (bad)."""

    def __init__(self):
        self.good = self.bad = 0


def given_ids(arguments):
    """The ids of the command line, normalised. Raises Usage for the first that is not an id."""
    for text in arguments:
        if not gid.parse(text):
            raise Usage(f"{text!r} is not a game id (like 2024010100gm-00a9-0000-0123abcd); nothing was done")
    return [gid.parse(text) for text in arguments]


def ids(arguments, lines):
    """Yield game ids: `arguments` if there are any, else stdin's lines as they come.

    Bad lines of stdin are skipped, printed on stderr, and counted in `lines`, a Lines. A signal that `stop` caught ends
    the ids. Raises Usage at once, before any work is done, if an argument is not an id.
    """
    return (game for game in ids_as_they_come(arguments, lines) if game or await_stdin())


def ids_as_they_come(arguments, lines):
    """Like `ids`, but yields None while stdin has nothing to read, so that the caller can do something else."""
    return until_stopped(given_ids(arguments) if arguments else _stdin_ids(lines))


def await_stdin():
    """Wait until there is something to read on stdin, or a signal comes that `stop` catches."""
    with contextlib.suppress(Interrupted), stop.waiting():
        select.select([script.sys.stdin], [], [])


def _stdin_ids(lines):
    if script.sys.stdin.isatty():
        script.say("type game ids, one per line; Ctrl-D ends")
    for line in _stdin_lines():
        line = line and line.lstrip("\ufeff")  # as some editors of Windows begin a file
        found = line and gid.parse(line)
        if found or line is None:
            lines.good += bool(found)
            yield found
        elif line.strip():
            lines.bad += 1
            if lines.bad <= _EXAMPLES:
                script.say(f"{line.strip()[:80]!r} is not a game id; skipped")


def _stdin_lines():
    """Yield stdin's lines, and None while there is nothing to read. Bytes that are not UTF-8 raise no error: such a
    line is just not a game id."""
    rest = b""
    while True:
        while not select.select([script.sys.stdin], [], [], 0)[0]:
            yield None
        block = os.read(script.sys.stdin.fileno(), 1 << 16)
        *lines, rest = (rest[:1 << 16] + block).split(b"\n")  # an endless line must not fill the memory
        yield from (line.decode(errors="replace") for line in lines)
        if not block:
            yield rest.decode(errors="replace")
            return


def until_stopped(things):
    """Yield from `things` until a signal that `stop` caught has come."""
    yield from itertools.takewhile(lambda _: not stop.signum, things)


def is_pipe():
    """True if stdin is a pipe."""
    return stat.S_ISFIFO(os.fstat(script.sys.stdin.fileno()).st_mode)


def is_file():
    """True if stdin is a file on disk: it can be read to its end before the work begins."""
    return stat.S_ISREG(os.fstat(script.sys.stdin.fileno()).st_mode)


def ids_or_all(arguments, lines, everything=False, read=ids):
    """The ids of the command line, or those that come through a pipe or from a file, as `read` yields them. None, which
    means all, with `everything`, or if stdin is a terminal or /dev/null. A pipe without ids means no ids; then a line
    on stderr says so.

    Raises Usage at once if an argument is not an id, or if there are ids beside `everything`.
    """
    if arguments and everything:
        raise Usage("use either --all or game ids, not both")
    if everything or (not arguments and stat.S_ISCHR(os.fstat(script.sys.stdin.fileno()).st_mode)):
        return None
    return read(arguments, lines) if arguments else _or_tell_of_none(read, lines)


def _or_tell_of_none(read, lines):
    yield from read([], lines)
    if not lines.good and not lines.bad:
        script.say("no game ids came on stdin, so nothing was done; for all games use --all")


def exit_status(lines, wrong=False):
    """The exit status of a script that has done its work, 1 for `wrong`; prints how many lines of stdin were not ids.

    Such lines stop nothing. But if no line at all was an id, stdin was not a list of ids: that is wrong usage.
    """
    if lines.bad and lines.good:
        script.say(f"skipped {count(lines.bad, 'line')} without a game id")
    elif lines.bad:
        which = "the only line is not" if lines.bad == 1 else f"none of the {lines.bad} lines is"
        script.say(f"{which} a game id")
    return 1 if wrong else Usage.status if lines.bad and not lines.good else 0
