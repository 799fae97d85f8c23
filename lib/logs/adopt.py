"""Adopting: log files that somebody put into xml/ become events of the manifest."""

import os

from ..store import trash, workdir
from ..store.claims import kept
from . import compare, logfile


def unsettled(work, manifest):
    """(gid or None, name) of each file in xml/ that `take_in` may have to do with, by name; None: it is no game's."""
    latest = manifest.latest
    encoded = {f"{game}.txt" for game, record in latest.items() if record.get("status") == "encoded"}
    return sorted(((game, entry.name) for game, entry in workdir.xml_files(work, encoded)
                   if not (compare.is_settled(latest.get(game)) and _is_as_recorded(latest[game], entry))),
                  key=lambda pair: pair[1])


def _is_as_recorded(record, entry):
    """True unless a file is seen to be no longer the one that was taken in as `downloaded`."""
    return record.get("whole", True) and record.get("size") in (None, entry.stat(follow_symlinks=False).st_size)


def take_in(work, manifest, game):
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
            data, sha256 = logfile.read(work, game)
        except FileNotFoundError:
            return "left"
        if record and not compare.is_news(record, data, sha256):
            return "left"
        known = bool(record) and record.get("status") == "duplicate"
        whole = logfile.is_whole(data)
        twin = logfile.find_twin(work, manifest, game, sha256) if whole else None  # junk is alike often
        if twin:
            if not known:
                append([{"gid": game, "status": "duplicate", "sha256": sha256, "alias_of": twin}])
            trash.put(work, path)
            return "moved" if known else "duplicate"
        append([{"gid": game, "status": "downloaded", "sha256": sha256, "size": os.path.getsize(path),
                 **({} if whole else {"whole": False}), **kept(record)}])
    return "downloaded"
