"""Reading shards. A shard is a directory with rows, and with a meta.json that says which rows belong to which game."""

import contextlib
import json
import os
import re

import numpy as np

from ..rows import schema
from ..store import gid, identity, workdir
from ..store.errors import Problem
from . import dense, layouts, parquet

META = "meta.json"


class Damaged(ValueError):
    """A shard was read, and is damaged."""


class Absent(Damaged):
    """A shard is lost: it is not there, though the cache is."""


class Foreign(ValueError):
    """A shard is of another version than this one can read."""


@contextlib.contextmanager
def needing(name):
    """For a block that must read the shard `name`. Raises Problem, with the name, if the shard cannot be read or is of
    another version."""
    try:
        yield
    except Foreign as e:
        raise Problem(f"{name}: {e}") from None
    except OSError as e:
        raise Problem(f"{name} {unreadable(e)}; nothing was changed. Check the disk and the permissions") from None


def unreadable(error):
    """What an OSError says of a shard, as text."""
    return f"cannot be read: {os.path.basename(str(error.filename or META))}: {error.strerror or error}"


def names(work):
    """The names of the shard directories that are there, in the order of their numbers."""
    with contextlib.suppress(FileNotFoundError):
        return sorted((name for name in os.listdir(workdir.cache(work)) if number(name) is not None), key=order)
    return []


def order(name):
    """A key to sort shards by their numbers. A manifest may have names that are not those of shards: they come last."""
    found = number(name if isinstance(name, str) else "")
    return found is None, found or 0, str(name)


def number(name):
    """The number of a shard from its name; None if it is not the name of a shard."""
    found = re.fullmatch(r"shard_([0-9]{5}|[1-9][0-9]{5,9})", name or "")
    return int(found[1]) if found else None


def read_meta(work, name):
    """A shard's meta.json as a dict. The exception says what was found: Damaged, Absent (which is a kind of Damaged) or
    Foreign, all of them ValueErrors. OSError means that it cannot be read, and Problem that the cache is not mounted:
    then nothing is known.
    """
    if number(name) is None:
        raise Damaged("this is not the name of a shard")  # before it becomes a path
    path = workdir.path(work, "cache", name)
    try:
        return load_meta(path)
    except FileNotFoundError:
        with contextlib.suppress(FileNotFoundError):
            os.lstat(path)
            raise Damaged(f"{META} is gone") from None
    identity.must_be_here(work, "cache")
    raise Absent("the directory is gone")


def load_meta(path):
    """The meta.json of the shard in the directory `path`, as a dict. Raises OSError, Damaged, Foreign.
    """
    try:
        with open(os.path.join(path, META), encoding="utf-8") as f:
            text = f.read()
    except UnicodeDecodeError:
        raise Damaged(f"{META} is not a text file") from None
    except NotADirectoryError:
        raise Damaged("it is not a directory") from None
    try:
        meta = json.loads(text)
    except (ValueError, RecursionError):
        raise Damaged(f"{META} is not valid JSON") from None
    try:
        _must_be_of_this_version(meta["schema_version"], meta["layout"])
        rows = 0
        for g in meta["games"]:
            if not (gid.is_gid(g["gid"]) and isinstance(g["sha256"], str) and g["start"] == rows and g["n_rows"] >= 0):
                raise Damaged(f"{META} is damaged at row {rows}")
            rows += g["n_rows"]
        if meta["n_rows"] != rows:
            raise Damaged(f"{META} says {meta['n_rows']} rows, but its games have {rows}")
        if not isinstance(meta["sha256"], dict):
            raise Damaged(f"{META} has no hashes")
    except (KeyError, TypeError) as e:
        raise Damaged(f"{META} is not that of a shard: {e!r}") from None
    return meta


def _must_be_of_this_version(number, layout):
    if type(number) is not int or type(layout) is not str:
        raise TypeError(f"schema_version {number!r}, layout {layout!r}")
    for what, found, known in (("schema version", number, [schema.SCHEMA_VERSION]),
                               ("layout", layout, layouts.LAYOUTS)):
        if found not in known:
            raise Foreign(f"it has {what} {found!r}, which another version of this tree can read; this one reads "
                          f"{', '.join(map(str, known))}{layouts.GONE.get(found, '')}")


def damage(work, name, meta, deep=False):
    """What is wrong with the files of a shard, compared with its `meta`, as text; None if nothing is. deep: read and
    hash them too. Raises OSError if they cannot be read: then nothing is known."""
    return layouts.LAYOUTS[meta["layout"]].damage(workdir.path(work, "cache", name), meta, deep)


def rows(work, name, meta, game):
    """The rows of an entry `game` of a shard's `meta`, as the layout stores them: a folded, or the arrays of
    lib.rows.schema. Raises OSError, ValueError."""
    wanted, path = np.arange(game["start"], game["start"] + game["n_rows"]), workdir.path(work, "cache", name)
    found = dense.rows(path, meta, wanted) if meta["layout"] == "dense" else parquet.read(path, meta, wanted)
    origin = np.array(found["origin"])
    origin["game"] = meta["games"].index(game)
    return {**found, "origin": origin}
