"""The options that several scripts have, each with its setting as the default."""

import os

from ..store.errors import Usage
from . import helppage, origins, script, settings

STDIN = "those on stdin, one a line"
STDIN_OR_ALL = "those that come through a pipe or from a file; if stdin is neither, all"


def parser(doc, ids=None):
    """A parser whose --help is made of `doc`, with --work, --quiet, and ids, where `ids` says what none means."""
    p = helppage.Parser(prog=script.PROG, description=doc)
    p.add_argument("--work", metavar="DIR", default=settings.work(), help="work directory (now: %(default)s)")
    p.add_argument("-q", "--quiet", action="store_true", help="say nothing unless something happened or is wrong")
    if ids:
        p.add_argument("ids", nargs="*", metavar="gid", help=f"game ids; none: {ids}")
    return p


def _setting(p, flag, name, parse, **options):
    """Add `flag`, what parse(text, name) makes of it; its default is the setting `name`."""
    setting = settings.get(name)

    # argparse runs string defaults through `type` only when the flag is absent, so a bad setting is found here too
    p.add_argument(flag, type=lambda text: parse(text, name if text is setting else flag), default=setting, **options)


def knob(p, flag, name, help=""):
    """Add `flag`, a number whose default is the setting `name`."""
    _setting(p, flag, name, lambda text, what: settings.parse_number(text, what, *settings.NUMBERS[name]), metavar="N",
             help=f"{help} (now: {settings.get(name) or 'none'})")


def layout_knob(p, default, help):
    """Add --layout."""
    layouts = settings.CHOICES["SHARD_LAYOUT"]

    def parse(text):
        if text not in layouts:
            raise Usage(f"layout {text!r}: must be one of {', '.join(layouts)}")
        return text

    p.add_argument("--layout", metavar="NAME", type=parse, default=default,
                   help=f"{help}: {' or '.join(layouts)} (now: {default or 'as they are'})")


def year_knob(p):
    """Add --year."""
    _setting(p, "--year", "YEAR", settings.parse_year, help=f"the year (now: {settings.get('YEAR') or 'none'})")


def all_switch(p):
    """Add --all."""
    p.add_argument("--all", action="store_true", help="all games, whatever stdin is")


def switch(p, flag, name, help):
    """Add `flag`, whose default is the switch `name`; tell if the environment has that in vain."""
    p.add_argument(flag, action="store_true", default=settings.switch(name), help=help)
    if not os.environ.get("MAKELEVEL"):  # else make has told it
        for line in origins.ignored([name]):
            script.say(line)


def deep_switch(p):
    """Add --deep."""
    switch(p, "--deep", "DEEP", help="hash every array of every shard too")


def session_knobs(p):
    """Add the options of a script that asks the server."""
    knob(p, "--max-refusals", "MAX_REFUSALS", help="refusals in a row after which to stop")
    knob(p, "--delay", "DELAY", help="seconds between requests")
