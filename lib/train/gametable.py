"""What the games of a cache are and where their rows lie: index.json and the shards' meta.json as arrays."""

import bisect
import hashlib
import json
import os
from typing import NamedTuple

import numpy as np

from ..rows import folded, schema
from ..shards import reading
from ..store import identity, wording, workdir
from ..store.errors import Problem

# what Cache.games() gives; scores, ranks: of the four seats at the end; ranks are 0 if the shard is too old to say
GAMES = np.dtype([("game", "<i4"), ("gid", "U32"), ("type", "U4"), ("date", "datetime64[h]"), ("first", "<i8"),
                  ("rows", "<i4"), ("scores", "<i4", 4), ("ranks", "u1", 4)])
_KEPT = ("layout", "n_rows", "row_groups", "bytes", "sha256")  # what reading a shard needs of its meta.json


class CacheError(Exception):
    """The cache is not there, differs from its index, or has another schema."""


class Table(NamedTuple):
    """shards: their names; metas: what must be known of each, or {"broken": why} if it cannot be read.

    All others have an entry for each game that has live rows, in the order of index.json. shard: the number of its
    shard; place: its place in that shard's meta.json; start: its first row in the shard; rows: how many; first: the
    number of the first of them in the cache; gid: its id, empty for rows of a broken shard; final: final points;
    identity: a number that changes if its rows do; part: the shard that it was in when the cache was opened, which does
    not change when shards are compacted.
    """

    shards: list
    metas: list
    shard: np.ndarray
    place: np.ndarray
    start: np.ndarray
    rows: np.ndarray
    first: np.ndarray
    gid: np.ndarray
    final: np.ndarray
    identity: np.ndarray
    part: np.ndarray


def load(path, encoder=None):
    """(Table, encoders) of the cache directory `path`. The Table has only the rows of this version of the encoder;
    None: all rows. encoders: version -> number of all its rows; the version is None if it is not known. Raises
    CacheError."""
    try:
        with open(os.path.join(path, "index.json"), encoding="utf-8") as f:
            index = json.load(f)
        _check_schema(path, index["schema"])
        made, encoders = index.get("encoders", {}), {}
        for entry in index["shards"]:
            version = made.get(entry["path"])
            encoders[version] = encoders.get(version, 0) + entry["n_rows"]
        names = [entry["path"] for entry in index["shards"] if encoder in (None, made.get(entry["path"]))]
        ranges = [index["row_ranges"][name] for name in names]
    except (FileNotFoundError, NotADirectoryError):
        raise CacheError(f"{path}: no index of a cache: {_why_none(path)}") from None
    except OSError as e:
        raise CacheError(f"{path}: index.json: {e.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise CacheError(f"{path}: index.json is damaged; to write it again: {_rebuild(path)}") from None
    if encoder is not None and encoder not in encoders:
        raise CacheError(f"{path}: no rows of encoder version {encoder!r}; versions and rows: {encoders}")
    metas, found = [], []
    for number, (name, spans) in enumerate(zip(names, ranges, strict=True)):
        try:
            meta = reading.load_meta(os.path.join(path, name))
            games = list(_live(number, meta, spans))
            if sum(game[3] for game in games) != sum(stop - start for start, stop in spans):
                raise ValueError("the rows in index.json differ from those in its meta.json; to write index.json "
                                 f"again: {_rebuild(path)}")
            metas.append({key: meta[key] for key in _KEPT if key in meta})
        except (OSError, ValueError) as e:
            metas.append({"broken": str(e)})
            games = [(number, 0, start, stop - start, "", (0,) * 4, 0) for start, stop in spans]
        found += games
    columns, types = zip(*found, strict=True) if found else ((),) * 7, ("i4", "i4", "i8", "i8", "S32", "i4", "u8")
    shard, place, start, rows, gid, final, identity = map(np.array, columns, types)
    first = np.concatenate([[0], np.cumsum(rows)])
    table = Table(names, metas, shard, place, start, rows, first, gid, final.reshape(-1, 4), identity, shard)
    return table, encoders


def _why_none(path):
    """Why there is no index.json at `path`, and what to do."""
    work, name = os.path.split(os.path.abspath(path))
    if nowhere := identity.leads_nowhere(path):
        return f"it is a link to {nowhere}, and nothing is there"
    if not os.path.isdir(path):
        return "it is not a directory" if os.path.exists(path) else "there is no such directory"
    if os.path.isdir(os.path.join(path, "cache")):
        return "the cache is its folder cache/"
    if name != "cache" or not {identity.FILE, workdir.MANIFEST} & set(os.listdir(work)):
        return "it is not the folder cache/ of a work directory"
    try:
        identity.must_be_here(work, name)
    except Problem as e:
        return str(e)
    return f"to write index.json: {_rebuild(path)}"


def _rebuild(path):
    return wording.make(os.path.dirname(os.path.abspath(path)), "rebuild-index")


def _check_schema(path, found):
    for key, value in schema.DESCRIPTION.items():
        if found.get(key) != value:
            raise CacheError(f"{path}: its schema has {key} {found.get(key)!r}; this reader needs {value!r}")


def _live(number, meta, spans):
    """The entries of a shard's games whose rows are live, in their order."""
    starts = [start for start, _ in spans]
    version = (meta.get("encoder") or {}).get("version")
    for place, game in enumerate(meta["games"]):
        span = bisect.bisect_right(starts, game["start"]) - 1
        if span < 0 or not game["n_rows"] or game["start"] >= spans[span][1]:
            continue  # stale
        text = f"{game['gid']} {game['sha256']} {game['n_rows']} {game.get('encoder', version)}"
        identity = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
        final = game.get("final") or (0,) * 4
        yield number, place, game["start"], game["n_rows"], game["gid"], final, identity


def fingerprint(table):
    """A text that changes if the order of an epoch would: if there are other rows, or if they are elsewhere."""
    arrays = table.identity, table.rows, table.part
    return hashlib.sha256(b"".join(array.astype("<u8").tobytes() for array in arrays)).hexdigest()[:32]


def moved(table, path, encoder):
    """The same games at their present places, after a compaction. Raises CacheError if one is gone or has other rows.
    """
    now, _ = load(path, encoder)
    where = {identity: i for i, identity in enumerate(now.identity.tolist())}
    known = table.gid != b""
    if not known.all() or not all(identity in where for identity in table.identity.tolist()):
        raise CacheError(f"{path}: games are gone, or were encoded again, since it was opened: open the cache again")
    at = [where[identity] for identity in table.identity.tolist()]
    return table._replace(shards=now.shards, metas=now.metas, shard=now.shard[at], place=now.place[at],
                          start=now.start[at])


def games(table):
    """The games as an array with the fields of GAMES. Raises CacheError if a shard cannot be read."""
    for name, meta in zip(table.shards, table.metas, strict=True):
        if "broken" in meta:
            raise CacheError(f"{name}: {meta['broken']}")
    out = np.zeros(len(table.gid), GAMES)
    gids = [gid.decode() for gid in table.gid.tolist()]
    out["game"], out["gid"], out["first"], out["rows"] = np.arange(len(gids)), gids, table.first[:-1], table.rows
    heads = [gid.partition("gm-")[0] for gid in gids]
    out["type"] = [gid.partition("gm-")[2][:4] for gid in gids]
    out["date"] = [f"{head[:4]}-{head[4:6]}-{head[6:8]}T{head[8:10] or '00'}" for head in heads]
    out["scores"] = table.final
    out["ranks"] = np.where(table.final.any(axis=1)[:, None], folded.places(table.final), 0)
    return out
