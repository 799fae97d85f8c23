"""Shards: directories of rows with a meta.json, streamed aside and moved into place by one rename."""

import contextlib
import json
import os
import re
import shutil

import numpy as np

from lib import dense, files, gid, parquet, schema, workdir

META = "meta.json"
LAYOUTS = {"dense": dense, "parquet": parquet}  # modules that write, read and check the files of a shard


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
        if meta["layout"] not in LAYOUTS:
            raise ValueError(f"{META}: unknown layout {meta['layout']!r}")
        if not isinstance(meta["sha256"], dict):
            raise ValueError(f"{META} has no hashes")
    except (KeyError, TypeError, RecursionError, json.JSONDecodeError) as e:
        raise ValueError(f"{META} is no shard's: {e!r}") from None
    return meta


class Writer:
    """A shard in the making: rows go straight to disk, so memory stays flat however large it grows.

    games: the entries of meta.json so far; n_rows: how many rows they have together
    """

    def __init__(self, work, layout="dense"):
        """Begin a shard of a layout (a key of LAYOUTS) aside in the cache of `work`. Raises OSError."""
        self.path = files.aside(workdir.path(work, "cache", "shard"))
        self.games, self.n_rows, self._layout = [], 0, layout
        shutil.rmtree(self.path, ignore_errors=True)
        os.mkdir(self.path)
        self._rows = LAYOUTS[layout].Writer(self.path)

    def add(self, game, sha256, rows, final=None):
        """Append all rows of a game: a folded, or a dict of the arrays of lib.schema. final: the points of its four
        seats at the end. Raises OSError, and ValueError for rows that lib.schema has not.
        """
        n = len(rows["labels"])
        self.games.append({"gid": game, "sha256": sha256, "start": self.n_rows, "n_rows": n,
                           **({"final": list(final)} if final else {})})
        origin = np.array(rows["origin"])
        origin["game"] = len(self.games) - 1
        with files.naming(self.path):
            self._rows.add({**rows, "origin": origin}, game)
        self.n_rows += n

    def finish(self, encoder):
        """Complete the shard aside, durably: arrays, meta.json, fsync. Raises OSError."""
        with files.naming(self.path):
            found = self._rows.finish()
        meta = {
            "schema_version": schema.SCHEMA_VERSION, "layout": self._layout, "n_rows": self.n_rows,
            "max_seq_len": schema.MAX_SEQ_LEN, "encoder": encoder, **found, "games": self.games,
        }
        files.write(os.path.join(self.path, META), json.dumps(meta).encode() + b"\n")

    def move_into_place(self, work, used):
        """Rename the finished shard to the number after all `used` and present ones; returns its name. Raises OSError.
        """
        highest = max((n for n in [*used, *map(number, names(work))] if n is not None), default=-1)
        name = workdir.SHARD.format(highest + 1)
        os.rename(self.path, workdir.path(work, "cache", name))
        files.sync_dir(workdir.cache(work))
        return name

    def discard(self):
        """Close and remove what was written aside."""
        with contextlib.suppress(OSError):
            self._rows.close()
        shutil.rmtree(self.path, ignore_errors=True)


def damage(work, name, meta, deep=False):
    """What is wrong with the files of a shard against its `meta`, as text; None if nothing is. deep: hash them too."""
    return LAYOUTS[meta["layout"]].damage(workdir.path(work, "cache", name), meta, deep)


def rows(work, name, meta, game):
    """The rows of an entry `game` of a shard's `meta`, in the form in which they are stored: a folded, or the arrays of
    lib.schema. Raises OSError, ValueError."""
    wanted, path = np.arange(game["start"], game["start"] + game["n_rows"]), workdir.path(work, "cache", name)
    return dense.rows(path, meta, wanted) if meta["layout"] == "dense" else parquet.read(path, meta, wanted)
