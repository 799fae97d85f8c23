"""Encoded games and their rows by month of play and by table type, as their ids tell them."""

import collections


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


def months(present):
    """All months from the first to the last of those present, in order; only these if years lie between."""
    numbers = sorted({int(month[:4]) * 12 + int(month[5:]) - 1 for month in present})
    filled = range(numbers[0], numbers[-1] + 1) if numbers and numbers[-1] - numbers[0] < 360 else numbers
    return [f"{n // 12:04d}-{n % 12 + 1:02d}" for n in filled]
