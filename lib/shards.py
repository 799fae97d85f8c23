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


def claim(game, name):
    """The `encoded` event of a meta.json entry `game` in the shard `name`."""
    return {"gid": game["gid"], "status": "encoded", "shard": name, "n_samples": game["n_rows"],
            "sha256": game["sha256"], "start": game["start"]}


def bears_out(game, record):
    """True if the meta.json entry `game` has just the rows, of just the bytes, that an `encoded` record claims."""
    return all(record.get(key, value) == value for key, value in claim(game, record.get("shard")).items())


def check(work, present, claims, latest):
    """Yield (kind, shard, detail, stale rows) for each shard that is there or that a current record claims.

    kind: 'ok', 'mismatch' (the manifest's events claim other rows than the shard has) or 'orphan' (no event names it).
    present: the `names` there before the manifest was read, so that a shard that appears meanwhile is no orphan.
    claims, latest: as in Manifest.
    """
    for name in present:
        if name in claims:
            problem, stale = _compare(work, name, claims[name], latest)
            yield ("mismatch" if problem else "ok"), name, problem, stale
        else:
            yield "orphan", name, "no event names it", 0
    lost = {r.get("shard") for r in latest.values() if r.get("status") == "encoded"} - set(names(work))
    for name in sorted(lost, key=str):
        yield "mismatch", name, "the directory is gone", 0


def _awaits(game, record):
    """True if the next run will claim the meta.json entry `game` with this record: a commit was cut short."""
    return record.get("status") == "downloaded" and record.get("sha256") == game["sha256"]


def _compare(work, name, claimed, latest):
    """(what is wrong with a shard or None, its stale rows)."""
    try:
        meta = read_meta(work, name)
        for array, (shape, dtype) in schema.ARRAYS.items():
            found = np.load(workdir.path(work, "cache", name, f"{array}.npy"), mmap_mode="r")
            if found.shape != (meta["n_rows"], *shape) or found.dtype != dtype:
                return f"{array}.npy is {found.dtype} {found.shape}, meta.json says {meta['n_rows']} rows", 0
    except Exception as e:  # a damaged header makes numpy raise nearly anything, TokenError and BadZipFile included
        return f"cannot be read: {e}", 0
    games = {g["gid"]: g for g in meta["games"]}
    for game in claimed:
        record = latest[game]
        here = record.get("status") == "encoded" and record.get("shard") == name
        if here and not (game in games and bears_out(games[game], record)):
            return f"the event of {game} claims other rows than meta.json has", 0
    expected, stale = sum(n if isinstance(n, int) else 0 for n in claimed.values()), 0
    for game, g in games.items():
        record = latest.get(game)
        # lost to another encoder, or thrown out while it was being encoded: no event ever will claim these rows
        forsaken = game not in claimed and record and not _awaits(g, record)
        expected += g["n_rows"] if forsaken else 0
        if forsaken or (record and record.get("status") == "encoded" and record.get("shard") != name):
            stale += g["n_rows"]
    if expected != meta["n_rows"]:
        return f"meta.json says {meta['n_rows']} rows, events claim {expected}", stale
    return None, stale


def is_due(record, encoder):
    """True if a game with this current record is to be encoded by `encoder` (a dict with name and version): it is
    downloaded, or it failed when another encoder tried."""
    status = (record or {}).get("status")
    return status == "downloaded" or (
        status == "failed" and record.get("stage") == "encode" and record.get("encoder") != encoder["version"])


def _open_games(manifest, games, encoder):
    """Those meta.json entries of `games` that are still to be encoded, from the same bytes."""
    for g in games:
        record = manifest.latest.get(g["gid"])
        if is_due(record, encoder) and record.get("sha256") == g["sha256"]:
            yield g


def commit(writer, manifest, work, encoder):
    """Finish `writer` and publish it: under the manifest's lock, rename it and append the events of those of its games
    that are still to be encoded. Returns their ids; when there are none, nothing is left of the shard. Raises OSError.
    """
    if not writer.games:
        writer.discard()
        return []
    writer.finish(encoder)
    with manifest.locked() as append:
        ours = list(_open_games(manifest, writer.games, encoder))
        if not ours:
            writer.discard()
            return []
        name = writer.move_into_place(work, [number(name) for name in manifest.claims])
        append([claim(g, name) for g in ours])
    return [g["gid"] for g in ours]


def finish_interrupted(work, manifest, encoder):
    """Append the `encoded` events that a killed commit could not: games of shards on disk that are still to be encoded
    and whose rows there no event ever claimed. Returns their ids. Raises OSError.
    """
    if not any(is_due(r, encoder) for r in manifest.latest.values()):
        return []
    with manifest.locked() as append:
        claims = {}
        for name in names(work):
            try:
                games = read_meta(work, name)["games"]
            except (OSError, ValueError):
                continue  # verify-shards tells about it
            claims |= {g["gid"]: claim(g, name) for g in _open_games(manifest, games, encoder)
                       if g["gid"] not in manifest.claims.get(name, ())}
        append(list(claims.values()))
    return list(claims)
