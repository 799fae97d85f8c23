"""cache/index.json: which rows of which shard are live. It can be rebuilt from the shards and the manifest at any time.
"""

import contextlib
import json
import math
import os
import time

from ..rows import schema
from ..store import files, wording, workdir
from ..store.claims import held
from ..store.errors import Problem
from . import policy, reading

_PAUSE = 60  # seconds between two indexes while shards land
_PAUSE_A_SHARD = 0.05  # and for each shard: to read its meta.json takes 0.7 ms here, of 3,670 shards, and more of NFS


def build(work, latest):
    """(index, problems): the index of the cache as a dict, and a line for each encoded game whose rows are not in the
    shard that it claims them in. A game whose log is being fetched again is not missed.

    The index has only rows that a current record claims and that the shard's meta.json has too. Raises Problem for a
    shard that cannot be read or is of another version, or if the cache is not mounted.
    """
    claimed = {}
    for game, record in latest.items():
        claim = record if record.get("status") == "encoded" else held(record)  # fast: done for each game
        if claim:
            claimed.setdefault(claim.get("shard"), {})[game] = claim
    row_ranges, encoders, problems = {}, {}, []
    for name in sorted(claimed, key=reading.order):
        missed = {game for game, claim in claimed[name].items() if latest[game] is claim}  # it is encoded
        try:
            with reading.needing(name):
                meta = reading.read_meta(work, name)
        except reading.Damaged as e:
            if missed:
                problems.append(f"{name}: {wording.count(len(missed), 'game')} left out: {e}")
            continue
        spans, made = [], set()
        for g in meta["games"]:
            claim = claimed[name].get(g["gid"])
            if claim is None:
                continue
            span = [g["start"], g["start"] + g["n_rows"]]
            if not policy.matches(g, claim):
                if g["gid"] in missed:
                    problems.append(f"{name}: {g['gid']} left out: the rows that the manifest claims differ from those "
                                    "in meta.json")
                    missed.discard(g["gid"])
                continue
            missed.discard(g["gid"])
            made.add(g.get("encoder"))
            if spans and spans[-1][1] == span[0]:
                spans[-1][1] = span[1]
            elif span[1] > span[0]:
                spans.append(span)
        problems += [f"{name}: {game} left out: not in meta.json" for game in claimed[name] if game in missed]
        if spans:
            row_ranges[name] = spans
            encoders[name] = policy.version(meta, {"encoder": made.pop()}) if len(made) == 1 else None
    return _index(row_ranges, encoders), problems


def _index(row_ranges, encoders):
    """The index as a dict. row_ranges: shard -> list of [start, stop] of its live rows; encoders: shard -> version of
    the encoder that made them, None if that is not known."""
    entries, total = [], 0
    for name, spans in row_ranges.items():
        n = sum(stop - start for start, stop in spans)
        total += n
        entries.append({"path": name, "n_rows": n, "cumulative": total})
    return {"schema": schema.DESCRIPTION, "total_rows": total, "shards": entries, "row_ranges": row_ranges,
            "encoders": encoders}


def rebuild(work, latest):
    """Write cache/index.json unless it is as it should be already. Returns (index, problems, changed)."""
    index, problems = build(work, latest)
    data = json.dumps(index).encode() + b"\n"
    changed = _read(work) != data
    if changed:
        files.write(_path(work), data)
    return index, problems, changed


def keep_up(work, manifest, least=_PAUSE):
    """Write cache/index.json if it is not there, or so old (seconds; of a large cache more) that it is time again: then
    a run that is killed leaves one behind. What keeps it from being written is told when a run ends, which writes it.
    """
    pause = max(least, _PAUSE_A_SHARD * len(manifest.claims))
    with contextlib.suppress(OSError, Problem):
        if not manifest.claims or _age(work) < pause:
            return
        with manifest.locked():
            if _age(work) >= pause:  # of many encoders, only one
                rebuild(work, manifest.latest)


def _age(work):
    """Seconds since cache/index.json was written; infinitely many if it is not there."""
    try:
        return abs(time.time() - os.stat(_path(work)).st_mtime)  # where a clock was set back, too
    except FileNotFoundError:
        return math.inf


def check(work, latest):
    """What is wrong with cache/index.json, as text; None if nothing is. It may be older than the manifest, because a
    run writes it now and then. Raises OSError."""
    data = _read(work)
    if data is None:
        return "is missing" if build(work, latest)[0]["total_rows"] else None
    try:
        found = json.loads(data)
        ranges, encoders = found["row_ranges"], found.setdefault("encoders", {})  # older versions wrote none
        if found != _index({name: ranges[name] for name in sorted(ranges, key=reading.order)}, encoders):
            return "contradicts itself"
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return "is damaged"
    for name, spans in ranges.items():
        try:
            meta = reading.read_meta(work, name)
            if spans[-1][1] > meta["n_rows"]:
                return f"lists rows that {name} does not have"
            if encoders.get(name) not in (None, *(policy.version(meta, g) for g in meta["games"])):
                return f"has an encoder version of {name} that differs from its meta.json"
        except reading.Damaged:
            return f"lists rows of {name}, which is gone or damaged"
        except (OSError, ValueError) as e:
            return f"lists rows of {name}, which cannot be read: {getattr(e, 'strerror', None) or e}"
    return None


def _path(work):
    return workdir.path(work, "cache", "index.json")


def _read(work):
    try:
        with open(_path(work), "rb") as f:
            return f.read()
    except FileNotFoundError:
        return None
