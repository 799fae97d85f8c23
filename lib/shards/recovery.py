"""A lost or broken manifest, rebuilt from what is left of it, the shards' meta.json and the files in xml/."""

import os
import shutil

from .. import manifest
from ..store import clock, files, workdir
from . import policy, reading, verify


def recover(work):
    """Write a manifest that knows every row of every sound shard; returns (a Manifest, its old file's new name).

    Records that can still be read are kept as they are; a game that has none, or one for rows that are gone, gets one
    for its rows. Files in xml/ are left for adopting. The old file stays beside the new one, under a name with the
    time; the name is None if there was none. Raises OSError, with the old manifest in place.
    """
    path = workdir.path(work, workdir.MANIFEST)
    old = manifest.Manifest(work)
    gone = verify.broken(work, old)
    with old.locked():
        kept = _keep(path) if os.path.getsize(path) else None
        with open(path, "rb") as lines, files.atomic_write(path) as new:
            bad = set(old.bad)
            for number, line in enumerate(lines, 1):
                if number not in bad:
                    new.write(line.rstrip(b"\n") + b"\n")
            for events in _claims(work, old, gone):
                new.write(manifest.encode(events))
    return manifest.Manifest(work), kept


def _keep(path):
    """Copy the manifest to a name that is free; returns it."""
    stem = kept = f"{path}.{clock.now().replace(':', '')}"
    number = 1
    while os.path.exists(kept):
        number += 1
        kept = f"{stem}-{number}"
    with open(path, "rb") as old, files.atomic_write(kept) as copy:
        shutil.copyfileobj(old, copy, 1 << 20)
    return kept


def _claims(work, old, gone):
    """Yield lists of events for the games of sound shards that no event claims there; a game that has another current
    record keeps that one, unless it is for the same bytes in one of the `gone` shards. Of several shards with a game
    the last wins: numbers grow."""
    for name in reading.names(work):
        try:
            meta = reading.read_meta(work, name)
        except (OSError, ValueError):
            continue
        if reading.damage(work, name, meta):
            continue
        for g in meta["games"]:
            if g["gid"] not in old.claims.get(name, ()):
                record, found = old.latest.get(g["gid"]), policy.claim(g, name)
                lost = record is None or policy.awaits(g, record) or (
                    record.get("shard") in gone and record.get("status") == "encoded"
                    and record.get("sha256") == g["sha256"])
                yield [found] if lost else [found, policy.unchanged(record)]
