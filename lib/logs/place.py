"""A log's place in xml/: whether these bytes belong there under this id, and putting them there."""

import os

from ..store import trash, workdir
from ..store.claims import kept
from . import compare, logfile


def event(work, manifest, game, data, sha256, size):
    """The event by which these bytes become the log of a game, None if they change nothing of what is known of it. For
    use under the lock."""
    record = manifest.latest.get(game)
    if record and not compare.is_news(record, data, sha256):
        return None
    whole = logfile.is_whole(data)
    twin = logfile.find_twin(work, manifest, game, sha256) if whole else None  # junk is alike often
    if twin:
        return {"gid": game, "status": "duplicate", "sha256": sha256, "alias_of": twin}
    return {"gid": game, "status": "downloaded", "sha256": sha256, "size": size,
            **({} if whole else {"whole": False}), **kept(record)}


def put(work, manifest, game, data, sha256, temporary):
    """Move `temporary`, a file in xml/ whose bytes are synced, to where a game's log belongs, if it is to be taken in
    there; else remove it. What was there and is worth less goes to the trash.

    Returns (outcome, event to append or None). outcome: the event's status; "put back" for the log of a record that had
    none, or a damaged one; "known" for what is here already; "another" for other bytes than those here, which stay.
    For use under the lock; the caller syncs xml/. Raises files.Unreadable, OSError.
    """
    path = workdir.xml(work, game)
    try:
        outcome, news = _decide(work, manifest, game, data, sha256)
    except BaseException:
        os.unlink(temporary)
        raise
    if outcome not in ("downloaded", "put back"):
        os.unlink(temporary)
        return outcome, news
    if os.path.lexists(path) and logfile.read(work, game)[1] != sha256:
        trash.put(work, path)
    os.rename(temporary, path)
    return outcome, news


def _decide(work, manifest, game, data, sha256):
    record = manifest.latest.get(game) or {}
    try:
        here = logfile.read(work, game)
    except FileNotFoundError:
        here = None
        if os.path.lexists(workdir.xml(work, game)):
            return "another", None  # a link, or a directory
    if here and not record and here[1] != sha256 and logfile.is_whole(here[0]):
        return "another", None  # it is the next run that adopts it
    news = event(work, manifest, game, data, sha256, len(data))
    if not news and record.get("status") == "downloaded" and record.get("sha256") != sha256 and not here:
        # its own is lost
        news = {"gid": game, "status": "downloaded", "sha256": sha256, "size": len(data), **kept(record)}
    if news:
        return news["status"], news
    if record.get("sha256") != sha256:
        return "another", None
    return "known" if record["status"] == "duplicate" or (here and here[1] == sha256) else "put back", None
