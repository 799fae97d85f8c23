"""A run that would fill the disk says so before it starts, and what to do; a conversion that would is refused."""

import shutil
from collections import namedtuple

import pytest
from flows import NOBODY, script
from support import game

from lib.shards import room
from lib.store.errors import Problem

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def disk(monkeypatch):
    """A function that says how many bytes are free."""
    return lambda free: monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, free))


def test_games_that_fit_are_not_spoken_of(disk):
    disk(10**12)
    assert room.forecast("w", [], 100_000, 5, "dense") is None
    disk(0)
    assert room.forecast("w", [], 0, 5, "dense") is None


def test_games_that_do_not_fit_are_told_with_room_days_and_the_smaller_layout(disk):
    disk(80 * 10**9)
    found = room.forecast("w", [{"status": "downloaded"}] * 100, 172_800, 5, "dense")
    assert found == ("172900 games to come, whose download takes 10.0 days, have some 100282000 rows: 801 GB in the"
                     " layout dense, and 80.0 GB are free; SHARD_LAYOUT=parquet takes 6.1 GB")
    assert room.forecast("w", [], 172_800, 5, "parquet") is None


def test_the_smaller_layout_is_not_named_where_it_does_not_fit_either(disk):
    disk(10**9)
    assert "SHARD_LAYOUT" not in room.forecast("w", [], 172_800, 5, "dense")
    assert "6.1 GB in the layout parquet" in room.forecast("w", [], 172_800, 5, "parquet")


def test_rows_a_game_are_those_of_the_games_that_are_there_once_there_are_enough(disk):
    disk(0)
    few, many = ([{"status": "encoded", "n_samples": 100}] * n for n in (3, 60))
    assert "have some 5800 rows" in room.forecast("w", few, 10, 5, "dense")
    assert "have some 1000 rows" in room.forecast("w", many, 10, 5, "dense")


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
    assert f"{n} games to come" in done.stderr and "SHARD_LAYOUT=parquet takes" in done.stderr


def test_a_conversion_that_does_not_fit_changes_nothing(work, disk):
    disk(8000)
    with pytest.raises(Problem, match="nothing was converted"):
        room.check(work, 2, "dense")
    room.check(work, 1, "dense")
