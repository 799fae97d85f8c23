"""A run that would fill the disk says so before it starts, and what to do; a conversion that would is refused."""

import os
import re
import shutil
from collections import namedtuple

import made_rows
import pytest
from flows import NOBODY, script
from support import game

from lib.cli import settings
from lib.shards import pace, reading, room
from lib.store import workdir
from lib.store.errors import Problem

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def disk(monkeypatch):
    """A function that says how many bytes are free."""
    return lambda free: monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, free))


def test_a_short_download_that_fits_is_not_spoken_of(disk):
    disk(10**12)
    assert room.forecast("w", [], 700, 5, "dense") is None
    disk(0)
    assert room.forecast("w", [], 0, 5, "dense") is None


def test_a_year_that_fits_is_told_with_its_days_and_its_room_before_it_begins_but_not_to_cron(disk):
    disk(10**12)
    assert room.forecast("w", [], 172_800, 5, "dense") == (
        "172800 games to come: 10 d 00 h to download (DELAY=5), 2.4 GB of logs, 803 GB of rows (SHARD_LAYOUT=dense); "
        "1.0 TB free")
    assert room.forecast("w", [], 172_800, 5, "dense", quiet=True) is None


def test_where_the_last_shard_has_another_layout_than_the_next_will_have_that_is_told(work, disk, monkeypatch):
    disk(10**12)
    made_rows.add_shard(work, "parquet", [(gid, made_rows.of(log)) for gid, log in made_rows.games(1)])
    assert room.forecast(work, [], 720, 5, "dense").endswith(
        f" free. The last shard here is parquet; to go on with that: make run SHARD_LAYOUT=parquet WORK={work}")
    assert room.forecast(work, [], 720, 5, "parquet").endswith(" free")
    monkeypatch.setenv("MAKELEVEL", "1")
    monkeypatch.setenv("MAKEFLAGS", " -- SHARD_LAYOUT=dense")  # this is what the user wants
    assert room.forecast(work, [], 720, 5, "dense").endswith(" free")


def test_games_that_do_not_fit_are_told_with_a_command_by_which_they_would(disk, monkeypatch):
    disk(80 * 10**9)
    monkeypatch.setenv("YEAR", "2024")
    monkeypatch.setenv("MAKELEVEL", "1")
    monkeypatch.setenv("MAKEFLAGS", "s -- DELAY=9 SHARD_LAYOUT=dense YEAR=2024 WORK=w http_proxy=u:secret@x")
    told = ("172900 games to come: 10 d 00 h to download (DELAY=5), 2.4 GB of logs, 803 GB of rows "
            "(SHARD_LAYOUT=dense); 80.0 GB free: not enough; the run will stop when the disk is full. As parquet it "
            "takes 8.4 GB in all: ")
    for work, more in (("/w", " WORK=/w"), (f"{settings.ROOT}/data/x", " WORK=data/x"),
                       (f"{settings.ROOT}/data/tenhou/", "")):
        for quiet in (False, True):
            assert room.forecast(work, [{"status": "downloaded"}] * 100, 172_800, 5, "dense", quiet) == (
                f"{told}make run YEAR=2024 DELAY=9 SHARD_LAYOUT=parquet{more}")


def test_the_smaller_layout_is_not_named_where_it_does_not_fit_either(disk):
    disk(10**9)
    for layout in ("dense", "parquet"):
        assert room.forecast("w", [], 172_800, 5, layout).endswith(
            f"(SHARD_LAYOUT={layout}); 1.0 GB free: not enough; the run will stop when the disk is full")


def test_what_the_games_that_are_there_took_is_the_measure_once_there_are_enough(disk):
    disk(0)
    few, many = ([{"status": "encoded", "n_samples": 100, "size": 50_000}] * n for n in (3, 60))
    assert "140 kB of logs, 46.5 MB of rows" in room.forecast("w", few, 10, 5, "dense")
    assert "500 kB of logs, 8.0 MB of rows" in room.forecast("w", many, 10, 5, "dense")


@pytest.mark.parametrize("layout", ["dense", "parquet"])
def test_bytes_a_row_are_those_of_the_shards_that_are_there(work, layout):
    if layout == "parquet":
        assert pace.row_bytes(work, layout) == 60
    name = made_rows.add_shard(work, layout, [(gid, made_rows.of(log)) for gid, log in made_rows.games(2)])
    folder = workdir.path(work, "cache", name)
    found = sum(os.path.getsize(os.path.join(folder, file)) for file in os.listdir(folder))
    rows = reading.read_meta(work, name)["n_rows"]
    assert pace.row_bytes(work, layout) == pytest.approx(found / rows, rel=0.001 if layout == "dense" else 1e-9)


def test_a_run_says_it(work):
    n = shutil.disk_usage(work).free // (580 * 7992) + 1000
    if n > 3_000_000:
        pytest.skip("a disk so large would take a very long list")
    ids = work + "/ids"
    with open(ids, "w") as f:
        f.writelines(f"{game(i)}\n" for i in range(n))
    with open(ids) as f:  # nobody answers there
        done = script("fetch-paipu", "--work", work, "--queued", "--max-refusals", "1", "--delay", "0", stdin=f,
                      settings={"TENHOU_URL": NOBODY})
    told = [line for line in done.stderr.splitlines() if line.startswith(f"fetch-paipu: {n} games to come: ")]
    assert len(told) == 1 and told[0].endswith(f": make run SHARD_LAYOUT=parquet WORK={work}")


def test_a_conversion_that_does_not_fit_changes_nothing(work, disk):
    disk(8009)  # bytes of one row
    told = "2 rows in the layout dense would take 16.0 kB, but only 8.0 kB is free; nothing was converted"
    with pytest.raises(Problem, match=re.escape(told)):
        room.check(work, 2, "dense")
    room.check(work, 1, "dense")
