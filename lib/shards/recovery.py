"""A lost or broken manifest, rebuilt from what is left of it, the shards' meta.json and the files in xml/."""

import os
import shutil

from .. import manifest
from ..store import clock, files, workdir
from ..store.claims import kept
from ..store.errors import Problem
from . import policy, reading, verify


def recover(work):
    """Write a manifest that knows every row of every sound shard. Returns (a Manifest, the new name of the old file).

    Records that can still be read are kept as they are. A game without a record, or with a record of rows that are
    gone, gets one for the rows that it has. Files in xml/ are left to adopt-xml. The old file stays beside the new one,
    under a name with the time; the name is None if there was no old file. The new file has the permissions and the
    owner of the old one. Raises OSError, and Problem for a shard that cannot be read or is of another version; then
    the old manifest is still in place.
    """
    path = workdir.path(work, workdir.MANIFEST)
    old = manifest.Manifest(work)
    gone = set()
    for found in verify.check(work, reading.names(work), old):
        if found.verdict in ("unreadable", "foreign"):
            raise Problem(f"{found.shard}: {found.why}; nothing was changed")
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
    """Copy the manifest to a free name; returns that name."""
    stem = kept = f"{path}.{clock.now().replace(':', '')}"
    number = 1
    while os.path.exists(kept):
        number += 1
        kept = f"{stem}-{number}"
    with open(path, "rb") as old, files.atomic_write(kept, os.fstat(old.fileno())) as copy:
        shutil.copyfileobj(old, copy, 1 << 20)
    return kept


def _claims(work, old, gone):
    """Yield lists of events for the games of sound shards whose rows there no event claims. A game with another current
    record keeps that one, unless it is a claim on rows of the same log in one of the `gone` shards. A game that waits
    for its log keeps waiting, and holds a claim on the rows. If several shards have a game, the one with the highest
    number wins."""
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
                    whole = not reading.damage(work, name, meta, deep=True)  # the claim was perhaps dropped for damage
                if whole:
                    yield [found, {**policy.unchanged(record), **kept(found)}]
            elif g["gid"] not in old.claims.get(name, ()):
                lost = policy.is_forgotten(g, name, old, gone) or policy.awaits(g, record)
                yield [found] if lost else [found, policy.unchanged(record)]


def _has_lost_its_claim(game, record):
    """True if a game waits for just the log of which the meta.json entry `game` has rows, and has no claim on them."""
    if record is None or record.get("sha256") != game["sha256"] or "claim" in record:
        return False
    return record.get("status") == "corrupt" or (record.get("status"), record.get("stage")) == ("failed", "download")
