"""A lost or broken manifest, rebuilt from what is left of it, the shards' meta.json and the files in xml/."""

import os
import shutil

from .. import manifest
from ..store import clock, files, workdir
from ..store.claims import kept
from ..store.errors import Problem
from . import policy, reading, verify


def recover(work):
    """Write a manifest that knows every row of every sound shard; returns (a Manifest, its old file's new name).

    Records that can still be read are kept as they are; a game that has none, or one for rows that are gone, gets one
    for its rows. Files in xml/ are left for adopting. The old file stays beside the new one, under a name with the
    time; the name is None if there was none. Both have the mode and the owner of the old one. Raises OSError, and
    Problem for a shard that cannot be read or is of another version, with the old manifest in place.
    """
    path = workdir.path(work, workdir.MANIFEST)
    old = manifest.Manifest(work)
    gone = set()
    for found in verify.check(work, reading.names(work), old):
        if found.verdict in ("unreadable", "foreign"):
            raise Problem(f"{found.shard}: {found.why}: nothing is changed")
        if found.is_lost:
            gone.add(found.shard)
    with old.locked():
        kept = _keep(path) if os.path.getsize(path) else None
        with open(path, "rb") as lines, files.atomic_write(path, os.fstat(lines.fileno())) as new:
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
    with open(path, "rb") as old, files.atomic_write(kept, os.fstat(old.fileno())) as copy:
        shutil.copyfileobj(old, copy, 1 << 20)
    return kept


def _claims(work, old, gone):
    """Yield lists of events for the games of sound shards that no event claims there; a game that has another current
    record keeps that one, unless it is for the same bytes in one of the `gone` shards; one that waits for its log again
    gets the rows as the claim that it holds. Of several shards with a game the last wins: numbers grow."""
    for name in reading.names(work):
        try:
            with reading.needing(name):
                meta = reading.read_meta(work, name)
                if reading.damage(work, name, meta):
                    continue
        except reading.Damaged:
            continue
        whole = None
        for g in meta["games"]:
            record, found = old.latest.get(g["gid"]), policy.claim(g, name)
            if _has_lost_its_claim(g, record):
                if whole is None:
                    whole = not reading.damage(work, name, meta, deep=True)  # it may be what the claim was lost for
                if whole:
                    yield [found, {**policy.unchanged(record), **kept(found)}]
            elif g["gid"] not in old.claims.get(name, ()):
                lost = policy.is_forgotten(g, name, old, gone) or policy.awaits(g, record)
                yield [found] if lost else [found, policy.unchanged(record)]


def _has_lost_its_claim(game, record):
    """True if a game waits for the very log of which the meta.json entry `game` has rows, and does not hold them."""
    if record is None or record.get("sha256") != game["sha256"] or "claim" in record:
        return False
    return record.get("status") == "corrupt" or (record.get("status"), record.get("stage")) == ("failed", "download")
