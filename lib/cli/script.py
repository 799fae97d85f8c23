"""What every script in bin/ does: find the venv, print messages on stderr, end with the right status.

Only scripts import this module: importing it re-executes a script of bin/ under the tree's .venv, if there is one, so
that scripts work from cron and from any directory with no environment activated.
"""

# first: from then on Ctrl-C ends a script without a traceback
from .signals import stop

# isort: split
import contextlib
import errno
import fcntl
import os
import signal
import sys

from ..store import workdir
from ..store.errors import Busy, Interrupted, Problem
from ..store.wording import count, make
from . import helppage, progress, settings

PROG = os.path.basename(sys.argv[0])


def _use_venv():
    venv = os.path.realpath(os.path.join(settings.ROOT, ".venv"))  # a link, which `make setup` may change while we work
    python = os.path.join(venv, "bin", "python")
    ours = os.path.dirname(os.path.realpath(sys.argv[0])) == os.path.join(settings.ROOT, "bin")
    if ours and os.path.exists(python) and os.path.realpath(sys.prefix) != venv and "_TENHOU_VENV" not in os.environ:
        # the variable ends a loop if this python does not know that it is in a venv
        os.execve(python, [python, *sys.argv], os.environ | {"_TENHOU_VENV": "1"})
    os.environ.pop("_TENHOU_VENV", None)


def _fill_standard_files():
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:  # the caller closed it: no other file may get its number
            os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, open(number, "r" if number == 0 else "w"))  # noqa: SIM115
    # data is UTF-8 in every locale, and the bytes of a file's name are passed on as they are
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
    sys.stderr.reconfigure(errors="backslashreplace")


def _hold_venv():
    """Keep `make setup` from removing this venv while the script is at work."""
    with contextlib.suppress(OSError):  # a Python outside our venvs
        fcntl.flock(os.open(os.path.join(sys.prefix, ".in-use"), os.O_RDONLY | os.O_CLOEXEC), fcntl.LOCK_SH)


def _tell(kind, error, trace):
    if issubclass(kind, ImportError) and {"-h", "--help"} & set(sys.argv[1:]):
        doc = helppage.script_doc().strip()
        print(f"{doc}\n\nTo see its options, run `make setup` in {settings.ROOT} first.", flush=True)
        os._exit(0)
    if issubclass(kind, ImportError):
        print(f"{PROG}: {error}; to install what is missing: make -C {settings.ROOT} setup", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


_use_venv()
_fill_standard_files()
_hold_venv()
sys.excepthook = _tell  # a package that a script imports may be missing


def say(text, news=True):
    """Print a line on stderr, after the program's name. news: if it is still true, the next run has to tell it too."""
    progress.write(f"{PROG}: {text}")
    if news and "IN_RUN" in os.environ:
        note_news(settings.work())


def note_news(work):
    """Let nobody take the run that is at work for one that had nothing to tell."""
    with contextlib.suppress(OSError):
        os.unlink(workdir.path(work, workdir.NO_NEWS))


def total(name, n):
    """Print a line of a table of totals on stderr, without the program's name."""
    print(f"{name} : {n}", file=sys.stderr, flush=True)


def tell_bad_lines(manifest):
    """Print a line on stderr if the manifest has lines that are not records."""
    if manifest.bad:
        say(f"{manifest.path}: skipped {count(len(manifest.bad), 'line')} without a valid record (first: line "
            f"{manifest.bad[0]}); to drop them and keep the old file: "
            f"{make(os.path.dirname(manifest.path), 'recover')}")


def or_busy(args, main):
    """The result of `main(args)`. If it needs a lock that another process holds, say nothing and return --if-busy, if
    that was given."""
    try:
        return main(args)
    except Busy:
        if args.if_busy is None:
            raise
        note_news(args.work)  # what was not done now the next run has to do, even if nothing changes until then
        return args.if_busy


def run(main):
    """Run `main()` and exit with its status. An error that input, network or disk cause becomes one line on stderr."""
    try:
        status = main() or 0
        sys.stdout.flush()
        status = 128 + stop.signum if stop.signum else status
    except Problem as e:
        say(e)
        status = e.status
    except BrokenPipeError:  # the reader of our stdout has stopped reading
        status = 128 + signal.SIGPIPE
    except Interrupted:
        status = 128 + stop.signum
    except OSError as e:
        full = e.filename and e.errno in (errno.ENOSPC, errno.EDQUOT)  # a file of ours, not what stdout leads to
        what = "; what was finished is safe: free some space, then run the same command again" if full else ""
        say(f"{e.filename or ''}: {e.strerror or e}{what}".removeprefix(": "))
        status = 1
    with contextlib.suppress(OSError):
        sys.stdout.flush()  # what was printed before an error
    os._exit(status)  # freeing a large manifest object by object would only cost time
