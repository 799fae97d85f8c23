"""What make was called with: settings and targets, checked before anything is done.

`python3 -m lib.cli.makeline` does it, as the first step of each target, and tells which settings the environment has
(with --quiet only those that it has in vain); with `help` it lists targets and settings instead.
"""

import os
import re
import shlex
import sys

from ..store import wording
from ..store.errors import Problem, Usage
from . import origins, settings

# variables that make accepts on its command line although config.mk does not have them
_OTHERS = {"RUN_PID", "LAYOUT", "TORTURE", "TORCH", "PYTEST_ARGS", "PARALLEL_SSH", "MAKEFLAGS", "SHELL", "TMPDIR",
           "http_proxy", "https_proxy", "no_proxy"}
# targets that need a work directory and do not make one
_INSIDE = {"check", "status", "watch", "report", "export-mjai", "rebuild-index", "compact", "convert", "recover",
           "purge", "train-demo"}
_WHAT = "YEAR", "IDS", "FROM", "MAX_NEW", "REPAIR", "OUTDATED", "LAYOUT"  # settings that say what make is to do


def called():
    """The command line of the make that started this script, as far as it says what is done: `make run YEAR=2024`; ''
    if none did."""
    found = origins.on_make_line()
    words = (f"{name}={found[name]}" for name in _WHAT if found.get(name))
    return shlex.join(["make", *goals(), *words]) if os.environ.get("MAKELEVEL") and goals() else ""


def targets():
    """name -> what it does, of the targets of the Makefile."""
    with open(os.path.join(settings.ROOT, "Makefile"), encoding="utf-8") as f:
        return dict(re.findall(r"^([a-z-]+):.*  ## (.*)", f.read(), re.M))


def goals():
    """The targets that make was called with."""
    return os.environ.get("GOALS", "").split()


def check():
    """Raise Usage for an unknown setting or target, and for a path that make would read differently from how it is
    written."""
    if os.environ.get("MAKELEVEL") != "1":
        return  # a make that another Makefile calls is given variables that are not meant for it
    line = origins.on_make_line()
    for name in line:
        if name not in settings.defaults() and name not in _OTHERS:
            raise Usage(f"{name} is not a setting; to list the settings: make help")
    for name in goals():
        if name not in targets():
            raise Usage(f"{name} is not a target; to list the targets: make help")
    if "convert" in goals() and not line.get("LAYOUT"):
        raise Usage("make convert needs LAYOUT=parquet or LAYOUT=dense")
    if line.get("LAYOUT") and "convert" not in goals():
        raise Usage("LAYOUT goes with make convert, e.g. make convert LAYOUT=parquet; for new shards set SHARD_LAYOUT")
    for name in ("WORK", "IDS"):  # make has already expanded what stands in the environment
        if name in line and (line[name] or name == "WORK"):
            settings.parse_path(line[name], name)


def check_work():
    """Raise Problem if a target needs a work directory and it is not there."""
    work = settings.get("WORK")
    if _INSIDE & set(goals()) and not os.path.isdir(work):
        raise Problem(f"{work}: no such work directory; check WORK, or begin one: "
                      f"{wording.make(work, 'import FROM=~/logs')}")


def told(quiet):
    """Yield lines about what the environment has of our settings, and about a YEAR that does not count; if `quiet`,
    only about what does not count in the environment."""
    found = {} if quiet else origins.environment(settings.defaults())
    if found:
        words = " ".join(f"{name}={shlex.quote(ascii(text)[1:-1])}" for name, text in found.items())
        yield f"settings: {words} from the environment"
    yield from (f"settings: {line}" for line in origins.ignored())
    if not quiet and "run" in goals() and settings.get("IDS") and settings.get("YEAR"):
        yield f"settings: IDS and YEAR are both set: this run downloads the list in IDS, not {settings.get('YEAR')}"


def listing():
    """Yield lines about all targets, and all settings: their values as they are now, and what they are."""
    yield "make TARGET [KEY=value …]\n\ntargets:"
    yield from (f"  {name:15} {what}" for name, what in targets().items())
    yield "\nsettings, with their current values (config.mk has the defaults):"
    for name, (_, what) in settings.knobs().items():
        value = settings.get(name) or "-"
        if len(value) > 14:
            yield f"  {name:15} {value}"
            value = name = ""
        yield f"  {name:15} {value:14} {what}"


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        check()
        if sys.argv[1:] == ["help"]:
            print(*listing(), sep="\n")
        else:
            settings.check()
            check_work()
            print(*(f"{line}\n" for line in told("--quiet" in sys.argv)), sep="", end="", file=sys.stderr)
    except Problem as e:
        print(e, file=sys.stderr)
        sys.exit(e.status)
