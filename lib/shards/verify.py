"""Holding the shards against what the manifest's events claim of them."""

import os

from ..store import workdir
from . import policy, reading

RECOVER = "`make recover` puts them on record"
_UNNAMED = "no event names it"


def check(work, present, manifest, deep=False):
    """Yield (kind, shard, detail, stale rows) for each shard that is there or that a current record claims.

    kind: 'ok', 'mismatch' (the manifest's events claim other rows than the shard has) or 'orphan' (no event names it).
    present: the shards' names as they were before the manifest was read, so that one that appears meanwhile is no
    orphan; deep: hash the arrays too. The manifest is refreshed before anything is said to be wrong.
    """
    for kind, name, why, stale in _findings(work, present, manifest, deep):
        yield "mismatch" if kind == "unrecorded" else kind, name, why, stale


def broken(work, manifest, deep=False, of=None):
    """The names of the shards whose current claims cannot be relied on: their games are to be encoded again.

    of: the only games that matter, None for all.
    """
    latest, present = manifest.latest, reading.names(work)
    if of is not None:
        wanted = {latest[game].get("shard") for game in of if game in latest}
        present = [name for name in present if name in wanted]
    return {name for kind, name, _, _ in _findings(work, present, manifest, deep) if kind == "mismatch"}


def _findings(work, present, manifest, deep):
    """As `check`, but with the kind 'unrecorded' for a mismatch that lies in the manifest alone: events are lost."""
    for name in present:
        found = _look_at(work, name, manifest, deep)
        if found[0] != "ok":  # or has a compactor been at work meanwhile?
            manifest.refresh()
            if not os.path.lexists(workdir.path(work, "cache", name)):
                continue  # gone, if it is still claimed
            found = _look_at(work, name, manifest, deep)
        yield found[0], name, *found[1:]
    gone = _claimed(manifest) - set(reading.names(work))
    if gone:
        manifest.refresh()
    for name in sorted(gone & _claimed(manifest), key=str):
        yield "mismatch", name, "the directory is gone", 0


def _claimed(manifest):
    return {r.get("shard") for r in manifest.latest.values() if r.get("status") == "encoded"}


def _look_at(work, name, manifest, deep):
    """(kind, what is wrong with a shard or None, its stale rows)."""
    try:
        meta = reading.read_meta(work, name)
    except (OSError, ValueError) as e:
        return ("mismatch", f"cannot be read: {e}", 0) if name in manifest.claims else ("orphan", _UNNAMED, 0)
    strangers = unknown_games(meta, manifest.latest)
    advice = (f"; the manifest does not know {len(strangers)} of its games: {RECOVER}, as `make run` does with those "
              "whose logs are in xml/") if strangers else ""
    if name not in manifest.claims:
        return "orphan", _UNNAMED + advice, 0
    problem = reading.damage(work, name, meta, deep)
    if problem:
        return "mismatch", problem, 0
    problem, stale, missing = _compare(name, meta, manifest)
    if missing:
        return "unrecorded", problem + (advice or "; `make run` claims the others"), stale
    return "mismatch" if problem else "ok", problem, stale


def unknown_games(meta, latest):
    """The games of a meta.json that have no record: then the manifest has lost some lines, or all."""
    return [g["gid"] for g in meta["games"] if g["gid"] not in latest]


def _compare(name, meta, manifest):
    """(what the events of a shard claim wrongly or None, its stale rows, whether they claim too little)."""
    claimed, games = manifest.claims[name], {g["gid"]: g for g in meta["games"]}
    for game in claimed:
        record = manifest.latest[game]
        here = record.get("status") == "encoded" and record.get("shard") == name
        if here and not (game in games and policy.matches(games[game], record)):
            return f"the event of {game} claims other rows than meta.json has", 0, False
    expected, stale = sum(n if isinstance(n, int) else 0 for n in claimed.values()), 0
    for game, g in games.items():
        record = manifest.latest.get(game)
        # lost to another encoder, or thrown out while it was being encoded: no event ever will claim these rows
        forsaken = game not in claimed and record and not policy.awaits(g, record)
        expected += g["n_rows"] if forsaken else 0
        if forsaken or (record and record.get("status") == "encoded" and record.get("shard") != name):
            stale += g["n_rows"]
    if expected != meta["n_rows"]:
        return f"meta.json says {meta['n_rows']} rows, events claim {expected}", stale, expected < meta["n_rows"]
    return None, stale, False
