"""Encoded games and their rows by month of play and by table type, as their ids tell them."""

import collections

_MOST = 48  # bars that a reader can tell apart


def by_month_and_type(latest):
    """(month, table type) -> [games, rows] of the encoded games among gid -> current record; like ("2024-01", "00a9").
    """
    found = collections.defaultdict(lambda: [0, 0])
    for game, record in latest.items():
        if record.get("status") == "encoded":
            rows = record.get("n_samples")
            sums = found[f"{game[:4]}-{game[4:6]}", game.split("-")[1]]
            sums[0] += 1
            sums[1] += rows if isinstance(rows, int) else 0
    return dict(found)


def steps(present):
    """All months, like 2024-01, from the first to the last of those present; if they are many, all years, like 2024; if
    these are many too, as broken ids say, only those present."""
    numbers = [int(month[:4]) * 12 + int(month[5:]) - 1 for month in present]
    first, last = min(numbers, default=0), max(numbers, default=-1)
    if last - first < _MOST:
        return [f"{n // 12:04d}-{n % 12 + 1:02d}" for n in range(first, last + 1)]
    years = range(first // 12, last // 12 + 1) if last - first < 12 * _MOST else {int(month[:4]) for month in present}
    return [f"{year:04d}" for year in sorted(years)]
