"""A command that does again what the user asked for, for messages that say how to go on."""

import shlex

from ..store import wording
from . import origins, settings

_WHAT = "YEAR", "IDS", "MAX_NEW"  # what a run is to download; these count from the environment too


def run(work, **changed):
    """`make run` for a work directory, to be pasted, with all settings of the command line of the make that started
    this, in the order of config.mk. changed: name -> value of those that are to be others, '' for one to leave out."""
    line = origins.on_make_line()
    found = {name: line.get(name) or (settings.get(name) if name in _WHAT else "") for name in settings.defaults()}
    found |= {**changed, "WORK": ""}  # which stands last, as make in this tree reads it
    words = (f"{name}={text.replace('$', '$$')}" for name, text in found.items() if text)
    return wording.make(work, shlex.join(["run", *words]))
