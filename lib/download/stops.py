"""The games at which a run stopped because the server refused them all, kept for the next run in the work directory.

One stop says nothing about games: the server may have refused everything. A second stop at the same games does.
"""

import contextlib

from ..store import files, gid, workdir

_FILE = ".refused"  # ids, one a line; without it the next stop is a first one


def games(work):
    """The ids at which the last run stopped that did. Raises OSError."""
    with contextlib.suppress(FileNotFoundError), open(workdir.path(work, _FILE), "rb") as f:
        return {game for line in f if gid.is_gid(game := line.decode(errors="replace").strip())}
    return set()


def note(work, ids):
    """Keep the ids at which this run stops, in the place of those of the run before. Raises OSError."""
    files.write(workdir.path(work, _FILE), "".join(f"{game}\n" for game in ids).encode())
