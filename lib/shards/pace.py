"""What games cost here: the time to encode them, as the last batch noted it, and their room on the disk."""

import contextlib
import json
import os
import time

import numpy as np

from ..cli import origins, settings
from ..rows.schema import ARRAYS
from ..store import files, workdir
from . import reading

_FILE = ".pace"  # of the work directory; it decides nothing, and may be deleted
_ENOUGH = 20  # games that say how quick it goes
_SHARDS = 4  # that are asked, the last ones
_DENSE_ROW = sum(dtype.itemsize * int(np.prod(shape)) for shape, dtype in ARRAYS.values())
_PARQUET_ROW = 60  # bytes a row of real logs, where no shard is there to tell


class Spent:
    """The seconds that a batch has spent on so many games: those of all processes that encode, and of the one that
    writes."""

    def __init__(self):
        self.games = self.encode = self.write = 0
        self._is_noted = False

    @contextlib.contextmanager
    def writing(self):
        """A block in which the games are written."""
        begin = time.perf_counter()
        yield
        self.write += time.perf_counter() - begin

    def note(self, work):
        """Leave it for `encoding`, if there is no better. What keeps it from being written hinders nobody."""
        path = workdir.path(work, _FILE)
        with contextlib.suppress(OSError):
            # the first game of a process takes longer
            if self.games >= _ENOUGH or self._is_noted or not os.path.exists(path):
                found = {"games": self.games, "encode": self.encode, "write": self.write}
                files.write(path, json.dumps(found).encode() + b"\n")
                self._is_noted = True


def encoding(work, jobs):
    """Games that `jobs` processes encode in an hour, by what the last batch spent; None if that is not known.

    It is the pace of encoding itself, however slowly the games came: the processes that encode work at the same time,
    the one that writes goes along with them, and whichever is slower decides.
    """
    try:
        with open(workdir.path(work, _FILE), encoding="utf-8") as f:
            found = json.load(f)
        return 3600 * found["games"] / max(found["encode"] / jobs, found["write"])
    except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError):
        return None


def row_bytes(work, layout):
    """Bytes that a row takes in a layout: what the schema says, or what the last shards tell, or else real logs did."""
    if layout == "dense":
        return _DENSE_ROW
    rows = taken = 0
    for path, meta in _last(work):
        if meta["layout"] == layout:
            rows += meta["n_rows"]
            with os.scandir(path) as entries:
                taken += sum(entry.stat().st_size for entry in entries)
    return taken / rows if rows else _PARQUET_ROW


def last_layout(work):
    """The layout of the last shard that can be read; None if there is none."""
    return next((meta["layout"] for _, meta in _last(work)), None)


def other_layout(work, layout):
    """The layout of the last shard, if that is another one than `layout` and make was not told which to use: then the
    user may have forgotten it; else None."""
    here = last_layout(work)
    return here if here != layout and "SHARD_LAYOUT" not in origins.on_make_line() else None


def named(work):
    """The settings that a command has to name so that a run goes on with the layout of the last shard; as again.run
    takes them."""
    here = other_layout(work, settings.get("SHARD_LAYOUT"))
    return {"SHARD_LAYOUT": here} if here else {}


def _last(work):
    """(path, meta.json) of the last shards that can be read."""
    for name in reading.names(work)[:-_SHARDS - 1:-1]:
        path = workdir.path(work, "cache", name)
        with contextlib.suppress(OSError, ValueError):  # verify-shards tells about it
            meta = reading.load_meta(path)
            yield path, meta
