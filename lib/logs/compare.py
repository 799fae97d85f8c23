"""Comparing a log file with the current record of its game: is it the recorded one, and does it change anything?"""

import hashlib

from ..store import files, identity
from . import logfile


def judge(record, sha256):
    """'ok', 'corrupt' or 'unknown' for a file with this hash; record: the current one of its id, {} if it has none."""
    known = record.get("sha256")
    if known is None:
        return "unknown"
    return "ok" if known == sha256 else "corrupt"


def judge_found(record, sha256):
    """The kind of a file; sha256: its hash, None if there is no file, an Unreadable if it cannot be read."""
    if isinstance(sha256, files.Unreadable):
        return "unreadable"
    if sha256 is None:
        return "missing" if record.get("status") == "downloaded" else "absent"
    return judge(record, sha256)


def judge_again(work, game, record):
    """The kind of a game's file, which is read again: if the next run adopts it in place of another, it is
    'unknown'."""
    try:
        data, sha256 = logfile.read(work, game)
    except FileNotFoundError:
        identity.must_be_here(work, "xml")
        return judge_found(record, None)
    except files.Unreadable as e:
        return judge_found(record, e)
    kind = judge(record, sha256)
    return "unknown" if kind == "corrupt" and is_news(record, data, sha256) else kind


def is_settled(record):
    """True if no file in xml/ can change this record: the game is encoded, or downloaded with a known hash."""
    status = (record or {}).get("status")
    return status == "encoded" or (status == "downloaded" and record.get("sha256") is not None)


def is_news(record, data, sha256):
    """True if a file with these bytes changes the current record of its game."""
    status, known = record.get("status"), record.get("sha256")
    if status == "encoded":
        return False
    if known and sha256 != known and status in ("downloaded", "corrupt") and _was_unfinished(record, data):
        return True
    if is_settled(record):
        return False
    if known is None:
        return status in ("corrupt", "downloaded", "failed")
    if status == "corrupt" and sha256 != known:
        return sha256 != record.get("found") and logfile.is_whole(data)  # the damaged file itself stays for repair
    if status == "failed" and record.get("stage") == "encode":
        return sha256 != known and logfile.is_whole(data, ended=True)  # not another unfinished game
    if status == "duplicate" and sha256 != known:
        return logfile.is_whole(data, ended=True)  # it is not a duplicate any more
    return status in ("corrupt", "failed", "duplicate") and sha256 == known


def _was_unfinished(record, data):
    """True if the recorded log was still being copied: the record says that it was not whole, or it is the beginning of
    `data`."""
    size = record.get("size")
    if record.get("whole") is False:
        return True
    return (isinstance(size, int) and 0 <= size < len(data) and not logfile.is_whole(data[:size])
            and hashlib.sha256(data[:size]).hexdigest() == record["sha256"])
