"""The files in xml/: what they are worth against the manifest, taking them in, throwing damaged ones out."""

import hashlib
import os
import zlib

from lib import files, hashes, identity, trash, workdir
from lib.manifest import kept

_LIMIT = 1 << 24  # bytes that a log may have, or unpack to; a long hanchan has 60 kB


def judge(record, sha256):
    """'ok', 'corrupt' or 'unknown' for a file with this hash, given its id's current record ({}: no record)."""
    known = record.get("sha256")
    if known is None:
        return "unknown"
    return "ok" if known == sha256 else "corrupt"


def check(work, manifest, ids=None, jobs=1, seen=None, trust=False, oldest=None):
    """Yield (kind, gid or file name) for each file of xml/ and each downloaded game without one.

    kind: ok, corrupt, missing, unknown, unreadable, absent (no file, and none is needed), or foreign for what
    is no regular file by a game's name. `ids` limits it to these; jobs: processes that hash. seen: a lib.hashes.Seen to
    be kept up to date; trust: files that look as they did at their last good hash are not hashed again; oldest: hash so
    many only, those that were hashed longest ago. Raises OSError.
    """
    latest, present = manifest.latest, set()
    if ids is None:
        ids, present, foreign = everything(work, latest)
        yield from (("foreign", name) for name in foreign)
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
        kind = _judge_found(latest.get(game) or {}, sha256)
        if kind in ("corrupt", "missing"):  # or it was put there after we read the manifest
            manifest.refresh()
            kind = _judge_again(work, game, manifest.latest.get(game) or {})
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
        return seen.is_sound(game, sha256, hashes.stamp(os.lstat(workdir.xml(work, game))))
    except FileNotFoundError:
        return False


def _judge_found(record, sha256):
    """The kind of a file with this hash, None for no file, Unreadable for one that nobody can judge."""
    if isinstance(sha256, files.Unreadable):
        return "unreadable"
    if sha256 is None:
        return "missing" if record.get("status") == "downloaded" else "absent"
    return judge(record, sha256)


def _judge_again(work, game, record):
    """The kind of a game's file, looked at closely: a log that the next run adopts in place of another is unknown."""
    try:
        data, sha256 = read(work, game)
    except FileNotFoundError:
        identity.must_be_here(work, "xml")
        return _judge_found(record, None)
    except files.Unreadable as e:
        return _judge_found(record, e)
    kind = judge(record, sha256)
    return "unknown" if kind == "corrupt" and _is_news(record, data, sha256) else kind


def throw_out(work, manifest, game):
    """Move a game's damaged file into the trash and append `corrupt`, unless it is sound by now; returns True if it was
    moved. Rows of the game keep their claim."""
    with manifest.locked() as append:
        record = manifest.latest.get(game, {})
        if _judge_again(work, game, record) != "corrupt":
            return False
        try:
            trash.put(work, workdir.xml(work, game))
        except FileNotFoundError:
            return False
        append([{"gid": game, "status": "corrupt", **kept(record)}])
    return True


def unsettled(work, manifest):
    """(gid or None, name) of each file in xml/ that `adopt` may have to do with, by name; None: it is no game's."""
    latest = manifest.latest
    encoded = {f"{game}.txt" for game, record in latest.items() if record.get("status") == "encoded"}
    return sorted(((game, entry.name) for game, entry in workdir.xml_files(work, encoded)
                   if not (_is_settled(latest.get(game)) and _is_as_recorded(latest[game], entry))),
                  key=lambda pair: pair[1])


def _is_as_recorded(record, entry):
    """True unless a file is seen to be no longer the one that was taken in as `downloaded`."""
    return record.get("whole", True) and record.get("size") in (None, entry.stat(follow_symlinks=False).st_size)


