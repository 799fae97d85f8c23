"""A log's place in xml/: decide whether these bytes belong there under this id, and put them there."""

import os

from ..store import trash, workdir
from ..store.claims import kept
from . import compare, logfile


def event(work, manifest, game, data, sha256, size):
    """The event by which these bytes become the log of a game; None if they do not change its record. For use under the
    lock."""
    record = manifest.latest.get(game)
    if record and not compare.is_news(record, data, sha256):
        return None
    whole = logfile.is_whole(data)
    twin = logfile.find_twin(work, manifest, game, sha256) if whole else None  # junk may well be alike
    if twin:
        return {"gid": game, "status": "duplicate", "sha256": sha256, "alias_of": twin}
    return {"gid": game, "status": "downloaded", "sha256": sha256, "size": size,
            **({} if whole else {"whole": False}), **kept(record)}


def put(work, manifest, game, data, sha256, temporary):
    """Decide whether `temporary`, a synced file in xml/, becomes the log of a game. If so, rename it, and move a file
    that it replaces to the trash; otherwise remove it.

    Returns (outcome, event to append or None). outcome: the status of the event; "put back" if the recorded log was
    missing or damaged, and this is it; "known" if it is here already; "another" if the file here has other bytes and
    stays. For use under the lock; the caller syncs xml/. Raises files.Unreadable, OSError.
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
        return "another", None  # the next run adopts the one that is here
    news = event(work, manifest, game, data, sha256, len(data))
    if not news and record.get("status") == "downloaded" and record.get("sha256") != sha256 and not here:
        # the recorded log is lost
        news = {"gid": game, "status": "downloaded", "sha256": sha256, "size": len(data), **kept(record)}
    if news:
        return news["status"], news
    if record.get("sha256") != sha256:
        return "another", None
    return "known" if record["status"] == "duplicate" or (here and here[1] == sha256) else "put back", None
