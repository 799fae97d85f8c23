"""Which games must be downloaded, now or later."""

import collections
import os

from ..cli import again
from ..store import gid, workdir
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
    return has_failed(record) and _due(record) > now()


def first_due(records):
    """When the first game of these whose download failed is to be tried again, as text; "9", after all times, for
    none."""
    return min(map(_due, filter(has_failed, records)), default="9")


def _due(record):
    return str(record.get("retry_at", "9"))


def has_failed(record):
    return record.get("status") == "failed" and record.get("stage") == "download"


def listed(work, latest, chosen=""):
    """list -> how many of its games have no record. The first is the file of ids or links `chosen`, as IDS=<path>; then
    come the id lists, by their years, the year with the most first; these do not count the games of `chosen` again.
    Lists without such games are left out. Raises OSError."""
    left, ours = collections.Counter(), _ids_in(chosen) - latest.keys()
    for name in os.listdir(work):
        if found := idlist.NAME.fullmatch(name):
            with open(workdir.path(work, name), encoding="ascii", errors="replace") as f:
                left[found[1]] = sum((game := line.strip()) not in latest and game not in ours for line in f)
    return {name: n for name, n in [(f"IDS={chosen}", len(ours)), *left.most_common()] if n}


def _ids_in(path):
    """The ids in the file IDS; none if it is a pipe, which can be read only once."""
    if not os.path.isfile(path):
        return set()
    with open(path, encoding="utf-8-sig", errors="replace") as f:
        return set(filter(None, map(gid.parse, f)))


def linked(work, latest):
    """The ids from imported links (bin/import-logs) that have no record yet. Raises OSError."""
    try:
        with open(workdir.path(work, workdir.LINKS), encoding="ascii", errors="replace") as f:
            return [game for line in f if gid.is_gid(game := line.strip()) and game not in latest]
    except FileNotFoundError:
        return []


def how_to(work, lists, **changed):
    """What `listed` found, as text: how many games, and the command that downloads those of the first list. changed:
    more settings of the command."""
    first, n = next(iter(lists.items()))
    others = sum(lists.values()) - n
    year, path = ("", first[4:]) if first.startswith("IDS=") else (first, "")
    return f"{n + others} ({f'{n} of them by ' if others else ''}{again.run(work, YEAR=year, IDS=path, **changed)})"
