"""Compaction: copy live rows into full shards, then remove the old shards. Killed anywhere, it loses nothing.

An old shard goes into one new shard as a whole. What a new shard replaces is removed before the next one is begun, so
that there is never more than one shard of extra disk in use. Rows of several encoder versions are never mixed in one
shard. If an old shard is damaged, or some of its rows are in no other shard, it goes to the trash and is not deleted.
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
    for name in sorted(live, key=lambda name: (-live[name], reading.order(name))):  # largest first
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
    """Copy the live rows of the shards `names` into one new shard and append the events that claim them there.

    layout: of the new shard; None: as the first of the old ones. Returns the new shard's name, None if no row was live.
    If a game is encoded again or thrown out meanwhile, its rows are stale in the new shard too. Raises OSError, and
    Problem if a shard is damaged or cannot be read: then nothing has changed.
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
    """The event that moves the claim of a game with this current record to the new place of its rows, `claim`."""
    return claim if record.get("status") == "encoded" else {**policy.unchanged(record), **kept(claim)}


def remove(work, manifest, names, say=lambda text: None):
    """Remove shards without live rows, after the index no longer lists them. say(text): tells of those that go to the
    trash. Returns the names of the removed shards.

    If no event names a shard, its number would be used again. So such names are put on record first, in an event that
    repeats the current record of some game. Raises OSError, Problem.
    """
    with manifest.locked() as append:  # until they are out of sight, so that nobody claims rows in them meanwhile
        identity.must_be_here(work, "cache")
        live = {claim.get("shard") for claim in map(held, manifest.latest.values()) if claim}
        names = [name for name in names if name not in live and os.path.lexists(workdir.path(work, "cache", name))]
        kept_for = {name: _why_kept(work, manifest, name) for name in names}
        unnamed = [name for name in names if name not in manifest.claims]
        if unnamed and manifest.latest:
            append([{**policy.unchanged(next(iter(manifest.latest.values()))), "dropped": unnamed}])
        index.rebuild(work, manifest.latest)
        asides = []
        for name in names:
            # by a rename first, so that a reader never sees half a shard under its name
            path = workdir.path(work, "cache", name)
            if kept_for[name]:
                say(f"{name} is not used any more and was moved to {trash.put(work, path)}, not deleted, because "
                    f"{kept_for[name]}; nothing else needs to be done")
            else:
                asides.append(files.temporary_path(path))
                os.rename(path, asides[-1])
    for path in asides:
        shutil.rmtree(path, ignore_errors=True)  # the next run sweeps what could not be removed
    if names:
        files.sync_dir(workdir.cache(work))
    return names


def _why_kept(work, manifest, name):
    """Why a shard without live rows is not deleted, as text; None if it is sound and all its games have rows elsewhere.
    """
    try:
        with reading.needing(name):
            meta = reading.read_meta(work, name)
            damage = reading.damage(work, name, meta)
    except reading.Damaged as e:
        damage = str(e)
    if damage:
        return f"it is damaged ({damage})"
    records = [manifest.latest.get(g["gid"], {}) for g in meta["games"]]
    n = sum(record.get("status") != "duplicate" and not held(record) for record in records)
    return f"no other shard has rows of {wording.count(n, 'game')} in it" if n else None
