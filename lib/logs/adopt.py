"""Adopting: log files that somebody put into xml/ become events of the manifest."""

import os

from ..store import workdir
from . import compare, logfile


def unsettled(work, manifest):
    """(gid or None, name) of each file in xml/ that `take_in` may have to do with, by name; None: it is no game's."""
    settled = {f"{game}.txt" for game, record in manifest.latest.items() if compare.is_settled(record)}
    return sorted(((game, entry.name) for game, entry in workdir.xml_files(work, settled)), key=lambda pair: pair[1])


def take_in(work, manifest, game):
    """Take in the file of a game that the manifest does not know, or knows as lost or failed with other bytes.

    Returns the status appended ('downloaded', 'duplicate'), 'left' when the file is where it belongs already, is
    damaged or gone, 'deleted' when it was a duplicate's left-over. Raises files.Unreadable, OSError.
    """
    if compare.is_settled(manifest.latest.get(game)):
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
        whole = logfile.is_whole(data)  # junk is alike often
        twin = logfile.find_twin(work, manifest, game, sha256) if whole else None
        if twin:
            if not known:
                append([{"gid": game, "status": "duplicate", "sha256": sha256, "alias_of": twin}])
            os.unlink(path)
            return "deleted" if known else "duplicate"
        append([{"gid": game, "status": "downloaded", "sha256": sha256, "size": os.path.getsize(path)}])
    return "downloaded"
