"""A lost or broken manifest, rebuilt from what is left of it, the shards' meta.json and the files in xml/."""

import os
import shutil

from lib import claims, files, shards, workdir
from lib.manifest import Manifest, now, parse


def recover(work):
    """Write a manifest that knows every row of every sound shard; returns (the Manifest, its old file's new name).

    Records that can still be read are kept as they are; a game that has none gets one for its rows. Files in xml/ are
    left for adopting. The old file stays beside the new one, under a name with the time; the name is None if there was
    none. Raises OSError, with the old manifest in place.
    """
    path = workdir.path(work, workdir.MANIFEST)
    kept = f"{path}.{now().replace(':', '')}"
    manifest = Manifest(work)
    with manifest.locked():
        had_bytes = os.path.getsize(path) > 0
        if had_bytes:
            shutil.copyfile(path, files.aside(kept))
            os.rename(files.aside(kept), kept)
        with open(path, "rb") as old, files.replacing(path) as new:
            for line in old:
                if parse(line.rstrip(b"\n")):
                    new.write(line if line.endswith(b"\n") else line + b"\n")
    with manifest.locked() as append:
        for name in shards.names(work):
            try:
                meta = shards.read_meta(work, name)
            except (OSError, ValueError):
                continue
            if not shards.damage(work, name, meta):
                append(_claims(name, meta, manifest))
    return manifest, kept if had_bytes else None


def _claims(name, meta, manifest):
    """Events for the games of a shard that no event claims there; the ones with another current record keep that."""
    events = []
    for g in meta["games"]:
        record = manifest.latest.get(g["gid"])
        if g["gid"] in manifest.claims.get(name, ()):
            continue
        events.append(claims.claim(g, name))
        if record and not (record.get("status") == "downloaded" and record.get("sha256") == g["sha256"]):
            events.append(claims.again(record))
    return events
