"""What every script in bin/ does alike: find the venv, talk on stderr, end with the right status.

Only scripts import this module: importing it re-executes a script of bin/ under the tree's .venv, if there is one, so
that scripts work from cron and from any directory with no environment activated.
"""

# first: from then on Ctrl-C ends a script without a traceback
from .signals import stop

# isort: split
import contextlib
import fcntl
import os
import signal
import sys

from ..store.errors import Interrupted, Problem
from . import helppage, progress, settings

PROG = os.path.basename(sys.argv[0])


def _use_venv():
    venv = os.path.realpath(os.path.join(settings.ROOT, ".venv"))  # a link: `make setup` may move it on while we work
    python = os.path.join(venv, "bin", "python")
    ours = os.path.dirname(os.path.realpath(sys.argv[0])) == os.path.join(settings.ROOT, "bin")
    if ours and os.path.exists(python) and os.path.realpath(sys.prefix) != venv and "_TENHOU_VENV" not in os.environ:
        # the variable ends a loop, should this python not know that it lives in a venv
        os.execve(python, [python, *sys.argv], os.environ | {"_TENHOU_VENV": "1"})
    os.environ.pop("_TENHOU_VENV", None)


def _fill_standard_files():
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:  # closed by the caller: the manifest must not get its number
            os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, open(number, "r" if number == 0 else "w"))  # noqa: SIM115
    # data is UTF-8 in every locale, and the bytes of a file's name are passed on as they are
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
    sys.stderr.reconfigure(errors="backslashreplace")


def _hold_venv():
    """Keep `make setup` from removing this venv as long as the script is at work."""
    with contextlib.suppress(OSError):  # a Python that is no venv of ours
        fcntl.flock(os.open(os.path.join(sys.prefix, ".in-use"), os.O_RDONLY | os.O_CLOEXEC), fcntl.LOCK_SH)


def _tell(kind, error, trace):
    if issubclass(kind, ImportError) and {"-h", "--help"} & set(sys.argv[1:]):
        doc = helppage.script_doc().strip()
        print(f"{doc}\n\nIts options are told after `make setup` in {settings.ROOT}.", flush=True)
        os._exit(0)
    if issubclass(kind, ImportError):
        print(f"{PROG}: {error}; run `make setup` in {settings.ROOT} once", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


_use_venv()
_fill_standard_files()
_hold_venv()
sys.excepthook = _tell  # what a script imports may be missing before it can call `run`


def say(text):
    """One line on stderr, after the program's name."""
    progress.write(f"{PROG}: {text}")


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
