"""cache/index.json: just the rows that current events claim and their shards bear out, for readers that trust it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import faulty
import numpy as np
import pytest
from flows import ROOT, environment, script
from support import SHARD, downloaded, edit_meta, event, game, log, put_shard

from lib.manifest import Manifest
from lib.shards import index, reading
from lib.shards.batch import Batch
from lib.store import files, workdir


def build(work):
    return index.build(work, Manifest(work).latest)


def entries(built):
    return [(s["path"], s["n_rows"], s["cumulative"]) for s in built["shards"]]


def test_an_empty_cache_has_an_index_without_shards(work):
    built, problems = build(work)
    assert (built["total_rows"], built["shards"], built["row_ranges"], problems) == (0, [], {}, [])


def test_an_index_that_is_new_and_empty_is_no_news_but_one_that_lost_its_rows_is(work):
    def quiet():
        done = script("rebuild-index", "--work", work, "--quiet")
        assert (done.returncode, done.stdout) == (0, "") and os.path.exists(workdir.path(work, "cache", "index.json"))
        return done.stderr

    assert quiet() == ""
    put_shard(work, {0: 2})
    assert quiet() == "rebuild-index: 2 rows in 1 shard\n"
    event(work, 0, status="duplicate")
    assert quiet() == "rebuild-index: 0 rows in 0 shards\n"


def test_the_schema_is_the_one_that_readers_were_promised(work):
    assert build(work)[0]["schema"] == {
        "schema_version": 3, "max_seq_len": 360, "token_features": 5, "scalar_dim": 4, "action_dim": 54,
        "field_vocab": {"segment": 30, "tile": 35, "count": 96, "who": 5, "extra": 256},
        "dtypes": {"tokens": "uint8", "scalars": "float32", "attention_mask": "uint8", "action_mask": "uint8",
                   "labels": "int16"}}


def test_an_entry_has_three_keys_and_counts_up_to_the_sum_of_all_claims(work):
    put_shard(work, {0: 2, 1: 3})
    put_shard(work, {2: 4})
    built, problems = build(work)
    assert entries(built) == [("shard_00000", 5, 5), ("shard_00001", 4, 9)] and not problems
    assert all(set(entry) == {"path", "n_rows", "cumulative"} for entry in built["shards"])
    assert built["total_rows"] == 9 == sum(r["n_samples"] for r in Manifest(work).latest.values())
    assert built["row_ranges"] == {"shard_00000": [[0, 5]], "shard_00001": [[0, 4]]}


@pytest.mark.parametrize(("stale", "ranges"), [
    ([], [[0, 10]]), ([0], [[1, 10]]), ([1], [[0, 1], [3, 10]]), ([3], [[0, 6]]), ([0, 3], [[1, 6]]),
    ([1, 2], [[0, 1], [6, 10]]), ([0, 2], [[1, 3], [6, 10]])])
def test_row_ranges_are_the_rows_of_games_that_still_live_there_and_touching_ones_are_one(work, stale, ranges):
    put_shard(work, {0: 1, 1: 2, 2: 3, 3: 4})
    for n in stale:
        event(work, n, status="corrupt")
    built, problems = build(work)
    assert built["row_ranges"] == {SHARD: ranges} and not problems
    assert built["total_rows"] == sum(stop - start for start, stop in ranges) == entries(built)[0][1]


def test_the_ranges_select_rows_of_just_the_games_that_live_there(work):
    put_shard(work, {0: 1, 1: 2, 2: 3})
    put_shard(work, {1: 2})
    built, _ = build(work)
    for name, ranges in built["row_ranges"].items():
        origin = np.load(workdir.path(work, "cache", name, "origin.npy"), mmap_mode="r")
        games = reading.read_meta(work, name)["games"]
        found = [games[k]["gid"] for start, stop in ranges for k in origin["game"][start:stop]]
        assert found == {"shard_00000": [game(0)] + [game(2)] * 3, "shard_00001": [game(1)] * 2}[name]


def test_a_game_without_rows_takes_no_place(work):
    put_shard(work, {0: 0})
    put_shard(work, {1: 2, 2: 0, 3: 2, 4: 0})
    built, problems = build(work)
    assert entries(built) == [("shard_00001", 4, 4)] and built["row_ranges"] == {"shard_00001": [[0, 4]]}
    assert not problems


DAMAGES = {
    "shard removed": lambda work: shutil.rmtree(workdir.path(work, "cache", SHARD)),
    "meta.json torn": lambda work: os.truncate(workdir.path(work, "cache", SHARD, "meta.json"), 20),
    "meta.json with other rows": lambda work: edit_meta(work, lambda meta: meta.update(n_rows=7)),
    "a game of other bytes": lambda work: edit_meta(work, lambda meta: (
        meta["games"][0].update(sha256="aa"), meta["games"][1].update(sha256="bb"))),
    "games that it has not": lambda work: edit_meta(work, lambda meta: (
        meta["games"][0].update(gid=game(8)), meta["games"][1].update(gid=game(9)))),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_what_a_shard_does_not_bear_out_is_left_out_and_told(work, damage):
    put_shard(work, {0: 2, 1: 3})
    put_shard(work, {2: 4})
    damage(work)
    built, problems = build(work)
    assert entries(built) == [("shard_00001", 4, 4)] and list(built["row_ranges"]) == ["shard_00001"]
    assert problems and all(text.startswith(SHARD) for text in problems)


def test_a_shard_s_name_that_is_a_path_is_left_out_and_told(work, tmp_path):
    put_shard(work, {0: 2})
    shutil.copytree(workdir.path(work, "cache", SHARD), tmp_path / "outside")
    names = ["../../outside", str(tmp_path / "outside"), "", None, "shard_00000/../shard_00000", "shard_00000\n", "\0"]
    for n, name in enumerate(names):
        event(work, 10 + n, status="encoded", shard=name, n_samples=2)
    built, problems = build(work)
    assert entries(built) == [(SHARD, 2, 2)]
    assert len(problems) == len(names) and all("not the name of a shard" in text for text in problems)


def test_the_index_is_written_only_when_it_changes_and_heals(work):
    put_shard(work, {0: 2})
    path = workdir.path(work, "cache", "index.json")
    built, _, changed = index.rebuild(work, Manifest(work).latest)
    with open(path) as f:
        assert changed and json.load(f) == built == json.loads(json.dumps(build(work)[0]))
    inode = os.stat(path).st_ino
    assert index.rebuild(work, Manifest(work).latest)[2] is False and os.stat(path).st_ino == inode
    for damage in (lambda: os.unlink(path), lambda: os.truncate(path, 5), lambda: files.write(path, b"{}")):
        damage()
        assert index.rebuild(work, Manifest(work).latest)[2] is True
        with open(path) as f:
            assert json.load(f) == built


def test_dtypes_are_those_of_the_files(work):
    put_shard(work, {0: 2})
    for name, text in build(work)[0]["schema"]["dtypes"].items():
        assert np.load(workdir.path(work, "cache", SHARD, f"{name}.npy")).dtype == np.dtype(text)


# While shards land

def spans(work):
    """shard -> row ranges, as cache/index.json has them."""
    with open(workdir.path(work, "cache", "index.json")) as f:
        return json.load(f)["row_ranges"]


def test_a_run_that_is_killed_after_its_first_shard_leaves_an_index_of_live_rows(tmp_path, logs):
    work = tmp_path / "w"
    faulty.ready_to_encode(work, logs)
    run = subprocess.Popen([sys.executable, ROOT / "bin" / "encode-batch", "--work", work, "--queued", "--jobs", "1",
                            "--shard-rows", str(faulty.SHARD_ROWS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                           text=True, env=environment())
    with run:
        assert run.stdout.readline().strip() in logs  # its shard is in place, and the run waits for more
        run.send_signal(signal.SIGKILL)
    built, problems = build(work)
    assert spans(work) == {name: built["row_ranges"][name] for name in spans(work)} != {} and not problems
    assert index.check(work, Manifest(work).latest) is None


def test_while_many_shards_land_the_index_is_written_at_the_first_and_once_in_a_while(work, encoder, monkeypatch):
    written = []
    monkeypatch.setattr("lib.shards.index.rebuild", lambda *args, do=index.rebuild: written.append(1) or do(*args))
    games = [downloaded(work, n, log(n, 2)) for n in range(40)]
    for n, _ in enumerate(Batch(work, Manifest(work), 2).run(iter(games))):
        if n == 30:
            past = time.time() - 61
            os.utime(workdir.path(work, "cache", "index.json"), (past, past))
    assert len(written) == 2 and len(spans(work)) == 32 and len(reading.names(work)) == 40


def test_of_a_large_cache_it_is_written_less_often(work, monkeypatch):
    put_shard(work, {0: 2})
    index.rebuild(work, Manifest(work).latest)
    manifest, before = Manifest(work), os.stat(workdir.path(work, "cache", "index.json")).st_ino
    manifest.claims |= {f"shard_{n:05d}": {} for n in range(1, 3670)}
    put_shard(work, {1: 2})
    for age, changed in ((100, False), (200, True)):
        past = time.time() - age
        os.utime(workdir.path(work, "cache", "index.json"), (past, past))
        index.keep_up(work, manifest)
        assert (os.stat(workdir.path(work, "cache", "index.json")).st_ino != before) == changed


def test_a_run_that_begins_without_an_index_writes_it_before_its_first_shard(work, encoder):
    put_shard(work, {0: 2})
    downloaded(work, 1, log(1, 2))
    run = Batch(work, Manifest(work), 1000).run(iter([game(1)]))
    assert not os.path.exists(workdir.path(work, "cache", "index.json"))
    next(run)
    run.close()
    assert spans(work) == {"shard_00000": [[0, 2]]}


@pytest.mark.parametrize("trouble", ["foreign", "no place"])
def test_what_keeps_the_index_from_being_written_stops_no_encoding(work, encoder, trouble):
    put_shard(work, {0: 2})
    if trouble == "foreign":
        edit_meta(work, lambda meta: meta.update(schema_version=99))
    else:
        os.mkdir(workdir.path(work, "cache", "index.json"))
        past = time.time() - 61
        os.utime(workdir.path(work, "cache", "index.json"), (past, past))
    downloaded(work, 1, log(1, 2))
    assert list(Batch(work, Manifest(work), 1000, only=[game(1)]).run(iter([game(1)]))) == [game(1)]


def test_a_folder_that_is_no_work_directory_does_not_become_one(tmp_path):
    (tmp_path / "thesis.txt").touch()
    done = script("rebuild-index", "--work", tmp_path)
    assert done.returncode == 1 and "is not a work directory" in done.stderr
    assert os.listdir(tmp_path) == ["thesis.txt"]
