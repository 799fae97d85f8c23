"""Reading shards: directories of rows, with a meta.json that says which game has which."""

import contextlib
import json
import os
import re

import numpy as np

from ..store import gid, workdir
from . import dense, layouts, parquet

META = "meta.json"


def names(work):
    """The names of the shard directories that are there, in order."""
    with contextlib.suppress(FileNotFoundError):
        return sorted(name for name in os.listdir(workdir.cache(work)) if number(name) is not None)
    return []


def number(name):
    """The number of a shard from its name, None if the name is no shard's."""
    found = re.fullmatch(r"shard_([0-9]{5}|[1-9][0-9]{5,9})", name or "")
    return int(found[1]) if found else None


def read_meta(work, name):
    """A shard's meta.json as a dict; raises OSError or ValueError when it is missing, torn or no shard's."""
    if number(name) is None:
        raise ValueError("no shard's name")  # before it becomes a path
    return load_meta(workdir.path(work, "cache", name))


def load_meta(path):
    """The meta.json of the shard in the directory `path`, as a dict. Raises as `read_meta` does."""
    with open(os.path.join(path, META), encoding="utf-8") as f:
        text = f.read()
    try:
        meta = json.loads(text)
        rows = 0
        for g in meta["games"]:
            if not (gid.is_gid(g["gid"]) and isinstance(g["sha256"], str) and g["start"] == rows and g["n_rows"] >= 0):
                raise ValueError(f"{META} is damaged at row {rows}")
            rows += g["n_rows"]
        if meta["n_rows"] != rows:
            raise ValueError(f"{META} says {meta['n_rows']} rows, its games have {rows}")
        if meta["layout"] not in layouts.LAYOUTS:
            raise ValueError(f"{META}: unknown layout {meta['layout']!r}{layouts.GONE.get(meta['layout'], '')}")
        if not isinstance(meta["sha256"], dict):
            raise ValueError(f"{META} has no hashes")
    except (KeyError, TypeError, RecursionError, json.JSONDecodeError) as e:
        raise ValueError(f"{META} is no shard's: {e!r}") from None
    return meta


def damage(work, name, meta, deep=False):
    """What is wrong with the files of a shard against its `meta`, as text; None if nothing is. deep: hash them too."""
    return layouts.LAYOUTS[meta["layout"]].damage(workdir.path(work, "cache", name), meta, deep)


def rows(work, name, meta, game):
    """The rows of an entry `game` of a shard's `meta`, in the form in which they are stored: a folded, or the arrays of
    lib.rows.schema. Raises OSError, ValueError."""
    wanted, path = np.arange(game["start"], game["start"] + game["n_rows"]), workdir.path(work, "cache", name)
    found = dense.rows(path, meta, wanted) if meta["layout"] == "dense" else parquet.read(path, meta, wanted)
    origin = np.array(found["origin"])
    origin["game"] = meta["games"].index(game)
    return {**found, "origin": origin}
