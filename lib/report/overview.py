"""How a work directory stands: what `make status` prints and the report begins with."""

import collections
import os
import shutil

from ..cli import again, settings, units
from ..download import asked, idlist, wanted
from ..rows import encoder
from ..shards import pace, policy, reading, totals, verify
from ..store import clock, locks, workdir
from . import reasons

PARTS = ("xml", "cache", "trash")  # folders whose disk use is told one by one


def gather(work, events):
    """All that is to be told, as what JSON can hold; `events` is the History of `work`, up to date.

    Raises OSError.
    """
    records = events.latest.values()
    found = {
        "work": work, "time": clock.now(), **totals.count(work, events),
        "failures": dict(collections.Counter(
            reasons.kind(r.get("error")) for r in records if r.get("status") == "failed").most_common()),
        **_shards(work, events), "disk": disk(work),
        "free": shutil.disk_usage(work).free, "bad_lines": len(events.bad),
    }
    end, downloading = events.last_event(), events.pace()
    found["last_event"] = end and clock.utc(end.timestamp())
    found["run"] = locks.holder(workdir.path(work, workdir.RUN_LOCK))
    found["at_work"] = found["run"] is not None
    ids, year = asked.recall(work)
    left, found["lists"] = _left(work, events.latest, ids)
    found["list_to_come"] = year if year and not os.path.exists(idlist.path(work, year)) else None
    found["go_on_with"] = pace.named(work)
    off = [record for record in records if wanted.is_put_off(record)]
    found["put_off"] = {"games": len(off), "first": min((t for r in off if clock.moment(t := r.get("retry_at"))),
                                                        default=None)}
    best = 3600 / max(settings.number("DELAY") or 0, 0.001)  # logs that were imported count too, and come quicker
    is_known = downloading is not None and downloading <= best
    encoding = pace.encoding(work, settings.number("JOBS") or settings.cores())
    for kind, rate, measured in (("downloads", downloading if is_known else best, is_known),
                                 ("encodes", encoding, encoding is not None)):
        found[kind] = {"left": left[kind], "per_hour": round(rate, 1) if rate else None, "measured": measured,
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


def _left(work, latest, ids):
    """(how many games are still to be downloaded, those of the id lists and of the file `ids` too, and to be encoded;
    those of the lists)."""
    left = collections.Counter()
    for game, record in latest.items():
        if wanted.is_wanted(work, game, record):
            left["downloads"] += 1
        elif policy.needs_encoding(record, encoder.ENCODER):
            left["encodes"] += 1
    lists = wanted.listed(work, latest, ids)
    left["downloads"] += sum(lists.values()) + len(wanted.linked(work, latest))
    return left, lists


def lines(found):
    """What `gather` found as lines `name : value` for a terminal of 80 columns."""
    yield from (f"{plain(status)[:60]} : {n}" for status, n in found["statuses"].items())
    yield from totals.lines(found["work"], found)
    layouts = ", ".join(f"{n} {layout}" for layout, n in found["shards"].items())
    yield f"shards : {sum(found['shards'].values())}" + (f" ({layouts})" if layouts else "")
    for name in ("shard_mismatches", "orphan_shards", "stale_rows"):
        yield f"{name.replace('_', ' ')} : {found[name]}"
    if found["outdated_rows"]:
        yield f"outdated rows : {found['outdated_rows']}"
    parts = ", ".join(f"{name} {units.size(n)}" for name, n in found["disk"].items() if n)
    whole, free = units.size(sum(found["disk"].values())), units.size(found["free"])
    yield f"disk use : {whole}{f' ({parts})' if parts else ''}, {free} free"
    for name, kind in (("download", "downloads"), ("encode", "encodes")):
        yield f"left to {name} : {left(found[kind], kind)}"
        if kind == "downloads" and found["lists"]:
            yield f"listed, not downloaded : {how_to(found)}"
        if kind == "downloads" and found["list_to_come"]:
            run = again.run(found["work"], YEAR=found["list_to_come"], **found["go_on_with"])
            yield f"list of ids : not downloaded yet ({run})"
    if found["put_off"]["games"]:
        yield f"to be asked for again : {found['put_off']['games']} ({put_off(found)})"
    if found["at_work"]:
        yield f"at work : {locks.described(found['run']) or 'a run'}"
    if found["last_event"]:
        yield f"last event : {found['last_event']}{'' if found['at_work'] else ', no run is at work'}"
    failures = list(found["failures"].items())
    if failures:
        yield "failures by reason :"
        for reason, n in failures[:5]:
            yield f"  {n:>7}  {plain(reasons.in_group(reason))[:69]}"
        if failures[5:]:
            yield f"  {sum(n for _, n in failures[5:]):>7}  for {len(failures) - 5} other reasons"


def left(work, kind):
    """What is left of one kind of work ("downloads", "encodes"), as text."""
    if not work["left"] or work["seconds_left"] is None:
        return f"{work['left']}"
    how = "by DELAY" if not work["measured"] else "lately" if kind == "downloads" else "by the last batch"
    rate = f"{work['per_hour']:.0f}" if work["per_hour"] >= 100 else f"{work['per_hour']:g}"
    duration = units.duration(work["seconds_left"])
    return f"{work['left']}, {duration} ({rate} an hour {how})"


def how_to(found):
    """How many games of the lists have no record, as text, and how to download those of the first list."""
    return wanted.how_to(found["work"], found["lists"], **found["go_on_with"])


def put_off(found):
    """When the games are asked for again whose download failed, as text, and how to ask now."""
    first, again_now = found["put_off"]["first"], again.run(found["work"], RETRY="1", **found["go_on_with"])
    return f"{f'the first on {first[:10]}; ' if first else ''}to ask now: {again_now}"


def plain(text):
    """Text that may come from anywhere, safe for a terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)

