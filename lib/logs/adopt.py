"""Adopting: log files that somebody put into xml/ become events of the manifest."""

import contextlib
import hashlib
import os

from ..store import files, gid, trash, workdir
from . import compare, logfile, place, streams


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
    """Take in a file of xml/ that is named as logs are elsewhere, packed or not, under its game's id: unpacked.

    Returns (id, outcome of `place.put`), or (None, why it is left there). Raises files.Unreadable, OSError.
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
        return None, f"damaged, or not all of it is here yet: {streams.damages(e)}"
    if not logfile.is_whole(data):
        return None, "not a whole log"
    temporary = files.write_aside(workdir.xml(work, game), data)
    with manifest.locked() as append:
        outcome, news = place.put(work, manifest, game, data, hashlib.sha256(data).hexdigest(), temporary)
        if outcome == "another":
            return None, f"another log of {game} is here"
        files.sync_dir(os.path.dirname(path))
        append([{**news, "source": f"xml/{name}"}] if news else [])
        with contextlib.suppress(FileNotFoundError):
            own = workdir.xml(work, game)
            if path.lower() == own.lower() and os.path.exists(own) and os.path.samefile(path, own):
                os.rename(path, own)  # capitals make no other name here
            else:
                os.unlink(path)  # its bytes are in their place, or another game's
    return game, outcome
