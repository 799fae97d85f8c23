"""Games whose rows and log are both lost: if anybody has them still, it is the server."""

from ..store import workdir
from ..store.claims import kept
from . import due, policy, reading


def games(work, manifest, found):
    """The games that a verify.Finding of a shard, and a look at their logs, say are lost. Raises OSError, Problem."""
    if not found.is_lost:
        return []
    lost = [game for game in due.claimed(manifest, found.shard) if workdir.log_is_gone(work, game)]
    if lost and found.verdict == "contradicted":
        meta = reading.read_meta(work, found.shard)
        sound = {g["gid"] for g in policy.live(meta, found.shard, manifest.latest)}
        lost = [game for game in lost if game not in sound]
    return lost


def queue(work, manifest, found):
    """Queue the downloads of the games that a Finding says are lost; returns their ids.

    Their claim goes along if their shard is gone, since it may come back; not if its rows are damaged. Raises OSError.
    """
    with manifest.locked() as append:
        lost = games(work, manifest, found)
        damaged = found.verdict == "damaged"
        append([{"gid": game, "status": "corrupt", **({} if damaged else kept(manifest.latest[game]))}
                for game in lost])
        if damaged:  # those that wait for their log already must not have these rows back
            append([{key: value for key, value in policy.unchanged(record).items() if key != "claim"}
                    for record in map(manifest.latest.get, manifest.claims.get(found.shard, ()))
                    if (record.get("claim") or {}).get("shard") == found.shard])
    return lost