def adopt(work, manifest, game):
    """Take in the file of a game that the manifest does not know, or knows as lost or failed with other bytes.

    Returns the status appended ('downloaded', 'duplicate'), 'left' when the file is where it belongs already, is
    damaged or gone, 'moved' when it was a duplicate's left-over. A duplicate goes to the trash. Raises
    files.Unreadable, OSError.
    """
    if (manifest.latest.get(game) or {}).get("status") == "encoded":
        return "left"
    path = workdir.xml(work, game)
    with manifest.locked() as append:  # reading it under the lock too: others adopt, replace and delete it there
        record = manifest.latest.get(game)
        try:
            data, sha256 = read(work, game)
        except FileNotFoundError:
            return "left"
        if record and not _is_news(record, data, sha256):
            return "left"
        known = bool(record) and record.get("status") == "duplicate"
        whole = is_whole(data)
        twin = find_twin(work, manifest, game, sha256) if whole else None  # junk is alike often
        if twin:
            if not known:
                append([{"gid": game, "status": "duplicate", "sha256": sha256, "alias_of": twin}])
            trash.put(work, path)
            return "moved" if known else "duplicate"
        append([{"gid": game, "status": "downloaded", "sha256": sha256, "size": os.path.getsize(path),
                 **({} if whole else {"whole": False}), **kept(record)}])
    return "downloaded"


def _is_settled(record):
    """True if no file that may stand there changes what is known of a game: it is encoded, or known by its bytes."""
    status = (record or {}).get("status")
    return status == "encoded" or (status == "downloaded" and record.get("sha256") is not None)


def _is_news(record, data, sha256):
    """True if a file with these bytes changes what the manifest knows of a game that it knows."""
    status, known = record.get("status"), record.get("sha256")
    if status == "encoded":
        return False
    if known and sha256 != known and status in ("downloaded", "corrupt") and _was_unfinished(record, data):
        return True
    if _is_settled(record):
        return False
    if known is None:
        return status in ("corrupt", "downloaded", "failed")
    if status == "corrupt" and sha256 != known:
        return sha256 != record.get("found") and is_whole(data)  # the damaged file itself is left for repair
    if status == "failed" and record.get("stage") == "encode":
        return sha256 != known and is_whole(data, ended=True)  # not half a game again
    if status == "duplicate" and sha256 != known:
        return is_whole(data, ended=True)  # no duplicate any more
    return status in ("corrupt", "failed", "duplicate") and sha256 == known


def _was_unfinished(record, data):
    """True if what was recorded of a game was no whole log, but one that was still being copied: it is known for that,
    or a mere beginning of `data`."""
    size = record.get("size")
    if record.get("whole") is False:
        return True
    return (isinstance(size, int) and 0 <= size < len(data) and not is_whole(data[:size])
            and hashlib.sha256(data[:size]).hexdigest() == record["sha256"])


def is_whole(data, ended=False):
    """True if the bytes begin and end like a paipu; gzip is looked into, a BOM and white space are skipped. ended: and
    if the game was played to its end."""
    if data[:2] == b"\x1f\x8b":
        try:
            unpacker = zlib.decompressobj(wbits=31)
            data = unpacker.decompress(data, _LIMIT)
        except zlib.error:
            return False
        if not unpacker.eof:
            return False
    body = data.strip(b"\xef\xbb\xbf \t\r\n")
    return (body.startswith(b"<mjloggm") and body.endswith(b"</mjloggm>") and b"<GO" in body
            and (not ended or b"owari" in body))


def find_twin(work, manifest, game, sha256):
    """The id of another game that has these bytes and is sound, None if there is none. For use under the lock."""
    other = manifest.owners.get(sha256, game)
    return other if other != game and _is_sound(work, manifest.latest[other], sha256) else None


def _is_sound(work, record, sha256):
    """True if `record` is of a game that has these bytes, and its file still has them."""
    if record.get("sha256") != sha256 or record.get("status") not in ("encoded", "downloaded", "failed"):
        return False
    try:
        return read(work, record["gid"])[1] == sha256
    except (FileNotFoundError, files.Unreadable):
        return False


def read(work, game):
    """(bytes, sha256) of a game's file; raises files.Unreadable, OSError. Of one that is too long to be a log, only its
    beginning."""
    path = workdir.xml(work, game)
    with files.reading(path), files.open_regular(path) as f:
        data = f.read(_LIMIT + 1)
        digest = hashlib.sha256(data)
        while rest := f.read(1 << 20):
            digest.update(rest)
    return data, digest.hexdigest()
