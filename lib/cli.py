"""What every script in bin/ does alike: find the venv, parse options, read ids, talk, end with the right status.

Only scripts import this module: importing it re-executes a script of bin/ under the tree's .venv, if there is one, so
that scripts work from cron and from any directory with no environment activated.
"""

import argparse
import os
import signal
import sys

from lib import config, gid
from lib.errors import Problem, Usage

PROG = os.path.basename(sys.argv[0])


def _use_venv():
    venv = os.path.join(config.ROOT, ".venv")
    python = os.path.join(venv, "bin", "python")
    ours = os.path.dirname(os.path.realpath(sys.argv[0])) == os.path.join(config.ROOT, "bin")
    if ours and os.path.exists(python) and os.path.realpath(sys.prefix) != venv and "_TENHOU_VENV" not in os.environ:
        # the variable ends a loop, should this python not know that it lives in a venv
        os.execve(python, [python, *sys.argv], os.environ | {"_TENHOU_VENV": "1"})
    os.environ.pop("_TENHOU_VENV", None)


_use_venv()


def say(text):
    """One line on stderr, after the program's name."""
    print(f"{PROG}: {text}", file=sys.stderr, flush=True)


def parser(doc, ids=False):
    """An ArgumentParser whose --help is `doc`, with --work, --quiet and, if asked for, ids as arguments."""
    p = argparse.ArgumentParser(prog=PROG, description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--work", metavar="DIR", default=config.get("WORK"), help="work directory (now: %(default)s)")
    p.add_argument("-q", "--quiet", action="store_true", help="say nothing unless something happened or is wrong")
    if ids:
        p.add_argument("ids", nargs="*", metavar="gid", help="game ids; none: read them from stdin, one a line")
    return p


def knob(p, flag, name, kind=int, least=0, help=""):
    """Add `flag`, a number whose default is the setting `name`."""

    def parse(text):
        return config.parse_number(text, flag, kind, least)

    # argparse runs string defaults through `type` only when the flag is absent, so a bad setting is found here too
    p.add_argument(flag, metavar="N", type=parse, default=config.get(name),
                   help=f"{help} (now: {config.get(name) or 'none'})")


def given_ids(arguments):
    """The ids of the command line, normalised; raises Usage naming the first that is none."""
    for text in arguments:
        if not gid.parse(text):
            raise Usage(f"{text!r} is no game id (like 2024010100gm-00a9-0000-0123abcd); nothing was done")
    return [gid.parse(text) for text in arguments]


def ids(arguments, refused):
    """Yield game ids: `arguments` if there are any, else stdin's lines as they come.

    Bad lines of stdin are told on stderr, appended to the list `refused` and skipped.
    """
    if arguments:
        yield from given_ids(arguments)
        return
    if sys.stdin.isatty():
        say("reading game ids from the terminal, one a line; Ctrl-D ends")
    for line in sys.stdin:
        found = gid.parse(line)
        if found:
            yield found
        elif line.strip():
            refused.append(line)
            say(f"{line.strip()[:80]!r} is no game id: skipped")


def run(main):
    """Run `main()` and exit with its status; errors that input, network or disk cause become one line on stderr."""
    try:
        status = main() or 0
        sys.stdout.flush()
    except Problem as e:
        say(e)
        status = e.status
    except BrokenPipeError:
        # whoever read our stdout has had enough; point it elsewhere so that the interpreter's own flush is quiet
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        status = 130
    except ImportError as e:
        say(f"{e}; run `make setup` in {config.ROOT} once")
        status = 1
    except OSError as e:
        say(f"{e.filename or ''}: {e.strerror or e}".removeprefix(": "))
        status = 1
    sys.exit(status)
