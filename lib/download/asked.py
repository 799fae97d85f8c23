"""What the last run was to download: the file IDS, or a YEAR. It is kept for those who look without naming either."""

import contextlib
import os
import re

from ..cli import settings
from ..store import files, workdir


def note(work, ids, year):
    """Keep the path `ids`, or else the year, for `recall`; neither, or a pipe, leaves what is kept. What keeps it from
    being written hinders nobody: it only informs."""
    line = f"IDS={os.path.abspath(ids)}\n" if os.path.isfile(ids) else f"YEAR={year}\n" if year and not ids else ""
    if line and _read(work) != line:
        with contextlib.suppress(OSError):
            files.write(workdir.path(work, workdir.ASKED), os.fsencode(line))


def recall(work):
    """(path of the file with ids, year), as texts: those of the settings, or else of the last run; one of them at
    most, '' for the other. A file of the last run that is gone does not count."""
    ids, year = settings.get("IDS"), settings.get("YEAR")
    if ids or year:
        return ids, "" if ids else year
    name, _, value = _read(work).removesuffix("\n").partition("=")
    return (value if name == "IDS" and os.path.isfile(value) else "",
            value if name == "YEAR" and re.fullmatch("20[0-9]{2}", value) else "")


def _read(work):
    with contextlib.suppress(OSError), open(workdir.path(work, workdir.ASKED), "rb") as f:
        return os.fsdecode(f.read()).replace("\0", "")
    return ""
