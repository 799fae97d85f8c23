"""How much room and time games to come take, and whether it is there."""

import shutil

from ..cli import again, units
from ..store import wording
from ..store.errors import Problem
from . import pace

# of real logs, hanchan and tonpuu; where there are enough games to tell, theirs count
_GAME_ROWS = 580
_LOG_BYTES = 14_000
_ENOUGH = 50
_LONG = 3600  # seconds: a shorter download needs no announcement


def forecast(work, records, downloads, delay, layout, quiet=False):
    """A line for the user, before it begins, about a download that takes long, or whose games would fill the disk; else
    None. quiet: only if they would.

    records: the current ones of the manifest; downloads: how many games are going to be asked for, one in `delay`
    seconds; layout: of the shards to be written. Raises OSError.
    """
    records = list(records)
    games = downloads + sum(r.get("status") == "downloaded" for r in records)
    if not games:
        return None
    rows = games * _average((r["n_samples"] for r in records if r.get("status") == "encoded" and "n_samples" in r),
                            _GAME_ROWS)
    logs = downloads * _average((r["size"] for r in records if "size" in r), _LOG_BYTES)
    free = shutil.disk_usage(work).free
    need = {name: round(logs + rows * pace.row_bytes(work, name)) for name in ("dense", "parquet")}
    fits, seconds = need[layout] <= free, round(downloads * delay)
    if fits and (quiet or seconds < _LONG):
        return None
    download = f"{units.duration(seconds)} to download (DELAY={delay:g}), {units.size(logs)} of logs, "
    text = (f"{wording.count(games, 'game')} to come: {download if downloads else ''}"
            f"{units.size(need[layout] - logs)} of rows (SHARD_LAYOUT={layout}); {units.size(free)} free")
    if fits and (here := pace.other_layout(work, layout)):
        return f"{text}. The last shard here is {here}; to go on with that: {again.run(work, SHARD_LAYOUT=here)}"
    if fits:
        return text
    text += ": not enough; the run will stop when the disk is full"
    if need["parquet"] > free:
        return text
    whole = units.size(need["parquet"])
    return f"{text}. As parquet it takes {whole} in all: {again.run(work, SHARD_LAYOUT='parquet')}"


def _average(numbers, default):
    numbers = [n for n in numbers if isinstance(n, int)]
    return sum(numbers) / len(numbers) if len(numbers) >= _ENOUGH else default


def check(work, rows, layout):
    """Raises Problem if so many rows, converted to `layout`, do not fit on the disk."""
    need, free = rows * pace.row_bytes(work, layout), shutil.disk_usage(work).free
    if need > free:
        raise Problem(f"{wording.count(rows, 'row')} in the layout {layout} would take {units.size(need)}, but only "
                      f"{units.size(free)} is free; nothing was converted")
