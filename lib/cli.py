"""What every script in bin/ does alike: find the venv, parse options, read ids, talk, end with the right status.

Only scripts import this module: importing it re-executes a script of bin/ under the tree's .venv, if there is one, so
that scripts work from cron and from any directory with no environment activated.
"""

from lib.stop import run_pid, stop  # noqa: F401  first: from then on Ctrl-C ends a script without a traceback

# isort: split
import contextlib
import itertools
import os
import select
import signal
import stat
import sys

from lib import config, gid, manpage, progress
from lib.errors import Interrupted, Problem, Usage

STDIN = "those on stdin, one a line"
STDIN_OR_ALL = "those that come through a pipe or from a file, else all"
_EXAMPLES = 5  # bad lines that are told; the others are counted
PROG = os.path.basename(sys.argv[0])


class Lines:
    """How many lines of stdin were game ids, and how many something else."""

    def __init__(self):
        self.good = self.bad = 0


def _use_venv():
    venv = os.path.join(config.ROOT, ".venv")
    python = os.path.join(venv, "bin", "python")
    ours = os.path.dirname(os.path.realpath(sys.argv[0])) == os.path.join(config.ROOT, "bin")
    if ours and os.path.exists(python) and os.path.realpath(sys.prefix) != venv and "_TENHOU_VENV" not in os.environ:
        # the variable ends a loop, should this python not know that it lives in a venv
        os.execve(python, [python, *sys.argv], os.environ | {"_TENHOU_VENV": "1"})
    os.environ.pop("_TENHOU_VENV", None)


def _fill_standard_files():
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:  # closed by the caller: the manifest must not get its number
            os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, open(number, "r" if number == 0 else "w"))  # noqa: SIM115


def _tell(kind, error, trace):
    if issubclass(kind, ImportError) and {"-h", "--help"} & set(sys.argv[1:]):
        doc = sys.modules["__main__"].__doc__.strip()
        print(f"{doc}\n\nIts options are told after `make setup` in {config.ROOT}.", flush=True)
        os._exit(0)
    if issubclass(kind, ImportError):
        print(f"{PROG}: {error}; run `make setup` in {config.ROOT} once", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


_use_venv()
_fill_standard_files()
sys.excepthook = _tell  # what a script imports may be missing before it can call `run`


def say(text):
    """One line on stderr, after the program's name."""
    progress.write(f"{PROG}: {text}")


def parser(doc, ids=None):
    """A parser whose --help is made of `doc`, with --work, --quiet, and ids, where `ids` says what none means."""
    p = manpage.Parser(prog=PROG, description=doc)
    p.add_argument("--work", metavar="DIR", default=config.work(), help="work directory (now: %(default)s)")
    p.add_argument("-q", "--quiet", action="store_true", help="say nothing unless something happened or is wrong")
    if ids:
        p.add_argument("ids", nargs="*", metavar="gid", help=f"game ids; none: {ids}")
    return p


def _setting(p, flag, name, parse, **options):
    """Add `flag`, what parse(text, name) makes of it; its default is the setting `name`."""
    setting = config.get(name)

    # argparse runs string defaults through `type` only when the flag is absent, so a bad setting is found here too
    p.add_argument(flag, type=lambda text: parse(text, name if text is setting else flag), default=setting, **options)


def knob(p, flag, name, help=""):
    """Add `flag`, a number whose default is the setting `name`."""
    _setting(p, flag, name, lambda text, what: config.parse_number(text, what, *config.NUMBERS[name]), metavar="N",
             help=f"{help} (now: {config.get(name) or 'none'})")


def layout_knob(p, default, help):
    """Add --layout."""
    layouts = config.CHOICES["SHARD_LAYOUT"]

    def parse(text):
        if text not in layouts:
            raise Usage(f"layout {text!r}: must be one of {', '.join(layouts)}")
        return text

    p.add_argument("--layout", metavar="NAME", type=parse, default=default,
                   help=f"{help}: {' or '.join(layouts)} (now: {default or 'as they are'})")


def year_knob(p):
    """Add --year."""
    _setting(p, "--year", "YEAR", config.parse_year, help=f"the year (now: {config.get('YEAR') or 'none'})")


def deep_switch(p):
    """Add --deep."""
    p.add_argument("--deep", action="store_true", default=config.switch("DEEP"),
                   help="hash every array of every shard too")


def session_knobs(p):
    """Add the options of a script that asks the server."""
    knob(p, "--max-refusals", "MAX_REFUSALS", help="refusals in a row after which to stop")
    knob(p, "--delay", "DELAY", help="seconds between requests")


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
    return (game for game in ids_as_they_come(arguments, lines) if game or _await_stdin())


def ids_as_they_come(arguments, lines):
    """Like `ids`, but yields None, for a moment to do something else, while stdin has nothing to read."""
    return until_stopped(given_ids(arguments) if arguments else _stdin_ids(lines))


def _await_stdin():
    with contextlib.suppress(Interrupted), stop.waiting():
        select.select([sys.stdin], [], [])


def _stdin_ids(lines):
    if sys.stdin.isatty():
        say("reading game ids from the terminal, one a line; Ctrl-D ends")
    for line in _stdin_lines():
        found = line and gid.parse(line)
        if found or line is None:
            lines.good += bool(found)
            yield found
        elif line.strip():
            lines.bad += 1
            if lines.bad <= _EXAMPLES:
                say(f"{line.strip()[:80]!r} is no game id: skipped")


def _stdin_lines():
    """Stdin's lines, None while there is nothing to read; whatever bytes come, a line of them is just no game id."""
    rest = b""
    while True:
        while not select.select([sys.stdin], [], [], 0)[0]:
            yield None
        block = os.read(sys.stdin.fileno(), 1 << 16)
        *lines, rest = (rest[:1 << 16] + block).split(b"\n")  # no line without end may fill the memory
        yield from (line.decode(errors="replace") for line in lines)
        if not block:
            yield rest.decode(errors="replace")
            return


def until_stopped(things):
    """Yield from `things` until a signal that `stop` caught has come."""
    yield from itertools.takewhile(lambda _: not stop.signum, things)


def stdin_is_pipe():
    """True if stdin is a pipe."""
    return stat.S_ISFIFO(os.fstat(sys.stdin.fileno()).st_mode)


def stdin_is_file():
    """True if stdin is a file on disk: it can be read to its end before the work begins."""
    return stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode)


