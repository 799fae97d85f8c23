"""How much room rows take on the disk, and whether it is there."""

import shutil

from ..store.errors import Problem

ROW_BYTES = {"dense": 7992, "parquet": 61}  # of rows of real logs
_GAME_ROWS = 580  # of real logs, hanchan and tonpuu; where there are enough games to tell, theirs count
_ENOUGH = 50


def forecast(work, records, downloads, delay, layout):
    """A line for the user if the rows of the games to come would fill the disk, else None.

    records: the current ones of the manifest; downloads: how many games are going to be asked for, one in `delay`
    seconds. Raises OSError.
    """
    rows = [r["n_samples"] for r in records if r.get("status") == "encoded" and isinstance(r.get("n_samples"), int)]
    games = downloads + sum(r.get("status") == "downloaded" for r in records)
    come = round(games * (sum(rows) / len(rows) if len(rows) >= _ENOUGH else _GAME_ROWS))
    need, free = {name: come * n for name, n in ROW_BYTES.items()}, shutil.disk_usage(work).free
    if need[layout] <= free:
        return None
    days = downloads * delay / 86400
    download = f", whose download takes {days:.1f} days," if days >= 0.1 else ""
    less = need["parquet"] < min(free, need[layout])
    advice = f"; SHARD_LAYOUT=parquet takes {_gigabytes(need['parquet'])}" if less else ""
    return (f"{games} games to come{download} have some {come} rows: {_gigabytes(need[layout])} in the layout {layout},"
            f" and {_gigabytes(free)} are free{advice}")


def check(work, rows, layout):
    """Raises Problem if so many rows, converted to `layout`, do not fit on the disk."""
    need, free = rows * ROW_BYTES[layout], shutil.disk_usage(work).free
    if need > free:
        raise Problem(f"{rows} rows in the layout {layout} take {_gigabytes(need)}, and {_gigabytes(free)} are free:"
                      " nothing was converted")


def _gigabytes(n):
    return f"{n / 1e9:.1f} GB" if n < 99.95e9 else f"{n / 1e9:.0f} GB"
