"""Logs in the trash that are the only copy of their game here: emptying the trash must not lose them unasked."""

import os

from ..store import files, gid, trash, workdir
from . import logfile


def find(work, manifest):
    """The paths of the files in trash/ that are named after a game of which xml/ has no log, neither under its own id
    nor, with the same bytes, under another. Raises OSError, and Problem if xml/ is not mounted."""
    folder, found = workdir.path(work, trash.FOLDER), []
    if os.path.islink(folder) or not os.path.isdir(folder):
        return found
    with os.scandir(folder) as entries:
        for entry in entries:
            game = gid.of_name(entry.name) if entry.is_file(follow_symlinks=False) else None
            if game and workdir.log_is_gone(work, game) and not _has_twin(work, manifest, game, entry.path):
                found.append(entry.path)
    return found


def _has_twin(work, manifest, game, path):
    try:
        with files.reading(path):
            return logfile.find_twin(work, manifest, game, files.sha256(path)) is not None
    except files.Unreadable:
        return False
