"""cache/index.json: what a reader of the cache needs to know, rebuilt from the shards and the manifest at any time."""

import json

from lib import claims, files, schema, shards, workdir


def build(work, latest):
    """(index, problems): the index of the cache as a dict, and a line for each claim that no shard bears out.

    Only rows that a current `encoded` record claims and that the shard's meta.json knows are in it.
    """
    claimed = {}
    for game, record in latest.items():
        if record.get("status") == "encoded":
            claimed.setdefault(record.get("shard"), {})[game] = record
    index_shards, row_ranges, problems, total = [], {}, [], 0
    for name in sorted(claimed, key=str):
        try:
            meta = shards.read_meta(work, name)
        except (OSError, ValueError) as e:
            problems.append(f"{name}: {len(claimed[name])} games left out: {e}")
            continue
        spans, n = [], 0
        for g in meta["games"]:
            record = claimed[name].pop(g["gid"], None)
            if record is None:
                continue
            span = [g["start"], g["start"] + g["n_rows"]]
            if not claims.bears_out(g, record):
                problems.append(f"{name}: {g['gid']} left out: the manifest claims other rows than meta.json has")
                continue
            n += g["n_rows"]
            if spans and spans[-1][1] == span[0]:
                spans[-1][1] = span[1]
            elif span[1] > span[0]:
                spans.append(span)
        problems += [f"{name}: {game} left out: not in meta.json" for game in claimed[name]]
        if n:
            total += n
            index_shards.append({"path": name, "n_rows": n, "cumulative": total})
            row_ranges[name] = spans
    return {
        "schema": schema.DESCRIPTION,
        "total_rows": total, "shards": index_shards, "row_ranges": row_ranges,
    }, problems


def rebuild(work, latest):
    """Write cache/index.json if it is not already what it should be. Returns (index, problems, changed)."""
    index, problems = build(work, latest)
    data = json.dumps(index).encode() + b"\n"
    path = workdir.path(work, "cache", "index.json")
    try:
        with open(path, "rb") as f:
            changed = f.read() != data
    except FileNotFoundError:
        changed = True
    if changed:
        files.write(path, data)
    return index, problems, changed
