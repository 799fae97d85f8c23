"""Repair of a damaged log file: it goes to the trash, and its game is downloaded again."""

from ..store import trash, workdir
from ..store.claims import kept
from . import compare


def throw_out(work, manifest, game):
    """Move the damaged file of a game into the trash and append `corrupt`; returns True. If the file is sound by now,
    do nothing and return False. The game keeps its claim on rows."""
    with manifest.locked() as append:
        record = manifest.latest.get(game, {})
        if compare.judge_again(work, game, record) != "corrupt":
            return False
        try:
            trash.put(work, workdir.xml(work, game))
        except FileNotFoundError:
            return False
        append([{"gid": game, "status": "corrupt", **kept(record)}])
    return True
