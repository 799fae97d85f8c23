"""How many games have each status, and how many rows they have in the shards that are there."""

import collections

from ..store import identity, wording
from ..store.claims import held
from ..store.errors import Problem
from . import reading


def count(work, manifest):
    """A dict. statuses: status -> games; games: all of them; rows: those that games claim in shards that are there;
    rows_gone: in shards that are not, and games_gone: of how many games that are encoded; rows_kept: those among `rows`
    that games of another status have from before, and games_kept: how many these are.

    One look into cache/ is enough unless a shard is missing. If cache/ is not mounted, no shard counts as gone. Raises
    OSError.
    """
    shards = set(reading.names(work))
    found = _count(manifest.latest, shards)
    if found["rows_gone"]:
        try:
            identity.must_be_here(work, "cache")
        except Problem:
            return _count(manifest.latest)
        manifest.refresh()  # the shard may have been compacted meanwhile
        found = _count(manifest.latest, set(reading.names(work)))
    return found


def _count(latest, shards=None):
    """shards: the names of those that are there; None: all of them."""
    statuses, n = collections.Counter(), collections.Counter()
    for record in latest.values():
        status = record.get("status")
        statuses[str(status)] += 1
        claim = held(record)
        if not claim:
            continue
        rows = claim.get("n_samples")
        rows = rows if isinstance(rows, int) else 0
        if shards is not None and claim.get("shard") and claim["shard"] not in shards:
            n["rows_gone"] += rows
            n["games_gone"] += status == "encoded"
            continue
        n["rows"] += rows
        if status in ("corrupt", "failed"):
            n["rows_kept"] += rows
            n["games_kept"] += 1
    return {"statuses": dict(sorted(statuses.items())), "games": len(latest),
            **{name: n[name] for name in ("rows", "rows_gone", "games_gone", "rows_kept", "games_kept")}}


def lines(work, found):
    """Yield what `count` found as lines `name : value`, below those of the statuses."""
    yield f"games : {found['games']}"
    yield f"rows : {found['rows']}"
    if found["rows_kept"]:
        yield (f"rows kept from corrupt or failed games : {found['rows_kept']} "
               f"({wording.count(found['games_kept'], 'game')})")
    if found["rows_gone"]:  # of games that are not encoded, the next run, or a later one, asks for the logs
        how = f" ({wording.make(work, 'check')})" if found["games_gone"] else ""
        yield f"rows in shards that are gone : {found['rows_gone']}{how}"
