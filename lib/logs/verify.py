"""Comparing the files in xml/ with the manifest."""

import os

from ..store import identity, workdir
from . import compare, hashes, last_check


def check(work, manifest, ids=None, jobs=1, seen=None, trust=False, oldest=None):
    """Yield (kind, gid or file name) for each file in xml/ and for each downloaded game without a file.

    kind: ok, corrupt, missing, unknown (a log under another usual name too, with its file name), unreadable, absent (no
    file, and none is needed), or foreign for an entry that is not a regular file named after a game. ids: look only at
    these; jobs: processes that hash. seen: LastChecks to keep up to date; trust: do not hash files again that have not
    changed since they were last found sound; oldest: hash only so many files, those that were hashed longest ago.
    Raises OSError, and Problem if xml/ is not mounted.
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
        if kind in ("corrupt", "missing"):  # perhaps another process put it there after we read the manifest
            manifest.refresh()
            kind = compare.judge_again(work, game, manifest.latest.get(game) or {})
        if kind == "ok" and seen and stamp:
            seen.put(game, sha256, stamp)
        yield kind, game


def everything(work, latest):
    """(ids, those of them with a file, other names in xml/) that `check` looks at in a whole work directory."""
    present, foreign = set(), []
    for game, entry in workdir.xml_files(work):
        if game is None:
            foreign.append(entry.name)
        else:
            present.add(game)
    ids = sorted(present)  # close to the order of the records in memory
    ids += [game for game, record in latest.items() if record.get("status") == "downloaded" and game not in present]
    return ids, present, foreign


def _looks_sound(work, game, sha256, seen):
    try:
        return seen.is_sound(game, sha256, last_check.stamp(os.lstat(workdir.xml(work, game))))
    except FileNotFoundError:
        return False
