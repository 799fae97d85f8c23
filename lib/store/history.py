"""What happened when: the events of a manifest, counted by hour, and the pace of the last downloads."""

import collections
import datetime
import itertools

from ..manifest import Manifest
from . import clock

# status of an event -> what it is counted as
KINDS = {"downloaded": "downloads", "duplicate": "downloads", "encoded": "encodes", "failed": "failures",
         "corrupt": "failures"}
_PAUSE = datetime.timedelta(minutes=15)  # without a download: then a run is over. We never wait longer for a server
_ENOUGH = datetime.timedelta(minutes=1)  # a shorter series of downloads does not tell their pace
_HOUR = datetime.timedelta(hours=1)
_MOST = 60  # bars of a plot
_STEPS = {"hour": datetime.timedelta(hours=1), "day": datetime.timedelta(days=1), "week": datetime.timedelta(weeks=1),
          "month": datetime.timedelta(days=30)}


class History(Manifest):
    """A Manifest that counts the events it reads.

    hours: (first 13 characters of the time, kind) -> events; the kinds are the values of KINDS. Adopted and imported
    games count as downloads. Events that only move games to another shard, as compaction appends them, do not count.
    """

    def _forget(self):
        super()._forget()
        self.hours = collections.Counter()
        self._last = None  # the time of the last event of whatever kind
        self._recent = collections.deque(maxlen=20_000)  # [time, kind, events]: an hour has no more of them

    def _resume(self, f, end):
        """Read the whole file, because a snapshot has records, not events."""

    def _put(self, record, line):
        game, status = record.get("gid"), record.get("status")
        before = self.latest.get(game) if type(game) is str else None
        if not super()._put(record, line):
            return False
        self._last = record.get("ts")
        kind = KINDS.get(status)
        moves = "dropped" in record or (status == "encoded" and before is not None and before.get("status") == status)
        if kind and not moves:
            time, what = str(record.get("ts")), "imports" if "source" in record else kind
            self.hours[time[:13], kind] += 1
            if self._recent and self._recent[-1][:2] == [time, what]:
                self._recent[-1][2] += 1
            else:
                self._recent.append([time, what, 1])
        return True

    def last_event(self):
        """When the last event was, as a datetime; None if there was none."""
        return clock.moment(self._last)

    def pace(self):
        """Downloads per hour, without imports, in the last series of them that has no gap longer than _PAUSE, for its
        last hour if it was longer; None if there was none that tells it."""
        found = sorted((moment, n) for time, kind, n in self._recent
                       if kind == "downloads" and (moment := clock.moment(time)))
        begin = end = found[-1][0] if found else None
        for time, _ in reversed(found):
            if begin - time > _PAUSE or end - time > _HOUR:
                break
            begin = time
        if not found or end - begin < _ENOUGH:
            return None
        n = sum(n for time, n in found if begin < time)  # the work for the first was done before it
        return n * (_HOUR / (end - begin))

    def timeline(self):
        """(unit, times, {kind: counts}, events without a valid time): the events in steps of one unit. The unit is the
        first of 'hour', 'day', 'week' and 'month' in which at most 60 steps are enough, otherwise 'year'. The times,
        datetimes, are the beginnings of the steps."""
        found, untimed = collections.Counter(), 0
        for (hour, kind), n in self.hours.items():
            time = clock.moment(f"{hour}:00:00Z")
            untimed += 0 if time else n
            if time:
                found[time, kind] += n
        if not found:
            return "hour", [], {kind: [] for kind in KINDS.values()}, untimed
        first, last = min(time for time, _ in found), max(time for time, _ in found)
        unit = next((name for name, step in _STEPS.items() if (last - first) / step < _MOST - 1), "year")
        times = list(itertools.takewhile(lambda time: time <= last, _steps(_floor(first, unit), unit)))
        counts = {kind: dict.fromkeys(times, 0) for kind in KINDS.values()}
        for (time, kind), n in found.items():
            counts[kind][_floor(time, unit)] += n
        return unit, times, {kind: list(n.values()) for kind, n in counts.items()}, untimed


def _floor(time, unit):
    """The beginning of the step of a unit in which a time lies."""
    if unit == "hour":
        return time
    if unit == "year":
        return time.replace(month=1, day=1, hour=0)
    days = {"day": 0, "week": time.weekday(), "month": time.day - 1}[unit]
    return time.replace(hour=0) - datetime.timedelta(days=days)


def _steps(time, unit):
    """The beginnings of all steps from one on."""
    while True:
        yield time
        if unit == "year":
            time = time.replace(year=time.year + 1)
        elif unit == "month":
            time = (time + datetime.timedelta(days=32)).replace(day=1)
        else:
            time += _STEPS[unit]
