"""What games cost here, as the last shards tell: time to encode them, and room on the disk."""

import contextlib
import os

import numpy as np

from ..rows.schema import ARRAYS
from ..store import workdir
from . import reading

_SHARDS = 4  # that are asked, the last ones
_DENSE_ROW = sum(dtype.itemsize * int(np.prod(shape)) for shape, dtype in ARRAYS.values())
_PARQUET_ROW = 60  # bytes a row of real logs, where no shard is there to tell


def encoding(work, jobs):
    """Games that `jobs` processes encode in an hour, as quickly as the last shards were made; None if none tells.

    It is the pace of encoding itself, however slowly the games came: the processes that encode work at the same time,
    the one that writes goes along with them, and whichever is slower decides.
    """
    games = spent = 0
    for _, meta in _last(work):
        seconds = meta.get("seconds")
        if isinstance(seconds, dict):
            games += len(meta["games"])
            spent += max(seconds["encode"] / jobs, seconds["write"])
    return 3600 * games / spent if spent else None


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


def _last(work):
    """(path, meta.json) of the last shards that can be read."""
    for name in reading.names(work)[:-_SHARDS - 1:-1]:
        path = workdir.path(work, "cache", name)
        with contextlib.suppress(OSError, ValueError):  # verify-shards tells about it
            meta = reading.load_meta(path)
            yield path, meta