def ids_or_all(arguments, lines):
    """The ids of the command line or of a pipe, as `ids` yields them; None, for all, when there are none.

    An empty pipe means all too: that is what cron gives a command as its stdin.
    """
    mode = os.fstat(sys.stdin.fileno()).st_mode
    if arguments or not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode)):
        return ids(arguments, lines) if arguments else None
    found = ids([], lines)
    first = next(found, None)
    return None if first is None and not lines.bad else itertools.chain([first] if first else [], found)


def status(lines, wrong=False):
    """The exit status of a script that has done its work, 1 for `wrong`; tells how many lines of stdin were no ids.

    They stop nothing, but where not one line was an id, stdin was not what is wanted: that is wrong usage.
    """
    if lines.bad:
        say(f"{lines.bad} lines were no game ids" + ("" if lines.good else ", and not one was"))
    return 1 if wrong else Usage.status if lines.bad and not lines.good else 0


def total(name, n):
    """One line of a table of totals, on stderr, without the program's name."""
    print(f"{name} : {n}", file=sys.stderr, flush=True)


def tell_bad_lines(manifest):
    """A line on stderr if the manifest has lines that are no records."""
    if manifest.bad:
        say(f"{manifest.path}: {len(manifest.bad)} lines are no records (the first: line {manifest.bad[0]});"
            " they are passed over; `make recover` drops them, and keeps the old file beside the new one")


def run(main):
    """Run `main()` and exit with its status; errors that input, network or disk cause become one line on stderr."""
    try:
        status = main() or 0
        sys.stdout.flush()
        status = 128 + stop.signum if stop.signum else status
    except Problem as e:
        say(e)
        status = e.status
    except BrokenPipeError:  # whoever read our stdout has had enough
        status = 128 + signal.SIGPIPE
    except Interrupted:
        status = 128 + stop.signum
    except OSError as e:
        say(f"{e.filename or ''}: {e.strerror or e}".removeprefix(": "))
        status = 1
    with contextlib.suppress(OSError):
        sys.stdout.flush()  # what was printed before an error
    os._exit(status)  # taking a large manifest apart piece by piece would only cost time
