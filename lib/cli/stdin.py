"""Game ids from the command line or stdin, and what becomes of lines that are none."""

import contextlib
import itertools
import os
import select
import stat

from ..store import gid
from ..store.errors import Interrupted, Usage
from . import script
from .signals import stop

_EXAMPLES = 5  # bad lines that are told; the others are counted


class Lines:
    """How many lines of stdin were game ids, and how many something else."""

    def __init__(self):
        self.good = self.bad = 0


def given_ids(arguments):
    """The ids of the command line, normalised; raises Usage naming the first that is none."""
    for text in arguments:
        if not gid.parse(text):
            raise Usage(f"{text!r} is no game id (like 2024010100gm-00a9-0000-0123abcd); nothing was done")
    return [gid.parse(text) for text in arguments]


def ids(arguments, lines):
    """Yield game ids: `arguments` if there are any, else stdin's lines as they come.

    Bad lines of stdin are told on stderr, counted in `lines`, a Lines, and skipped. A signal that `stop` caught ends
    the ids. Raises Usage at once, before any work is done, if an argument is no id.
    """
    return (game for game in ids_as_they_come(arguments, lines) if game or await_stdin())


def ids_as_they_come(arguments, lines):
    """Like `ids`, but yields None, for a moment to do something else, while stdin has nothing to read."""
    return until_stopped(given_ids(arguments) if arguments else _stdin_ids(lines))


def await_stdin():
    """Wait until stdin has something to read, or a signal that `stop` caught has come."""
    with contextlib.suppress(Interrupted), stop.waiting():
        select.select([script.sys.stdin], [], [])


def _stdin_ids(lines):
    if script.sys.stdin.isatty():
        script.say("reading game ids from the terminal, one a line; Ctrl-D ends")
    for line in _stdin_lines():
        found = line and gid.parse(line)
        if found or line is None:
            lines.good += bool(found)
            yield found
        elif line.strip():
            lines.bad += 1
            if lines.bad <= _EXAMPLES:
                script.say(f"{line.strip()[:80]!r} is no game id: skipped")


def _stdin_lines():
    """Stdin's lines, None while there is nothing to read; whatever bytes come, a line of them is just no game id."""
    rest = b""
    while True:
        while not select.select([script.sys.stdin], [], [], 0)[0]:
            yield None
        block = os.read(script.sys.stdin.fileno(), 1 << 16)
        *lines, rest = (rest[:1 << 16] + block).split(b"\n")  # no line without end may fill the memory
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
    """The ids of the command line, or those that come through a pipe or from a file, as `read` yields them; None, for
    all, if `everything` is asked for or stdin is a terminal or /dev/null. A pipe without ids means none, and is told.

    Raises Usage at once if an argument is no id, or all is asked for beside some.
    """
    if arguments and everything:
        raise Usage("--all and game ids: say which")
    if everything or (not arguments and stat.S_ISCHR(os.fstat(script.sys.stdin.fileno()).st_mode)):
        return None
    return read(arguments, lines) if arguments else _or_tell_of_none(read, lines)


def _or_tell_of_none(read, lines):
    yield from read([], lines)
    if not lines.good and not lines.bad:
        script.say("no game ids came through the pipe, so nothing was done; --all means all")


def exit_status(lines, wrong=False):
    """The exit status of a script that has done its work, 1 for `wrong`; tells how many lines of stdin were no ids.

    They stop nothing, but where not one line was an id, stdin was not what is wanted: that is wrong usage.
    """
    if lines.bad:
        script.say(f"{lines.bad} lines were no game ids" + ("" if lines.good else ", and not one was"))
    return 1 if wrong else Usage.status if lines.bad and not lines.good else 0
