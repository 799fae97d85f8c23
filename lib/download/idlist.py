"""The id list of a year, game_ids_<year>.txt: was it made from the files in raw/ as they are now?"""

import contextlib
import os
import re

from ..store import files, workdir

NAME = re.compile(r"game_ids_(20[0-9]{2})\.txt")


def path(work, year):
    """The path of a year's list."""
    return workdir.path(work, f"game_ids_{year}.txt")


def is_of(work, year, rooms):
    """True if the list was made from the files in raw/ as they are now, with the table types `rooms`, a text."""
    with contextlib.suppress(FileNotFoundError), open(_sources(work, year), encoding="utf-8") as f:
        return os.path.exists(path(work, year)) and f.read() == _state(work, year, rooms)
    return False


def forget(work, year, rooms):
    """Remove the list, and note from which files the next one will be made. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path(work, year))
    files.write(_sources(work, year), _state(work, year, rooms).encode())


def _sources(work, year):
    return workdir.path(work, "raw", f"sources{year}")


def _state(work, year, rooms):
    """A text that changes with the files and the table types. Comparing times is not enough: a file that a user puts
    there may be older than the list."""
    with os.scandir(workdir.path(work, "raw")) as entries:
        stats = {entry.name: entry.stat() for entry in entries
                 if entry.name == f"scraw{year}.zip" or entry.name.startswith(f"scc{year}")}
    lines = [f"{name} {s.st_size} {s.st_mtime_ns} {s.st_ino}" for name, s in sorted(stats.items())]
    return "\n".join([rooms, *lines]) + "\n"
