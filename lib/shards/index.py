"""cache/index.json: what a reader of the cache needs to know, rebuilt from the shards and the manifest at any time."""

import json

from ..rows import schema
from ..store import files, workdir
from . import policy, reading


def build(work, latest):
    """(index, problems): the index of the cache as a dict, and a line for each claim that no shard bears out.

    Only rows that a current `encoded` record claims and that the shard's meta.json knows are in it.
    """
    claimed = {}
    for game, record in latest.items():
        if record.get("status") == "encoded":
            claimed.setdefault(record.get("shard"), {})[game] = record
    row_ranges, problems = {}, []
    for name in sorted(claimed, key=str):
        try:
            meta = reading.read_meta(work, name)
        except (OSError, ValueError) as e:
            problems.append(f"{name}: {len(claimed[name])} games left out: {e}")
            continue
        spans = []
        for g in meta["games"]:
            record = claimed[name].pop(g["gid"], None)
            if record is None:
                continue
            span = [g["start"], g["start"] + g["n_rows"]]
            if not policy.matches(g, record):
                problems.append(f"{name}: {g['gid']} left out: the manifest claims other rows than meta.json has")
                continue
            if spans and spans[-1][1] == span[0]:
                spans[-1][1] = span[1]
            elif span[1] > span[0]:
                spans.append(span)
        problems += [f"{name}: {game} left out: not in meta.json" for game in claimed[name]]
        if spans:
            row_ranges[name] = spans
    return _index(row_ranges), problems


def _index(row_ranges):
    """The index whose live rows are `row_ranges`: shard -> list of [start, stop]."""
    entries, total = [], 0
    for name, spans in row_ranges.items():
        n = sum(stop - start for start, stop in spans)
        total += n
        entries.append({"path": name, "n_rows": n, "cumulative": total})
    return {"schema": schema.DESCRIPTION, "total_rows": total, "shards": entries, "row_ranges": row_ranges}


def rebuild(work, latest):
    """Write cache/index.json if it is not already what it should be. Returns (index, problems, changed)."""
    index, problems = build(work, latest)
    data = json.dumps(index).encode() + b"\n"
    changed = _read(work) != data
    if changed:
        files.write(_path(work), data)
    return index, problems, changed


def check(work, latest):
    """What is wrong with cache/index.json, as text; None if nothing is. That it lags behind the manifest is no fault:
    it is written when a run ends. Raises OSError."""
    data = _read(work)
    if data is None:
        return "is missing" if build(work, latest)[0]["total_rows"] else None
    try:
        found = json.loads(data)
        ranges = found["row_ranges"]
        if found != _index({name: ranges[name] for name in sorted(ranges)}):
            return "contradicts itself"
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return "is damaged"
    for name, spans in ranges.items():
        try:
            if spans[-1][1] > reading.read_meta(work, name)["n_rows"]:
                return f"has rows that {name} has not"
        except (OSError, ValueError):
            return f"has rows of {name}, which is gone or damaged"
    return None


def _path(work):
    return workdir.path(work, "cache", "index.json")


def _read(work):
    try:
        with open(_path(work), "rb") as f:
            return f.read()
    except FileNotFoundError:
        return None
