"""Holding the files in xml/ against the manifest."""

import os

from ..store import identity, workdir
from . import compare, hashes, last_check


def check(work, manifest, ids=None, jobs=1, seen=None, trust=False, oldest=None):
    """Yield (kind, gid or file name) for each file of xml/ and each downloaded game without one.

    kind: ok, corrupt, missing, unknown (also by its file's name: as logs are named elsewhere), unreadable, absent (no
    file, and none is needed), or foreign for what is no regular file by a game's name. `ids` limits it to these; jobs:
    processes that hash. seen: LastChecks to be kept up to date; trust: files that look as they did at their last good
    hash are not hashed again; oldest: hash so many only, those that were hashed longest ago. Raises OSError, Problem if
    xml/ is not mounted.
    """
    identity.must_be_here(work, "xml")
    latest, present = manifest.latest, set()
    if ids is None:
        ids, present, foreign = everything(work, latest)
        yield from (("foreign" if workdir.why_foreign(work, name) else "unknown", name) for name in foreign)
    if oldest is not None:
        ids = sorted(ids, key=seen.checked)[:oldest]
    wanted = []
    for game in ids:
        record = latest.get(game) or {}
        sha256 = record.get("sha256")
        if trust and sha256 and _looks_sound(work, game, sha256, seen):
            yield "ok", game
        elif sha256 or game not in present:
            wanted.append((game, record.get("size") if isinstance(record.get("size"), int) else None))
        else:
            yield "unknown", game
    for game, sha256, stamp in hashes.hash_files(work, wanted, jobs):
        kind = compare.judge_found(latest.get(game) or {}, sha256)
        if kind in ("corrupt", "missing"):  # or it was put there after we read the manifest
            manifest.refresh()
            kind = compare.judge_again(work, game, manifest.latest.get(game) or {})
        if kind == "ok" and seen and stamp:
            seen.put(game, sha256, stamp)
        yield kind, game


def everything(work, latest):
    """(ids, those of them with a file, other names in xml/): what `check` looks at in a whole work directory."""
    present, foreign = set(), []
    for game, entry in workdir.xml_files(work):
        if game is None:
            foreign.append(entry.name)
        else:
            present.add(game)
    ids = sorted(present)  # near the order of the manifest, and so of what was read of it
    ids += [game for game, record in latest.items() if record.get("status") == "downloaded" and game not in present]
    return ids, present, foreign


def _looks_sound(work, game, sha256, seen):
    try:
        return seen.is_sound(game, sha256, last_check.stamp(os.lstat(workdir.xml(work, game))))
    except FileNotFoundError:
        return False
