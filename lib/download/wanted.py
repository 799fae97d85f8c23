"""Which games are to be downloaded, now or later."""

import collections
import os

from ..store import gid, workdir
from ..store.clock import now
from . import idlist


def is_wanted(work, game, record, retry=False):
    """True if a game is to be downloaded: new, corrupt, lost, or failed at download and due (or `retry`)."""
    status = (record or {}).get("status")
    if record is None or status == "corrupt":
        return True
    if status == "downloaded":
        return workdir.log_is_gone(work, game)
    return has_failed(record) and (retry or not is_put_off(record))


def is_put_off(record):
    """True if a game's download failed and is to be tried again, but not yet."""
    return has_failed(record) and _due(record) > now()


def first_due(records):
    """When the first game of these whose download failed is to be tried again, as text; "9", after all times, for
    none."""
    return min(map(_due, filter(has_failed, records)), default="9")


def _due(record):
    return str(record.get("retry_at", "9"))


def has_failed(record):
    return record.get("status") == "failed" and record.get("stage") == "download"


def listed(work, latest):
    """year -> games of its list of ids that no record is of, the most first; years that have some. Raises OSError."""
    left = collections.Counter()
    for name in os.listdir(work):
        if found := idlist.NAME.fullmatch(name):
            with open(workdir.path(work, name), encoding="ascii", errors="replace") as f:
                left[found[1]] = sum(line.strip() not in latest for line in f)
    return {year: n for year, n in left.most_common() if n}


def linked(work, latest):
    """The ids of links that were imported (bin/import-logs) which no record is of. Raises OSError."""
    try:
        with open(workdir.path(work, workdir.LINKS), encoding="ascii", errors="replace") as f:
            return [game for line in f if gid.is_gid(game := line.strip()) and game not in latest]
    except FileNotFoundError:
        return []


def how_to(years):
    """What `listed` found as text of no more than 60 characters: how to have these games."""
    (first, n), *others = years.items()
    text = f"{n} by make run YEAR={first}"
    if others:
        text += f", {others[0][1]} by YEAR={others[0][0]}"
    return text + (f", {sum(n for _, n in others[1:])} more" if others[1:] else "")
