"""How a work directory stands: what `make status` prints and the report begins with."""

import collections
import os
import shutil

from .. import manifest
from ..cli import settings
from ..download import wanted
from ..rows import encoder
from ..shards import policy, reading, verify
from ..store import clock, locks, workdir
from . import reasons

PARTS = ("xml", "cache", "trash")  # folders whose disk use is told one by one


def gather(work, events):
    """All that is to be told, as what JSON can hold; `events` is the History of `work`, up to date.

    Raises OSError.
    """
    records = events.latest.values()
    found = {
        "work": work, "time": clock.now(), **manifest.counts(events.latest),
        "failures": dict(collections.Counter(
            reasons.kind(r.get("error")) for r in records if r.get("status") == "failed").most_common()),
        **_shards(work, events), "disk": disk(work),
        "free": shutil.disk_usage(work).free, "bad_lines": len(events.bad),
    }
    end, rates = events.last_run()
    found["last_event"] = end and clock.utc(end.timestamp())
    found["at_work"] = locks.is_held(workdir.path(work, workdir.RUN_LOCK))
    left, found["lists"] = _left(work, events.latest)
    off = [record for record in records if wanted.is_put_off(record)]
    found["put_off"] = {"games": len(off), "first": min((t for r in off if clock.moment(t := r.get("retry_at"))),
                                                        default=None)}
    least = 3600 / max(settings.number("DELAY") or 0, 0.001)
    for kind, rate in (("downloads", rates.get("downloads") or least), ("encodes", rates.get("encodes"))):
        found[kind] = {"left": left[kind], "per_hour": round(rate, 1) if rate else None, "measured": kind in rates,
                       "seconds_left": round(3600 * left[kind] / rate) if rate else None}
    return found


def _shards(work, events):
    """What `make check` tells of the shards, and how many there are of each layout."""
    tally = collections.Counter()
    for found in verify.check(work, reading.names(work), events, encoder=encoder.ENCODER):
        tally[found.kind] += 1
        tally["stale"] += found.stale
        tally["outdated"] += found.outdated
    layouts = collections.Counter()
    for name in reading.names(work):
        try:
            layouts[reading.read_meta(work, name)["layout"]] += 1
        except reading.Damaged:
            layouts["damaged"] += 1
        except reading.Foreign:
            layouts["of another version"] += 1
        except OSError:
            layouts["unreadable"] += 1
    return {"shards": dict(layouts), "shard_mismatches": tally["mismatch"], "orphan_shards": tally["orphan"],
            "stale_rows": tally["stale"], "outdated_rows": tally["outdated"]}


def disk(work):
    """Bytes that a work directory takes on disk: of the folders PARTS, and of the `rest`."""
    return {name: sum(_sizes(workdir.path(work, name))) for name in PARTS} | {
        "rest": sum(_sizes(work, skip=PARTS))}


def _sizes(folder, skip=()):
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in skip:
                        yield from _sizes(entry.path)
                else:
                    yield 512 * entry.stat(follow_symlinks=False).st_blocks
    except FileNotFoundError:
        pass  # a run is at work there


def _left(work, latest):
    """(how many games are still to be downloaded, those of the id lists too, and to be encoded; those of the lists)."""
    left = collections.Counter()
    for game, record in latest.items():
        if wanted.is_wanted(work, game, record):
            left["downloads"] += 1
        elif policy.needs_encoding(record, encoder.ENCODER):
            left["encodes"] += 1
    lists = wanted.listed(work, latest)
    left["downloads"] += sum(lists.values()) + len(wanted.linked(work, latest))
    return left, lists


def lines(found):
    """What `gather` found as lines `name : value` for a terminal of 80 columns."""
    yield from (f"{plain(status)[:60]} : {n}" for status, n in found["statuses"].items())
    yield f"games : {found['games']}"
    yield f"rows : {found['rows']}"
    layouts = ", ".join(f"{n} {layout}" for layout, n in found["shards"].items())
    yield f"shards : {sum(found['shards'].values())}" + (f" ({layouts})" if layouts else "")
    for name in ("shard_mismatches", "orphan_shards", "stale_rows"):
        yield f"{name.replace('_', ' ')} : {found[name]}"
    if found["outdated_rows"]:
        yield f"outdated rows : {found['outdated_rows']}"
    parts = ", ".join(f"{name} {size(n)}" for name, n in found["disk"].items() if n)
    yield f"disk use : {size(sum(found['disk'].values()))}{f' ({parts})' if parts else ''}, {size(found['free'])} free"
    for name, kind in (("download", "downloads"), ("encode", "encodes")):
        yield f"left to {name} : {left(found[kind])}"
        if kind == "downloads" and found["lists"]:
            yield f"listed, not downloaded : {wanted.how_to(found['work'], found['lists'])}"
    if found["put_off"]["games"]:
        yield f"asked again later : {found['put_off']['games']} ({put_off(found['put_off'])})"
    if found["last_event"]:
        yield f"last event : {found['last_event']}{'' if found['at_work'] else ', no run is at work'}"
    failures = list(found["failures"].items())
    if failures:
        yield "failures by reason :"
        for reason, n in failures[:5]:
            yield f"  {n:>7}  {plain(reason)[:69]}"
        if failures[5:]:
            yield f"  {sum(n for _, n in failures[5:]):>7}  for {len(failures) - 5} other reasons"


def left(work):
    """What is left of one kind of work, as text."""
    if not work["left"] or work["seconds_left"] is None:
        return f"{work['left']}"
    rate = f"{work['per_hour']:g} an hour" + (" in the last run" if work["measured"] else " at best")
    return f"{work['left']}, {duration(work['seconds_left'])} ({rate})"


def put_off(found):
    """When the games are asked for again whose download failed, as text."""
    first = f"the first on {found['first'][:10]}; " if found["first"] else ""
    return f"{first}RETRY=1 asks now"


def plain(text):
    """Text that may come from anywhere, safe for a terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)


def size(n):
    """A number of bytes as text, three digits at least: 0 B, 14.2 MB, 520 MB."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if n < 999.5 or unit == "TB":
            return f"{n:.0f} {unit}" if unit == "B" or n >= 99.95 else f"{n:.1f} {unit}"
        n /= 1000


def duration(seconds):
    """A number of seconds as text: 4 d 07 h, 3 h 20 min, 12 min, 40 s."""
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if days:
        return f"{days} d {hours % 24:02d} h"
    if hours:
        return f"{hours} h {minutes % 60:02d} min"
    return f"{minutes} min" if minutes else f"{seconds} s"
