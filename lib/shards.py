"""Shards: directories of plain .npy files with a meta.json, streamed aside and moved into place by one rename."""

import contextlib
import hashlib
import json
import os
import re
import shutil

import numpy as np

from lib import files, gid, schema, workdir

META = "meta.json"
LAYOUT = "dense"


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
    with open(workdir.path(work, "cache", name, META), encoding="utf-8") as f:
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
    except (KeyError, TypeError, RecursionError, json.JSONDecodeError) as e:
        raise ValueError(f"{META} is no shard's: {e!r}") from None
    return meta


class Writer:
    """A shard in the making: rows go straight to disk, so memory stays flat however large it grows.

    games: the entries of meta.json so far; n_rows: how many rows they have together
    """

    def __init__(self, work):
        """Begin a shard aside in the cache of `work`. Raises OSError."""
        self.path = files.aside(workdir.path(work, "cache", "shard"))
        self.games, self.n_rows = [], 0
        shutil.rmtree(self.path, ignore_errors=True)
        os.mkdir(self.path)
        self._files = {name: open(os.path.join(self.path, f"{name}.npy"), "wb")  # noqa: SIM115
                       for name in schema.ARRAYS}
        self._digests = {name: hashlib.sha256() for name in schema.ARRAYS}
        self._write_headers()

    def _write_headers(self):
        # numpy pads a header so that the first axis can grow: the final one takes exactly the same place
        for name, f in self._files.items():
            shape, dtype = schema.ARRAYS[name]
            f.seek(0)
            np.lib.format.write_array_header_1_0(f, {
                "descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (self.n_rows, *shape),
            })

    def add(self, game, sha256, rows):
        """Append the rows of one game: a dict of the arrays of lib.schema. Raises OSError."""
        n = len(rows["labels"])
        rows["origin"]["game"] = len(self.games)
        for name, (shape, dtype) in schema.ARRAYS.items():
            array = np.ascontiguousarray(rows[name])
            if array.shape != (n, *shape) or array.dtype != dtype:  # a cast would cut numbers silently
                raise ValueError(f"{game}: {name} is {array.dtype} {array.shape}, not {dtype} {(n, *shape)}")
            data = array.view("u1") if array.size else b""
            self._files[name].write(data)
            self._digests[name].update(data)
        self.games.append({"gid": game, "sha256": sha256, "start": self.n_rows, "n_rows": n})
        self.n_rows += n

    def finish(self, encoder):
        """Complete the shard aside, durably: headers, meta.json, fsync. Raises OSError."""
        self._write_headers()
        for f in self._files.values():
            f.flush()
            os.fsync(f.fileno())
            f.close()
        meta = {
            "schema_version": schema.SCHEMA_VERSION, "layout": LAYOUT, "n_rows": self.n_rows,
            "max_seq_len": schema.MAX_SEQ_LEN, "encoder": encoder,
            "sha256": {name: digest.hexdigest() for name, digest in self._digests.items()}, "games": self.games,
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
        for f in self._files.values():
            with contextlib.suppress(OSError):
                f.close()
        shutil.rmtree(self.path, ignore_errors=True)


def damage(work, name, meta, deep=False):
    """What is wrong with the files of a shard against its `meta`, as text; None if nothing is. deep: hash them too."""
    for array, (shape, dtype) in schema.ARRAYS.items():
        try:
            found = np.load(workdir.path(work, "cache", name, f"{array}.npy"), mmap_mode="r")
        except Exception as e:  # a damaged header makes numpy raise nearly anything, TokenError and BadZipFile included
            return f"{array}.npy cannot be read: {e}"
        if found.shape != (meta["n_rows"], *shape) or found.dtype != dtype:
            return f"{array}.npy is {found.dtype} {found.shape}, meta.json says {meta['n_rows']} rows"
        if deep and len(found) and _hash(found) != meta.get("sha256", {}).get(array):
            return f"{array}.npy: its sha256 is not the one in meta.json"
    return None


def _hash(array):
    digest = hashlib.sha256()
    for start in range(0, len(array), 4096):
        digest.update(np.ascontiguousarray(array[start:start + 4096]).view("u1"))
    return digest.hexdigest()


def rows(work, name, game):
    """The rows of a meta.json entry `game` of a shard, as a dict of arrays of our own. Raises OSError, ValueError."""
    span = slice(game["start"], game["start"] + game["n_rows"])
    return {array: np.array(np.load(workdir.path(work, "cache", name, f"{array}.npy"), mmap_mode="r")[span])
            for array in schema.ARRAYS}
