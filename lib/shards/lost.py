"""Games that have lost both their rows and their log: only the server may still have them."""

from ..store import workdir
from ..store.claims import kept
from . import due, policy, reading


def games(work, manifest, found):
    """The games of a shard that are lost: their rows by its verify.Finding, their logs by a look at xml/. Raises
    OSError, Problem."""
    if not found.is_lost:
        return []
    lost = [game for game in due.claimed(manifest, found) if workdir.log_is_gone(work, game)]
    if lost and found.verdict == "contradicted":
        meta = reading.read_meta(work, found.shard)
        sound = {g["gid"] for g in policy.live(meta, found.shard, manifest.latest)}
        lost = [game for game in lost if game not in sound]
    return lost


def queue(work, manifest, found):
    """Queue the lost games of a shard with this Finding for download; returns their ids.

    If the shard is gone, they keep their claim on its rows, because it may come back. If it is damaged, they do not.
    Raises OSError.
    """
    with manifest.locked() as append:
        lost = games(work, manifest, found)
        damaged = found.verdict == "damaged"
        append([{"gid": game, "status": "corrupt", **({} if damaged else kept(manifest.latest[game]))}
                for game in lost])
        if damaged:  # games that wait for their log already must not get these rows back
            append([{key: value for key, value in policy.unchanged(record).items() if key != "claim"}
                    for record in map(manifest.latest.get, manifest.claims.get(found.shard, ()))
                    if (record.get("claim") or {}).get("shard") == found.shard])
    return lost
