"""Publishing a shard: rename it into place, and append the events that claim its rows. A killed run may have renamed a
shard and not yet claimed its rows: that is made up for here too."""

from ..store import identity
from ..store.claims import held
from . import policy, reading


def publish(writer, manifest, work, encoder, is_due=None):
    """Finish `writer` and publish it: under the manifest's lock, rename it and append the events of those of its games
    that are still to be encoded. is_due(record): whether a game with this current record is; None: policy decides.

    Returns their ids. If there are none, nothing is left of the shard. Raises OSError, and Problem if the cache is not
    mounted any more.
    """
    is_due = is_due or (lambda record: policy.needs_encoding(record, encoder))
    writer.finish(encoder)
    with manifest.locked() as append:
        identity.must_be_here(work, "cache")
        current = {g["gid"]: manifest.latest.get(g["gid"], {}) for g in writer.games}
        ours = [g for g in writer.games
                if is_due(current[g["gid"]]) and current[g["gid"]].get("sha256") == g["sha256"]]
        if not ours:
            writer.discard()
            return []
        name = writer.move_into_place(work, used_numbers(manifest))
        append([policy.claim(g, name) for g in ours])
    return [g["gid"] for g in ours]


def used_numbers(manifest):
    """The numbers of all shards that an event ever named."""
    return [reading.number(name) for name in manifest.claims]


def finish_interrupted(work, manifest, encoder):
    """Append the `encoded` events that a killed process did not come to append: for games that are still to be encoded
    and have rows in a sound shard that no event ever claimed. Returns their ids. Raises OSError.
    """
    if not any(policy.needs_encoding(r, encoder) for r in manifest.latest.values()):
        return []
    return _append(manifest, lambda: _unclaimed(work, manifest, encoder))


def renew(work, manifest, games, gone=(), outdated=()):
    """Append the `encoded` events of those of `games` whose log is back with the same bytes as before: they still have
    rows of it, so there is nothing to encode. Not so for rows in the `gone` shards, and for the `outdated` games.

    Returns their ids. Raises OSError.
    """
    return _append(manifest, lambda: _held(work, manifest, games, gone, outdated))


def _append(manifest, find):
    if not find():  # without the lock at first, because many processes may start at the same time
        return []
    with manifest.locked() as append:
        found = find()
        append(list(found.values()))
    return list(found)


def _unclaimed(work, manifest, encoder):
    """gid -> the event that claims its rows, for `finish_interrupted`."""
    found, record = {}, manifest.latest.get
    for name in reading.names(work):
        claimed = manifest.claims.get(name, ())
        found |= _events(work, name, lambda g, claimed=claimed: (
            g["gid"] not in claimed and policy.needs_encoding(record(g["gid"]), encoder)
            and record(g["gid"]).get("sha256") == g["sha256"]))
    return found


def _held(work, manifest, games, gone, outdated):
    """gid -> the event that claims its rows, for `renew`."""
    shards, found = {}, {}
    for game in games:
        record = manifest.latest.get(game) or {}
        claim = held(record) if record.get("status") == "downloaded" and game not in outdated else None
        if claim and claim.get("sha256") == record.get("sha256") and claim["shard"] not in gone:
            shards.setdefault(claim["shard"], {})[game] = claim
    for name, claims in shards.items():
        found |= _events(work, name, lambda g, claims=claims: (
            g["gid"] in claims and policy.matches(g, claims[g["gid"]])))
    return found


def _events(work, name, wanted):
    """gid -> the event that claims its rows, for those games of a sound shard of which wanted(entry) is true."""
    try:
        meta = reading.read_meta(work, name)
        games = [g for g in meta["games"] if wanted(g)]
        if games and not reading.damage(work, name, meta):
            return {g["gid"]: policy.claim(g, name) for g in games}
    except (OSError, ValueError):
        pass  # verify-shards tells about it
    return {}
