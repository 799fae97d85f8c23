"""Repair: what becomes of a log file that is damaged."""

from ..store import trash, workdir
from ..store.claims import kept
from . import compare


def throw_out(work, manifest, game):
    """Move a game's damaged file into the trash and append `corrupt`, unless it is sound by now; returns True if it was
    moved. Rows of the game keep their claim. Raises OSError."""
    with manifest.locked() as append:
        record = manifest.latest.get(game, {})
        if compare.judge_again(work, game, record) != "corrupt":
            return False
        trash.put(work, workdir.xml(work, game))
        append([{"gid": game, "status": "corrupt", **kept(record)}])
    return True
