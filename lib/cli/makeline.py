"""What make was called with: settings and targets, checked before anything is done.

`python3 -m lib.cli.makeline` does it, as the first step of each target, and tells which settings the environment has
(with --quiet only those that it has in vain); with `help` it lists targets and settings instead.
"""

import os
import re
import shlex
import sys

from ..store.errors import Usage
from . import origins, settings

# what make may be given beside settings
_OTHERS = {"RUN_PID", "LAYOUT", "TORTURE", "TORCH", "PYTEST_ARGS", "PARALLEL_SSH", "MAKEFLAGS", "SHELL", "TMPDIR",
           "http_proxy", "https_proxy", "no_proxy"}


def targets():
    """name -> what it does, of the targets of the Makefile."""
    with open(os.path.join(settings.ROOT, "Makefile"), encoding="utf-8") as f:
        return dict(re.findall(r"^([a-z-]+):.*  ## (.*)", f.read(), re.M))


def check():
    """Raise Usage for a setting or target that there is not, and for a path that make reads otherwise than written."""
    if os.environ.get("MAKELEVEL") != "1":
        return  # a make that another Makefile calls has what is not meant for it
    line = origins.on_make_line()
    for name in line:
        if name not in settings.defaults() and name not in _OTHERS:
            raise Usage(f"{name} is no setting: make help lists them")
    for name in os.environ.get("GOALS", "").split():
        if name not in targets():
            raise Usage(f"{name} is no target: make help lists them")
    if ("convert" in os.environ.get("GOALS", "").split()) != bool(line.get("LAYOUT")):
        raise Usage("LAYOUT goes with make convert, as in make convert LAYOUT=parquet (new shards: SHARD_LAYOUT)")
    for name in ("WORK", "IDS"):  # in the environment they stand without what means something to make
        if name in line and (line[name] or name == "WORK"):
            settings.parse_path(line[name], name)


def told(quiet):
    """Yield lines about what the environment has of our settings; if `quiet`, only about what does not count."""
    found = {} if quiet else origins.environment(settings.defaults())
    if found:
        words = " ".join(f"{name}={shlex.quote(ascii(text)[1:-1])}" for name, text in found.items())
        yield f"settings: {words} from the environment"
    yield from (f"settings: {line}" for line in origins.ignored())


def listing():
    """Yield lines about all targets, and all settings: their values as they are now, and what they are."""
    yield "make TARGET [KEY=value …]\n\ntargets:"
    yield from (f"  {name:15} {what}" for name, what in targets().items())
    yield "\nsettings: their values as they are now, and what they are (config.mk has the defaults):"
    for name, _, what in settings.knobs():
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
            print(*(f"{line}\n" for line in told("--quiet" in sys.argv)), sep="", end="", file=sys.stderr)
    except Usage as e:
        print(e, file=sys.stderr)
        sys.exit(e.status)
