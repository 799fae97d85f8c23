"""Compaction: live rows into full shards, then away with the old ones. Killed anywhere, it loses nothing.

Shards are packed whole, never split: what a new shard replaces is removed before the next one is begun, so there is
never more than one shard's worth of extra disk in use.
"""

import os
import shutil

from ..store import files, workdir
from ..store.errors import Problem
from . import commit, index, policy, reading, room, verify, writing


def plan(work, latest, shard_rows, layout=None):
    """(groups, dead): lists of shards that together become one new shard, and shards with no live row.

    A shard is left alone if all its rows are live, its layout is `layout` (None: any) and no other of the same layout
    fits in with it; one that cannot be read and holds live rows is left to verify-shards. Raises Problem if a shard has
    a game that the manifest does not know: its rows would be taken for stale, and they may be all that is left of it.
    """
    claimed = {r.get("shard") for r in latest.values() if r.get("status") == "encoded"}
    live, dirty, layouts, groups = {}, set(), {}, []
    for name in reading.names(work):
        try:
            meta = reading.read_meta(work, name)
        except (OSError, ValueError):
            continue
        if verify.unknown_games(meta, latest):
            raise Problem(f"{name}: the manifest does not know its games: {verify.RECOVER}, then compact")
        if name in claimed:
            live[name] = sum(g["n_rows"] for g in _live_games(meta, name, latest))
            layouts[name] = layout or meta["layout"]
            if live[name] < meta["n_rows"] or meta["layout"] != layouts[name]:
                dirty.add(name)
    for name in sorted(live, key=lambda name: (-live[name], name)):  # first fit, largest first
        for group in groups:
            if layouts[group[0]] == layouts[name] and sum(live[n] for n in group) + live[name] <= shard_rows:
                group.append(name)
                break
        else:
            groups.append([name])
    groups = [sorted(group) for group in groups if len(group) > 1 or group[0] in dirty]
    return sorted(groups), [name for name in reading.names(work) if name not in claimed]


def _live_games(meta, name, latest):
    return [g for g in meta["games"] if g["gid"] in latest and latest[g["gid"]].get("shard") == name
            and policy.matches(g, latest[g["gid"]])]


def check_room(work, groups, layout):
    """Raises Problem if the rows of the groups, converted to `layout`, would not fit on the disk."""
    metas = [reading.read_meta(work, name) for group in groups for name in group if layout]
    if metas:
        room.check(work, sum(meta["n_rows"] for meta in metas if meta["layout"] != layout), layout)


def merge(work, manifest, names, layout=None):
    """Copy the live rows of the shards `names` into one new shard and append the events that move their games.

    layout: of the new shard; None: that of the first of the others. Returns the new shard's name, None if nothing was
    live. Games that were encoded again or thrown out meanwhile are stale in the new shard too. Raises OSError, and
    Problem when a shard is damaged: then nothing has changed.
    """
    writer = writing.Writer(work, layout or reading.read_meta(work, names[0])["layout"])
    try:
        encoders, seen = [], {}
        for name in names:
            meta = reading.read_meta(work, name)
            damage = reading.damage(work, name, meta, deep=True)
            if damage:
                raise Problem(f"{name}: {damage}: not compacted; `make check DEEP=1` tells what mends it")
            encoders.append(meta.get("encoder"))
            for g in _live_games(meta, name, manifest.latest):
                seen[g["gid"]] = manifest.latest[g["gid"]]
                writer.add(g["gid"], g["sha256"], reading.rows(work, name, meta, g), g.get("final"))
        if not writer.games:
            return None
        same = encoders.count(encoders[0]) == len(encoders)
        writer.finish(encoders[0] if same else {"name": "several", "version": "", "encoders": encoders})
        with manifest.locked() as append:
            live = [g for g in writer.games if manifest.latest.get(g["gid"]) == seen[g["gid"]]]
            if not live:
                return None
            new = writer.move_into_place(work, commit.used_numbers(manifest))
            append([policy.claim(g, new) for g in live])
        return new
    finally:
        writer.discard()


def remove(work, manifest, names):
    """Remove shards in which nothing is live, after putting an index in place that does not speak of them.

    A number that no event names would be free to be used again: such names are put on record first, with the current
    record of some game. Raises OSError.
    """
    with manifest.locked() as append:  # until they are out of sight: nobody can claim rows in them meanwhile
        live = {r.get("shard") for r in manifest.latest.values() if r.get("status") == "encoded"}
        names = [name for name in names if name not in live and os.path.lexists(workdir.path(work, "cache", name))]
        unnamed = [name for name in names if name not in manifest.claims]
        if unnamed and manifest.latest:
            append([{**policy.unchanged(next(iter(manifest.latest.values()))), "dropped": unnamed}])
        index.rebuild(work, manifest.latest)
        asides = []
        for name in names:
            # by a rename first: a reader never sees half a shard under its name
            path = workdir.path(work, "cache", name)
            asides.append(files.temporary_path(path))
            os.rename(path, asides[-1])
    for path in asides:
        shutil.rmtree(path, ignore_errors=True)  # what withstands is swept by the next run
    if names:
        files.sync_dir(workdir.cache(work))
    return names
