"""Which games must be downloaded, now or later."""

import collections
import os

from ..store import gid, wording, workdir
from ..store.clock import now
from . import idlist


def is_wanted(work, game, record, retry=False):
    """True if a game must be downloaded: it is new, corrupt or lost, or its download failed and is due (or `retry`)."""
    status = (record or {}).get("status")
    if record is None or status == "corrupt":
        return True
    if status == "downloaded":
        return workdir.log_is_gone(work, game)
    return has_failed(record) and (retry or not is_put_off(record))


def is_put_off(record):
    """True if a game's download failed and is not due for another try yet."""
    return has_failed(record) and str(record.get("retry_at", "9")) > now()


def has_failed(record):
    return record.get("status") == "failed" and record.get("stage") == "download"


def listed(work, latest):
    """year -> how many games of its id list have no record, the year with the most first. Years without such games are
    left out. Raises OSError."""
    left = collections.Counter()
    for name in os.listdir(work):
        if found := idlist.NAME.fullmatch(name):
            with open(workdir.path(work, name), encoding="ascii", errors="replace") as f:
                left[found[1]] = sum(line.strip() not in latest for line in f)
    return {year: n for year, n in left.most_common() if n}


def linked(work, latest):
    """The ids from imported links (bin/import-logs) that have no record yet. Raises OSError."""
    try:
        with open(workdir.path(work, workdir.LINKS), encoding="ascii", errors="replace") as f:
            return [game for line in f if gid.is_gid(game := line.strip()) and game not in latest]
    except FileNotFoundError:
        return []


def how_to(work, years):
    """What `listed` found, as text: how many games, and the command that downloads those of the first year."""
    first, n = next(iter(years.items()))
    others = sum(years.values()) - n
    return f"{n + others} ({f'{n} of them by ' if others else ''}{wording.make(work, f'run YEAR={first}')})"
