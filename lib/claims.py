"""What the manifest's events claim of the shards: publishing a shard, holding claims and shards against each other."""

import os

from lib import shards, workdir

RECOVER = "`make recover` puts them on record"
_UNNAMED = "no event names it"


def claim(game, name):
    """The `encoded` event of a meta.json entry `game` in the shard `name`."""
    return {"gid": game["gid"], "status": "encoded", "shard": name, "n_samples": game["n_rows"],
            "sha256": game["sha256"], "start": game["start"]}


def bears_out(game, record):
    """True if the meta.json entry `game` has just the rows, of just the bytes, that an `encoded` record claims."""
    get, rows, sha256, start = record.get, game["n_rows"], game["sha256"], game["start"]  # for each game: kept quick
    return (get("n_samples", rows) == rows and get("sha256", sha256) == sha256 and get("start", start) == start
            and record["gid"] == game["gid"] and get("status") == "encoded")


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
    latest, present = manifest.latest, shards.names(work)
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
    gone = _claimed(manifest) - set(shards.names(work))
    if gone:
        manifest.refresh()
    for name in sorted(gone & _claimed(manifest), key=str):
        yield "mismatch", name, "the directory is gone", 0


def _claimed(manifest):
    return {r.get("shard") for r in manifest.latest.values() if r.get("status") == "encoded"}


def _look_at(work, name, manifest, deep):
    """(kind, what is wrong with a shard or None, its stale rows)."""
    try:
        meta = shards.read_meta(work, name)
    except (OSError, ValueError) as e:
        return ("mismatch", f"cannot be read: {e}", 0) if name in manifest.claims else ("orphan", _UNNAMED, 0)
    strangers = unknown_games(meta, manifest.latest)
    advice = (f"; the manifest does not know {len(strangers)} of its games: {RECOVER}, as `make run` does with those "
              "whose logs are in xml/") if strangers else ""
    if name not in manifest.claims:
        return "orphan", _UNNAMED + advice, 0
    problem = shards.damage(work, name, meta, deep)
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
        if here and not (game in games and bears_out(games[game], record)):
            return f"the event of {game} claims other rows than meta.json has", 0, False
    expected, stale = sum(n if isinstance(n, int) else 0 for n in claimed.values()), 0
    for game, g in games.items():
        record = manifest.latest.get(game)
        # lost to another encoder, or thrown out while it was being encoded: no event ever will claim these rows
        forsaken = game not in claimed and record and not awaits(g, record)
        expected += g["n_rows"] if forsaken else 0
        if forsaken or (record and record.get("status") == "encoded" and record.get("shard") != name):
            stale += g["n_rows"]
    if expected != meta["n_rows"]:
        return f"meta.json says {meta['n_rows']} rows, events claim {expected}", stale, expected < meta["n_rows"]
    return None, stale, False


def awaits(game, record):
    """True if the next run will claim the meta.json entry `game` with this record: a commit was cut short."""
    return record.get("status") == "downloaded" and record.get("sha256") == game["sha256"]


def is_due(record, encoder, gone=()):
    """True if a game with this current record is to be encoded by `encoder` (a dict with name and version): it is
    downloaded, it failed when another encoder tried, or its rows were in one of the `gone` shards."""
    record = record or {}
    status = record.get("status")
    return (status == "downloaded" or (status == "encoded" and record.get("shard") in gone)
            or (status == "failed" and record.get("stage") == "encode" and record.get("encoder") != encoder["version"]))


def commit(writer, manifest, work, encoder, gone=()):
    """Finish `writer` and publish it: under the manifest's lock, rename it and append the events of those of its games
    that are still to be encoded. Returns their ids; when there are none, nothing is left of the shard. Raises OSError.
    """
    writer.finish(encoder)
    with manifest.locked() as append:
        current = {g["gid"]: manifest.latest.get(g["gid"], {}) for g in writer.games}
        ours = [g for g in writer.games if is_due(current[g["gid"]], encoder, gone)
                and current[g["gid"]].get("sha256") == g["sha256"]]
        if not ours:
            writer.discard()
            return []
        name = writer.move_into_place(work, used_numbers(manifest))
        append([claim(g, name) for g in ours])
    return [g["gid"] for g in ours]


def used_numbers(manifest):
    """The numbers of all shards that an event ever named."""
    return [shards.number(name) for name in manifest.claims]


def again(record):
    """A current record as an event that leaves it as it is."""
    return {key: value for key, value in record.items() if key != "ts"}


def finish_interrupted(work, manifest, encoder):
    """Append the `encoded` events that a killed commit could not: games of sound shards that are still to be encoded
    and whose rows there no event ever claimed. Returns their ids. Raises OSError.
    """
    if not any(is_due(r, encoder) for r in manifest.latest.values()):
        return []
    if not _unclaimed(work, manifest, encoder):  # without the lock at first: many may start at the same time
        return []
    with manifest.locked() as append:
        found = _unclaimed(work, manifest, encoder)
        append(list(found.values()))
    return list(found)


def _unclaimed(work, manifest, encoder):
    """gid -> the event that claims its rows, for `finish_interrupted`."""
    found = {}
    for name in shards.names(work):
        try:
            meta = shards.read_meta(work, name)
        except (OSError, ValueError):
            continue  # verify-shards tells about it
        claimed, record = manifest.claims.get(name, ()), manifest.latest.get
        games = [g for g in meta["games"] if g["gid"] not in claimed and is_due(record(g["gid"]), encoder)
                 and record(g["gid"]).get("sha256") == g["sha256"]]
        if games and not shards.damage(work, name, meta):
            found |= {g["gid"]: claim(g, name) for g in games}
    return found
