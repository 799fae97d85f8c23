"""Of all that is wrong with the shards, `make check` advises the one command that does most about it."""

import os
import shutil

import pytest
from support import downloaded, event, game, in_cache, log, put_shard, sha

from lib.manifest import Manifest
from lib.shards import compaction, mending, reading, recovery, verify
from lib.store import workdir
from lib.store.errors import Problem


def advised(work, **options):
    """The words after `make`, None if there is nothing to do."""
    handle = Manifest(work)
    findings = [found for found in verify.check(work, reading.names(work), handle) if found.kind != "ok"]
    step = mending.next_step(work, handle, findings, **options)
    return step and step[1]


def forget_last(work, lines):
    path = os.path.join(work, "manifest.jsonl")
    with open(path, "rb") as f:
        kept = f.readlines()[:-lines]
    with open(path, "wb") as f:
        f.writelines(kept)


@pytest.fixture
def merged(work):
    """Two shards of two games each, which compaction has merged into shard_00002."""
    put_shard(work, {1: 2, 2: 3})
    put_shard(work, {3: 4, 4: 5})
    handle = Manifest(work)
    compaction.merge(work, handle, ["shard_00000", "shard_00001"])
    compaction.remove(work, handle, ["shard_00000", "shard_00001"])
    assert advised(work) is None
    return work


@pytest.mark.parametrize("lines", [1, 4, 5, 12])
def test_sound_rows_that_the_manifest_has_forgotten_are_recovered_and_not_encoded_again(merged, lines):
    forget_last(merged, lines)  # the last four are of the compaction
    assert advised(merged) == "recover"
    recovery.recover(merged)
    assert advised(merged) is None and {r["status"] for r in Manifest(merged).latest.values()} == {"encoded"}


def test_what_the_manifest_has_forgotten_is_not_compacted_away(merged):
    forget_last(merged, 4)
    with pytest.raises(Problem, match=f"shard_00002: .*: make recover WORK={merged}$"):
        compaction.plan(merged, Manifest(merged), 100)


def test_an_older_copy_of_rows_that_are_lost_is_not_what_was_forgotten(work):
    put_shard(work, {1: 2})
    event(work, 1, status="downloaded", sha256=sha(log(1, 2)))
    put_shard(work, {1: 2})  # encoded again
    shutil.rmtree(workdir.path(work, "cache", "shard_00001"))
    assert advised(work) == "run" and advised(work, deep=True) == "run DEEP=1"


def test_each_command_is_followed_by_the_next(work):
    put_shard(work, {1: 2})
    put_shard(work, {2: 3}, claimed=False)
    with open(workdir.path(work, "cache", "shard_00000", "meta.json"), "w") as f:
        f.write("{")
    assert advised(work, lost=True) == "check REPAIR=1"
    assert advised(work) == "run"
    event(work, 1, status="failed")  # no shard holds its rows now
    assert advised(work) == "run"  # for the other one, whose commit was cut short
    event(work, 2, status="failed")
    assert advised(work) == "compact"
    downloaded(work, 3, log(3))
    assert in_cache(work) == ["shard_00000", "shard_00001"] and game(3) in Manifest(work).latest
