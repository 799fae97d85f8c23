"""The games at which runs have stopped because the server refused them all, kept in the work directory for later runs.

One stop says nothing about games: the server may have refused everything. A second stop at the same games does.
"""

import contextlib

from ..store import files, gid, workdir

_FILE = ".refused"  # ids, one a line; without it the next stop is a first one


def games(work):
    """The ids at which earlier runs stopped. Raises OSError."""
    with contextlib.suppress(FileNotFoundError), open(workdir.path(work, _FILE), "rb") as f:
        return {game for line in f if gid.is_gid(game := line.decode(errors="replace").strip())}
    return set()


def note(work, ids):
    """Keep these ids, and no others, for `games`. Raises OSError."""
    files.write(workdir.path(work, _FILE), "".join(f"{game}\n" for game in sorted(ids)).encode())
