"""Repair: what becomes of a log file that is damaged."""

import os

from ..store import files, workdir
from . import compare


def throw_out(work, manifest, game):
    """Delete a game's damaged file and append `corrupt`, unless it is sound by now. Returns True if it was deleted."""
    path = workdir.xml(work, game)
    with manifest.locked() as append:
        try:
            if compare.judge_again(work, game, manifest.latest.get(game, {})) != "corrupt":
                return False
            os.unlink(path)
        except FileNotFoundError:
            return False
        files.sync_dir(os.path.dirname(path))
        append([{"gid": game, "status": "corrupt"}])
    return True
