"""How many games have each status, and how many rows they have in the shards that are there."""

import collections
import contextlib
import os

from ..store import identity, wording, workdir
from ..store.claims import held
from ..store.errors import Problem


def count(work, manifest):
    """A dict. statuses: status -> games; games: all of them; rows: those that games claim in shards that are there;
    rows_gone: in shards that are not, and games_gone: of how many games that are encoded; rows_kept: those among `rows`
    that games of another status have from before, and games_kept: how many these are.

    One look into cache/ is enough unless a shard is missing. If cache/ is not mounted, no shard counts as gone. Raises
    OSError.
    """
    found = _count(manifest.latest, _there(work))
    if found["rows_gone"]:
        try:
            identity.must_be_here(work, "cache")
        except Problem:
            return _count(manifest.latest)
        manifest.refresh()  # the shard may have been compacted meanwhile
        found = _count(manifest.latest, _there(work))
    return found


def _there(work):
    """The names in cache/, shards among them. Without lib.shards.reading, whose numpy takes longer to load."""
    with contextlib.suppress(FileNotFoundError):
        return set(os.listdir(workdir.cache(work)))
    return set()


def _count(latest, shards=None):
    """shards: the names of those that are there; None: all of them."""
    statuses, n = collections.Counter([record.get("status") for record in latest.values()]), collections.Counter()
    encoded, games = collections.defaultdict(int), collections.defaultdict(int)  # shard -> rows, games
    for record in latest.values():  # often, so fast
        get = record.get
        if get("status") == "encoded":
            rows, shard = get("n_samples"), get("shard")
            encoded[shard] += rows if type(rows) is int else 0
            games[shard] += 1
        elif "claim" in record and (claim := held(record)):
            rows, is_gone = claim.get("n_samples"), _is_gone(claim.get("shard"), shards)
            rows = rows if type(rows) is int else 0
            n["rows_gone" if is_gone else "rows"] += rows
            if get("status") in ("corrupt", "failed") and not is_gone:
                n["rows_kept"] += rows
                n["games_kept"] += 1
    for shard, rows in encoded.items():
        is_gone = _is_gone(shard, shards)
        n["rows_gone" if is_gone else "rows"] += rows
        n["games_gone"] += games[shard] * is_gone
    statuses = {str(status): number for status, number in statuses.items()}
    return {"statuses": dict(sorted(statuses.items())), "games": len(latest),
            **{name: n[name] for name in ("rows", "rows_gone", "games_gone", "rows_kept", "games_kept")}}


def _is_gone(shard, shards):
    return bool(shards is not None and shard and shard not in shards)


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
