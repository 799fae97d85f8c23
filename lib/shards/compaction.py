"""Compaction: live rows into full shards, then away with the old ones. Killed anywhere, it loses nothing.

Shards are packed whole, never split: what a new shard replaces is removed before the next one is begun, so there is
never more than one shard's worth of extra disk in use. Rows of several encoder versions never come into one shard. A
shard whose rows do not all stand elsewhere, or that is damaged, goes to the trash.
"""

import contextlib
import json
import os
import shutil

from ..store import files, identity, trash, wording, workdir
from ..store.claims import held, kept
from ..store.errors import Problem
from . import commit, index, policy, reading, room, writing


def plan(work, manifest, shard_rows, layout=None):
    """(groups, dead): lists of shards that together become one new shard, and shards with no live row.

    A shard is left alone if all its rows are live, its layout is `layout` (None: any) and no other of the same layout
    and encoder fits in with it; a damaged one that holds live rows is left to verify-shards. Raises Problem for what
    cannot be read or is of another version, and if the manifest has lost track of a game of a shard: its rows would be
    taken for stale, and they may be all that is left of it.
    """
    identity.must_be_here(work, "cache")
    recover = wording.make(work, "recover")
    latest, live, dirty, kinds, groups, dead = manifest.latest, {}, set(), {}, [], []
    claimed = {claim.get("shard") for claim in map(held, latest.values()) if claim}
    gone = claimed - set(reading.names(work))
    for name in reading.names(work):
        meta = None
        with reading.needing(name), contextlib.suppress(reading.Damaged):
            meta = reading.read_meta(work, name)
        if meta and any(policy.is_forgotten(g, name, manifest, gone) for g in meta["games"]):
            raise Problem(f"{name}: the manifest has lost track of its games; to record them again: {recover}")
        if name not in claimed:
            if not meta and not latest:
                raise Problem(f"{name}: neither its {reading.META} nor the manifest tells which games it has; "
                              f"to rebuild the manifest: {recover}")
            dead.append(name)
        elif meta:
            live[name] = sum(g["n_rows"] for g in policy.live(meta, name, latest))
            kinds[name] = layout or meta["layout"], json.dumps(meta.get("encoder"), sort_keys=True)
            if live[name] < meta["n_rows"] or meta["layout"] != kinds[name][0]:
                dirty.add(name)
    for name in sorted(live, key=lambda name: (-live[name], reading.order(name))):  # first fit, largest first
        for group in groups:
            if kinds[group[0]] == kinds[name] and sum(live[n] for n in group) + live[name] <= shard_rows:
                group.append(name)
                break
        else:
            groups.append([name])
    groups = [sorted(group, key=reading.order) for group in groups if len(group) > 1 or group[0] in dirty]
    return sorted(groups, key=lambda group: reading.order(group[0])), dead


def check_room(work, groups, layout):
    """Raises Problem if the rows of the groups, converted to `layout`, would not fit on the disk."""
    metas = [reading.read_meta(work, name) for group in groups for name in group if layout]
    if metas:
        room.check(work, sum(meta["n_rows"] for meta in metas if meta["layout"] != layout), layout)


def merge(work, manifest, names, layout=None):
    """Copy the live rows of the shards `names` into one new shard and append the events that move their claims.

    layout: of the new shard; None: that of the first of the others. Returns the new shard's name, None if nothing was
    live. Games that were encoded again or thrown out meanwhile are stale in the new shard too. Raises OSError, and
    Problem when a shard is damaged or cannot be read: then nothing has changed.
    """
    writer = None
    try:
        encoders, seen = [], {}
        for name in names:
            with reading.needing(name):
                meta = reading.read_meta(work, name)
                damage = reading.damage(work, name, meta, deep=True)
            if damage:
                raise Problem(f"{name}: {damage}; not compacted. To see what mends it: "
                              f"{wording.make(work, 'check DEEP=1')}")
            writer = writer or writing.Writer(work, layout or meta["layout"])
            encoders.append(meta.get("encoder"))
            for g in policy.live(meta, name, manifest.latest):
                seen[g["gid"]] = manifest.latest[g["gid"]]
                with reading.needing(name):
                    rows = reading.rows(work, name, meta, g)
                writer.add(g["gid"], g["sha256"], rows, g.get("final"))
        if not writer.games:
            return None
        if any(encoder != encoders[0] for encoder in encoders):
            raise Problem(f"{' '.join(names)}: rows of several encoder versions: not compacted")
        writer.finish(encoders[0])
        with manifest.locked() as append:
            identity.must_be_here(work, "cache")
            live = [g for g in writer.games if manifest.latest.get(g["gid"]) == seen[g["gid"]]]
            if not live:
                return None
            new = writer.move_into_place(work, commit.used_numbers(manifest))
            append([_moved(seen[g["gid"]], policy.claim(g, new)) for g in live])
        return new
    finally:
        if writer:
            writer.discard()


def _moved(record, claim):
    """The event that gives a game with this current record the `claim` on its rows' new place."""
    return claim if record.get("status") == "encoded" else {**policy.unchanged(record), **kept(claim)}


def remove(work, manifest, names, say=lambda text: None):
    """Remove shards in which nothing is live, after putting an index in place that does not speak of them. say(text):
    tells of those that go to the trash.

    A number that no event names would be free to be used again: such names are put on record first, with the current
    record of some game. Raises OSError, Problem.
    """
    with manifest.locked() as append:  # until they are out of sight: nobody can claim rows in them meanwhile
        identity.must_be_here(work, "cache")
        live = {claim.get("shard") for claim in map(held, manifest.latest.values()) if claim}
        names = [name for name in names if name not in live and os.path.lexists(workdir.path(work, "cache", name))]
        replaced = [name for name in names if _is_replaced(work, manifest, name)]
        unnamed = [name for name in names if name not in manifest.claims]
        if unnamed and manifest.latest:
            append([{**policy.unchanged(next(iter(manifest.latest.values()))), "dropped": unnamed}])
        index.rebuild(work, manifest.latest)
        asides = []
        for name in names:
            # by a rename first: a reader never sees half a shard under its name
            path = workdir.path(work, "cache", name)
            if name in replaced:
                asides.append(files.temporary_path(path))
                os.rename(path, asides[-1])
            else:
                say(f"{name} is damaged, or has rows that no other shard has: it is in {trash.put(work, path)} now")
    for path in asides:
        shutil.rmtree(path, ignore_errors=True)  # what withstands is swept by the next run
    if names:
        files.sync_dir(workdir.cache(work))
    return names


def _is_replaced(work, manifest, name):
    """True if a shard is sound and the rows of all its games stand elsewhere."""
    try:
        with reading.needing(name):
            meta = reading.read_meta(work, name)
            if reading.damage(work, name, meta):
                return False
    except reading.Damaged:
        return False
    records = [manifest.latest.get(g["gid"], {}) for g in meta["games"]]
    return all(record.get("status") == "duplicate" or held(record) for record in records)
