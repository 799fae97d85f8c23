"""What several test files need: ids, logs that are nobody's, an encoder that needs no engine, shards."""

import hashlib
import json
import os
import re

import numpy as np

from lib.manifest import Manifest
from lib.rows import schema, workers
from lib.shards import batch, commit, reading, verify, writing
from lib.store import identity, workdir

ENCODER = {"name": "synthetic", "version": "1"}
SHARD = "shard_00000"
BAD_IDS = (
    "", ".", "..", "../../x", "/etc/passwd", "x/2001010100gm-00e1-0000-00000000", "../2001010100gm-00e1-0000-00000000",
    "2001010100gm-00e1-0000-00000000\n", "\n2001010100gm-00e1-0000-00000000", "2001010100gm-00e1-0000-00000000\0",
    "2001010100gm-00e1-0000-0000000g", "2001010100gm-00E1-0000-00000000", "2001010100gm-00e1-000-00000000",
    "2001010100gm-00e1-0000-000000000", "200101010gm-00e1-0000-00000000", "2001010100gm-00e1-0000-0000\x1b[2J",
    "200101010\uff10gm-00e1-0000-00000000", "2001010100gm-00e1-0000-00000000/..", "--help",
)  # fmt: skip


def game(n):
    """The n-th game id of the tests."""
    return f"2001010100gm-00e1-0000-{n:08x}"


def log(n, rows=3):
    """The bytes of a log, whole to look at, that the synthetic encoder makes `rows` rows of; another one for each n."""
    return f'<mjloggm ver="2.3"><GO game="{n}"/><ROWS n="{rows}"/></mjloggm>'.encode()


def sha(data):
    """The sha256 of bytes, as hex."""
    return hashlib.sha256(data).hexdigest()


class Unencodable(Exception):
    """What the synthetic encoder raises for a log without ROWS."""


class SyntheticEncoder:
    """Stands in for the module lib.rows.encoder where a test is about shards and events, not about rows."""

    ENCODER = ENCODER
    Unencodable = Unencodable

    def __init__(self):
        self.seen = []

    def encode_folded(self, data, judged=True):
        """Rows of noise that depends on `data` alone."""
        self.seen.append(data)
        found = re.search(rb'<ROWS n="(\d+)"', data)
        if not found:
            raise Unencodable("incomplete: no rows")
        return noise(data, int(found[1]))


class Here(workers.Workers):
    """In the place of Workers: does the work in this process, where an encoder can be synthetic."""

    def put(self, game, sha256):
        """Take on a game, and be done with it."""
        self._tasks.append([game, sha256, workers.answer(self._work, game, sha256), 1])


def encode_here(patch, encoder=None):
    """As long as `patch` lasts, batches do without other processes, and with `encoder` if there is one."""
    patch.setattr(batch, "Workers", Here)
    for module in (batch, workers) if encoder else ():
        patch.setattr(module, "encoder", encoder)
    return encoder


def noise(data, n):
    """n rows in all arrays of the schema, filled with noise that depends on `data` alone; origin.game is 0."""
    rng = np.random.default_rng(list(hashlib.sha256(data).digest()))
    rows = {}
    for name, (shape, dtype) in schema.ARRAYS.items():
        rows[name] = np.frombuffer(bytearray(rng.bytes(n * int(np.prod(shape)) * dtype.itemsize)), dtype)
        rows[name] = rows[name].reshape(n, *shape)
    rows["origin"]["game"] = 0
    return rows


def downloaded(work, n, data):
    """Put a log into xml/ and its event into the manifest; returns the id."""
    put(work, n, data)
    Manifest(work).append([{"gid": game(n), "status": "downloaded", "sha256": sha(data), "size": len(data)}])
    return game(n)


def put(work, n, data):
    """Put bytes into xml/ as the n-th game; returns the path."""
    path = workdir.xml(work, game(n))
    with open(path, "wb") as f:
        f.write(data)
    return path


def put_shard(work, games, claimed=True):
    """A shard of {n: rows}, with the events that claim it unless told otherwise; returns its name."""
    writer, handle = writing.Writer(work), Manifest(work)
    for n, rows in games.items():
        data = log(n, rows)
        downloaded(work, n, data)
        writer.add(game(n), sha(data), noise(data, rows))
    if claimed:
        assert commit.publish(writer, handle, work, ENCODER) == [game(n) for n in games]
        return handle.latest[game(next(iter(games)))]["shard"]
    writer.finish(ENCODER)
    return writer.move_into_place(work, [])


def findings(work):
    """{shard: (kind, stale rows)}, and the details as {shard: text}."""
    handle = Manifest(work)
    found = list(verify.check(work, reading.names(work), handle))
    return {f.shard: (f.kind, f.stale) for f in found}, {f.shard: f.why for f in found}


def broken(work, handle, **options):
    """The shards whose current claims cannot be relied on."""
    return {f.shard for f in verify.check(work, reading.names(work), handle, **options) if f.is_lost}


def event(work, n, **fields):
    """Append an event of the n-th game."""
    Manifest(work).append([{"gid": game(n), **fields}])


def npy(work, name, shard=SHARD):
    """The path of an array of a shard."""
    return workdir.path(work, "cache", shard, f"{name}.npy")


def in_cache(work):
    """What is in the cache beside the marker of its work directory, in order."""
    return sorted(set(os.listdir(workdir.cache(work))) - {identity.MARKER})


def edit_meta(work, change, shard=SHARD):
    """Rewrite a shard's meta.json with `change(meta)`."""
    path = workdir.path(work, "cache", shard, reading.META)
    with open(path) as f:
        meta = json.load(f)
    change(meta)
    with open(path, "w") as f:
        json.dump(meta, f)


def tree(work):
    """path -> bytes of every file below a directory, to see whether anything has changed."""
    found = {}
    for directory, _, names in os.walk(work):
        for name in names:
            path = os.path.join(directory, name)
            if os.path.isfile(path):
                with open(path, "rb") as f:
                    found[os.path.relpath(path, work)] = f.read()
    return found


def in_xml(work):
    """name -> bytes of every file of xml/ but its marker."""
    found = tree(os.path.join(work, "xml"))
    del found[identity.MARKER]
    return found
