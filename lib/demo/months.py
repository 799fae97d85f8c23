"""A work directory as months of runs leave it, to measure with: the logs are tiny, and the rows take no room."""

import hashlib
import json
import os

import numpy as np

from ..rows import encoder, schema
from ..shards import reading
from ..store import workdir

_SHARD_GAMES, _GAME_ROWS = 109, 600


def fill(work, games):
    """So many games in xml/ and in shards, with five events for each two: downloaded, encoded, every second one moved.
    """
    workdir.make(work)
    sha256 = [_put_log(work, game) for game in range(games)]
    for first in range(0, games, _SHARD_GAMES):
        _put_shard(work, range(first, min(games, first + _SHARD_GAMES)), sha256)
    with open(workdir.path(work, workdir.MANIFEST), "w", encoding="ascii") as f:
        for encoded, step in ((False, 1), (True, 1), (True, 2)):
            f.writelines(json.dumps(_event(game, sha256[game], encoded)) + "\n" for game in range(0, games, step))


def _gid(game):
    return f"2024010100gm-00a9-0000-{game:08x}"


def _event(game, sha256, encoded):
    event = {"ts": "2024-05-01T12:00:00Z", "gid": _gid(game)}
    if not encoded:
        return event | {"status": "downloaded", "sha256": sha256, "size": len(_log(game))}
    return event | {"status": "encoded", "shard": _shard(game), "n_samples": _GAME_ROWS, "sha256": sha256,
                    "start": _start(game), "encoder": encoder.ENCODER["version"]}


def _shard(game):
    return workdir.SHARD.format(game // _SHARD_GAMES)


def _start(game):
    return game % _SHARD_GAMES * _GAME_ROWS


def _log(game):
    return b'<mjloggm ver="2.3"><GO type="169" game="%d"/></mjloggm>' % game


def _put_log(work, game):
    """Put a log into xml/; returns its sha256."""
    with open(workdir.xml(work, _gid(game)), "wb") as f:
        f.write(_log(game))
    return hashlib.sha256(_log(game)).hexdigest()


def _put_shard(work, games, sha256):
    """Put a shard into the cache whose rows are all zeros, which a disk does not keep."""
    path, n = workdir.path(work, "cache", _shard(games[0])), len(games) * _GAME_ROWS
    os.mkdir(path)
    for name, (shape, dtype) in schema.ARRAYS.items():
        np.lib.format.open_memmap(os.path.join(path, f"{name}.npy"), "w+", dtype, (n, *shape))
    meta = {"schema_version": schema.SCHEMA_VERSION, "layout": "dense", "encoder": encoder.ENCODER, "n_rows": n,
            "games": [{"gid": _gid(game), "sha256": sha256[game], "start": _start(game), "n_rows": _GAME_ROWS,
                       "encoder": encoder.ENCODER["version"]} for game in games],
            "sha256": dict.fromkeys(schema.ARRAYS, "0" * 64)}
    with open(os.path.join(path, reading.META), "w", encoding="ascii") as f:
        json.dump(meta, f)
