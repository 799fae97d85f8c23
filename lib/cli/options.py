"""The options that several scripts have; the default of each is its setting."""

import os

from ..store.errors import Usage
from . import helppage, origins, script, settings

STDIN = "without any, those on stdin, one per line"
STDIN_OR_ALL = "without any, those from a pipe or file on stdin; if stdin is neither, all"


def parser(doc, ids=None):
    """A parser whose --help is made of `doc`, with --work, --quiet and, if `ids` says what no ids mean, game ids."""
    p = helppage.Parser(prog=script.PROG, description=doc)
    p.add_argument("--work", metavar="DIR", default=settings.work(), help="work directory (now: %(default)s)")
    p.add_argument("-q", "--quiet", action="store_true", help="print nothing unless something happened or is wrong")
    if ids:
        p.add_argument("ids", nargs="*", metavar="gid", help=f"game ids; {ids}")
    return p


def _setting(p, flag, name, parse, **options):
    """Add `flag`; its value is parse(text, name), its default the setting `name`."""
    setting = settings.get(name)

    # if the flag is absent, argparse parses the default with `type` too, and so finds a bad setting
    p.add_argument(flag, type=lambda text: parse(text, name if text is setting else flag), default=setting, **options)


def knob(p, flag, name, help=""):
    """Add `flag`, a number whose default is the setting `name`."""
    _setting(p, flag, name, lambda text, what: settings.parse_number(text, what, *settings.NUMBERS[name]), metavar="N",
             help=f"{help} (now: {settings.get(name) or 'not set'})")


def layout_knob(p, default, help):
    """Add --layout."""
    layouts = settings.CHOICES["SHARD_LAYOUT"]

    def parse(text):
        if text not in layouts:
            raise Usage(f"layout {text!r}: must be one of {', '.join(layouts)}")
        return text

    p.add_argument("--layout", metavar="NAME", type=parse, default=default,
                   help=f"{help}: {' or '.join(layouts)} (now: {default or 'unchanged'})")


def year_knob(p):
    """Add --year."""
    _setting(p, "--year", "YEAR", settings.parse_year, help=f"the year (now: {settings.get('YEAR') or 'not set'})")


def all_switch(p):
    """Add --all."""
    p.add_argument("--all", action="store_true", help="all games, whatever comes on stdin")


def switch(p, flag, name, help):
    """Add `flag`, whose default is the switch `name`; tell if the environment has that in vain."""
    p.add_argument(flag, action="store_true", default=settings.switch(name), help=help)
    if not os.environ.get("MAKELEVEL"):  # else make has told it
        for line in origins.ignored([name]):
            script.say(line)


def deep_switch(p):
    """Add --deep."""
    switch(p, "--deep", "DEEP", help="also hash every array of every shard")


def session_knobs(p):
    """Add the options of a script that sends requests to the server."""
    knob(p, "--max-refusals", "MAX_REFUSALS", help="stop after this many refusals in a row")
    knob(p, "--delay", "DELAY", help="seconds between requests")
    if_busy(p)


def if_busy(p):
    """Add --if-busy, for script.or_busy."""
    p.add_argument("--if-busy", metavar="STATUS", type=int,
                   help="end with this status, and say nothing, if another process is downloading")
