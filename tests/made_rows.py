"""Rows for the tests of the cache: of self-played games, and work directories that hold them."""

import functools
import json
import os

import numpy as np

from lib.demo import selfplay
from lib.manifest import Manifest
from lib.rows import encoder, schema
from lib.shards import commit, index, parquet, policy, reading, writing
from lib.store import workdir

DIGEST = "0" * 64


@functools.cache
def games(n):
    """(gid, log) of the first `n` self-played tonpuu games."""
    return [(f"20240101{seed:02d}gm-00a1-0000-{seed:08x}", selfplay.play(seed, hanchan=False)) for seed in range(n)]


@functools.cache
def _encoded(log):
    return encoder.encode_game(log)


def of(log):
    """The rows of a log, arrays of the caller's own."""
    return {name: array.copy() for name, array in _encoded(log).items()}


def join(parts):
    """One dict of arrays of several."""
    return {name: np.concatenate([rows[name] for rows in parts]) for name in schema.ARRAYS}


def assert_equal(got, expected):
    """Bit for bit, dtypes and shapes too."""
    assert got.keys() == expected.keys()
    for name, array in expected.items():
        assert got[name].dtype == array.dtype and got[name].shape == array.shape, name
        assert got[name].tobytes() == array.tobytes(), name


def add_shard(work, layout, chosen):
    """Put the games `chosen`, (gid, rows) each, in a shard of the cache of `work`, claimed and indexed. Its name."""
    workdir.make(work)
    manifest, writer = Manifest(work), writing.Writer(work, layout)
    for gid, rows in chosen:
        finals = dict(zip(rows["origin"]["seat"].tolist(), rows["outcome"]["final_score"].tolist(), strict=True))
        rest = 100_000 - sum(finals.values())  # of a seat without a row
        writer.add(gid, DIGEST, rows, [finals.get(seat, rest) for seat in range(4)])
    writer.finish({"name": "test", "version": "1"})
    name = writer.move_into_place(work, commit.used_numbers(manifest))
    manifest.append([policy.claim(game, name) for game in writer.games])
    _, problems, _ = index.rebuild(work, manifest.latest)
    assert not problems
    return name


def forget_deltas(work, name):
    """Make a dense shard one of before there were deltas, and the games' final points in meta.json."""
    path, found = workdir.path(work, "cache", name), meta(work, name)
    os.unlink(os.path.join(path, "deltas.npy"))
    del found["sha256"]["deltas"]
    for game in found["games"]:
        game.pop("final", None)
    with open(os.path.join(path, reading.META), "w", encoding="utf-8") as f:
        json.dump(found, f)


def forget_files():
    """Let nothing come from row groups that were read before."""
    parquet.forget()


def meta(work, name):
    with open(workdir.path(work, "cache", name, reading.META), encoding="utf-8") as f:
        return json.load(f)
