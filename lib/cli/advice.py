"""Commands that a user can paste: they name the work directory where it is not the default."""

import os
import shlex

from . import settings


def make(work, *words):
    """`make WORDS`, with WORK= unless `work` is the default, as text; a path below this tree is told from there."""
    path, tree = os.path.abspath(work), os.path.join(settings.ROOT, "")
    path = path.removeprefix(tree)
    more = [] if path == os.path.normpath(settings.defaults()["WORK"]) else [f"WORK={shlex.quote(path)}"]
    return " ".join(["make", *words, *more])
