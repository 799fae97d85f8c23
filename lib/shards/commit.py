"""Publishing a shard: its rename and the events that claim its rows, also those that a killed run left out."""


from . import policy, reading


def publish(writer, manifest, work, encoder, gone=()):
    """Finish `writer` and publish it: under the manifest's lock, rename it and append the events of those of its games
    that are still to be encoded. Returns their ids; when there are none, nothing is left of the shard. Raises OSError.
    """
    writer.finish(encoder)
    with manifest.locked() as append:
        current = {g["gid"]: manifest.latest.get(g["gid"], {}) for g in writer.games}
        ours = [g for g in writer.games if policy.needs_encoding(current[g["gid"]], encoder, gone)
                and current[g["gid"]].get("sha256") == g["sha256"]]
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
    """Append the `encoded` events that a killed commit could not: games of sound shards that are still to be encoded
    and whose rows there no event ever claimed. Returns their ids. Raises OSError.
    """
    if not any(policy.needs_encoding(r, encoder) for r in manifest.latest.values()):
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
    for name in reading.names(work):
        try:
            meta = reading.read_meta(work, name)
        except (OSError, ValueError):
            continue  # verify-shards tells about it
        claimed, record = manifest.claims.get(name, ()), manifest.latest.get
        games = [g for g in meta["games"]
                 if g["gid"] not in claimed and policy.needs_encoding(record(g["gid"]), encoder)
                 and record(g["gid"]).get("sha256") == g["sha256"]]
        if games and not reading.damage(work, name, meta):
            found |= {g["gid"]: policy.claim(g, name) for g in games}
    return found
