"""Adopting: log files that somebody put into xml/ become events of the manifest."""

import contextlib
import hashlib
import os

from ..store import files, gid, trash, workdir
from . import compare, logfile, place, streams


def unsettled(work, manifest):
    """(gid or None, name), sorted by name, of each file in xml/ that may have to be adopted. The gid is None if the
    file is not called <gid>.txt."""
    latest = manifest.latest
    encoded = {f"{game}.txt" for game, record in latest.items() if record.get("status") == "encoded"}
    return sorted(((game, entry.name) for game, entry in workdir.xml_files(work, encoded)
                   if not (compare.is_settled(latest.get(game)) and _is_as_recorded(latest[game], entry))),
                  key=lambda pair: pair[1])


def _is_as_recorded(record, entry):
    """False if the file has changed since it became `downloaded`, as far as its size shows."""
    return record.get("whole", True) and record.get("size") in (None, entry.stat(follow_symlinks=False).st_size)


def take_in(work, manifest, game):
    """Adopt the file of a game that the manifest does not know, or knows as lost or failed with other bytes.

    Returns the appended status ('downloaded', 'duplicate'); 'left' if the file is known already, damaged or gone;
    'moved' if it was the left-over file of a known duplicate. A duplicate goes to the trash. Raises files.Unreadable,
    OSError.
    """
    if (manifest.latest.get(game) or {}).get("status") == "encoded":
        return "left"
    path = workdir.xml(work, game)
    with manifest.locked() as append:  # read the file under the lock too: others adopt, replace and delete it there
        try:
            data, sha256 = logfile.read(work, game)
        except FileNotFoundError:
            return "left"
        known = (manifest.latest.get(game) or {}).get("status") == "duplicate"
        news = place.event(work, manifest, game, data, sha256, os.path.getsize(path))
        if not news:
            return "left"
        if news["status"] == "duplicate":
            if not known:
                append([news])
            trash.put(work, path)
            return "moved" if known else "duplicate"
        append([news])
    return "downloaded"


def take_in_renamed(work, manifest, name):
    """Adopt a file of xml/ that has another usual name of a log: unpack it if it is packed, and call it <gid>.txt.

    Returns (id, outcome of `place.put`), or (None, why it was not adopted). Raises files.Unreadable, OSError.
    """
    path, game = workdir.path(work, "xml", name), gid.of_name(name)
    try:
        with files.reading(path), files.open_regular(path) as f:
            stream = streams.Stream(f)
            packed = streams.unpacked(stream)
            data = (streams.Stream(packed) if packed else stream).read(logfile.LIMIT + 1)
    except FileNotFoundError:
        return None, "it is gone"
    except Exception as e:
        if streams.damages(e) is None:
            raise
        return None, f"damaged or still being copied: {streams.damages(e)}"
    if not logfile.is_whole(data):
        return None, "not a whole log, or not a log at all: replace it or move it away"
    temporary = files.write_aside(workdir.xml(work, game), data)
    with manifest.locked() as append:
        outcome, news = place.put(work, manifest, game, data, hashlib.sha256(data).hexdigest(), temporary)
        if outcome == "another":
            return None, f"another log of {game} is here already"
        files.sync_dir(os.path.dirname(path))
        append([{**news, "source": f"xml/{name}"}] if news else [])
        with contextlib.suppress(FileNotFoundError):
            own = workdir.xml(work, game)
            if path.lower() == own.lower() and os.path.exists(own) and os.path.samefile(path, own):
                os.rename(path, own)  # on this file system both names mean one file
            else:
                os.unlink(path)  # the same bytes are in their place, as this game's log or another's
    return game, outcome
