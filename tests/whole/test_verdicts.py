"""Only what was read decides: what cannot be seen just now, or is of another version, is not gone, and nothing is done
about it."""

import json
import os
import shutil

import faulty
import pytest
from flows import NOBODY, make, script
from support import SHARD, edit_meta, tree

from lib.manifest import Manifest
from lib.shards import reading

META = f"*/cache/{SHARD}/meta.json"
DECIDING = {  # what decides by what the shards are worth, and how it is called
    "encode-batch": ["--queued", "--jobs", 1], "compact-shards": ["--shard-rows", 10_000], "rebuild-index": [],
    "recover-manifest": [],
}


@pytest.fixture
def work(tmp_path, ready):
    """Four shards of a game each, with an index, and no logs any more."""
    work = faulty.copy(ready("rebuild-index"), tmp_path)
    faulty.ok("rebuild-index", "--work", work)
    for path in (work / "xml").glob("*.txt"):
        path.unlink()
    return work


def decided(work):
    """All that a script may have decided: files and their bytes, but what is written aside or only saves time."""
    return {name: data for name, data in tree(work).items() if not os.path.basename(name).startswith(".")}


def make_foreign(work, **fields):
    edit_meta(work, lambda meta: meta.update(fields))


@pytest.mark.parametrize("error", ["EIO", "EACCES", "ESTALE"])
@pytest.mark.parametrize("what", [META, f"*/cache/{SHARD}/labels.npy"], ids=["meta.json", "array"])
@pytest.mark.parametrize("name", DECIDING)
def test_a_shard_that_cannot_be_read_stops_the_step_that_needs_it_by_name_and_changes_nothing(work, name, what, error):
    if name == "rebuild-index" and what != META:
        pytest.skip("the index needs no array")
    before = decided(work)
    done = faulty.struck(name, "--work", work, *DECIDING[name], fault=f"{error} read {what} 1")
    assert done.returncode == 1 and SHARD in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert decided(work) == before


@pytest.mark.parametrize("what", ["*/w/format.json", "*/cache/.work-id", "*/cache/index.json", "*/manifest.jsonl"])
@pytest.mark.parametrize("name", [*DECIDING, "verify-shards"])
def test_what_else_cannot_be_read_stops_the_step_too(work, name, what):
    if what.endswith("index.json") and name in ("encode-batch", "recover-manifest", "verify-shards", "compact-shards"):
        pytest.skip("it needs no index")
    before = decided(work)
    done = faulty.struck(name, "--work", work, *DECIDING.get(name, []), fault=f"EIO read {what} 1")
    assert done.returncode == 1 and what.rpartition("/")[2] in done.stderr, done.stderr
    assert "Traceback" not in done.stderr and decided(work) == before


@pytest.mark.parametrize(("fields", "words"), [
    ({"schema_version": 4}, "schema version 4"), ({"layout": "braided"}, "layout 'braided'")])
@pytest.mark.parametrize("name", DECIDING)
def test_a_shard_of_another_version_stops_the_step_that_needs_it_and_says_which(work, name, fields, words):
    make_foreign(work, **fields)
    before = decided(work)
    done = script(name, "--work", work, *DECIDING[name])
    assert done.returncode == 1 and SHARD in done.stderr and words in done.stderr, done.stderr
    assert decided(work) == before


def test_the_check_tells_unreadable_and_foreign_shards_from_damaged_ones(work):
    done = faulty.struck("verify-shards", "--work", work, fault=f"EIO read {META} 1")
    assert done.returncode == 1 and f"unreadable\t{SHARD}\t" in done.stdout and "shard mismatches : 0" in done.stderr
    make_foreign(work, schema_version=2)
    done = script("verify-shards", "--work", work)
    assert done.returncode == 1 and f"foreign\t{SHARD}\t" in done.stdout and "schema version 2" in done.stdout
    assert "shard mismatches : 0" in done.stderr


def test_a_shard_whose_bytes_cannot_be_read_by_a_deep_check_is_no_damaged_one(work):
    for layout, name in (("dense", "tokens.npy"), ("parquet", "rows.parquet")):
        faulty.ok("compact-shards", "--work", work, "--layout", layout, "--shard-rows", 1)
        shard = reading.names(str(work))[0]
        done = faulty.struck("verify-shards", "--work", work, "--deep", fault=f"EIO read */{shard}/{name} 1")
        assert done.returncode == 1 and f"unreadable\t{shard}\t" in done.stdout, done.stdout
        assert "mismatch\t" not in done.stdout


def test_games_of_other_shards_are_encoded_though_one_cannot_be_read(tmp_path, ready, logs):
    work = faulty.copy(ready("rebuild-index"), tmp_path)
    shutil.rmtree(work / "cache" / "shard_00001")
    done = faulty.struck("encode-batch", "--work", work, "--queued", "--jobs", 1, fault=f"EIO read {META} 1")
    assert done.returncode == 1 and done.stdout.split() == [faulty.game(1)] and SHARD in done.stderr


def test_a_cache_that_was_not_mounted_during_a_run_loses_nothing(work, right):
    cache, away = work / "cache", work.parent / "away"
    faulty.ok("rebuild-index", "--work", work)
    before = decided(work)
    cache.rename(away)
    cache.mkdir()
    done = make("run", f"WORK={work}", f"TENHOU_URL={NOBODY}")
    assert done.returncode == 2 and f"{work}/cache" in done.stderr and "mount" in done.stderr
    for name in ("encode-batch", "compact-shards", "rebuild-index", "recover-manifest", "verify-shards"):
        done = script(name, "--work", work, *DECIDING.get(name, []))
        assert done.returncode == 1 and "mount" in done.stderr, (name, done.stderr)
    assert os.listdir(cache) == []
    cache.rmdir()
    away.rename(cache)
    assert decided(work) == before
    assert faulty.difference(work, right) == (0, 0)


def test_logs_that_were_not_mounted_during_a_run_are_neither_missing_nor_fetched_again(tmp_path, ready, logs):
    work = faulty.copy(ready("encode-batch"), tmp_path)
    xml, away = work / "xml", work.parent / "away"
    faulty.ok("rebuild-index", "--work", work)
    before = decided(work)
    xml.rename(away)
    for there in (False, True):
        if there:
            xml.mkdir()
        for name, options in {"adopt-xml": [], "verify-xml": [], "encode-batch": ["--queued"],
                              "fetch-paipu": ["--queued"], "verify-xml --repair": ["--repair"]}.items():
            done = script(name.split()[0], "--work", work, *options,
                          settings={"TENHOU_URL": NOBODY, "DELAY": "0"})
            assert done.returncode == 1 and "mount" in done.stderr, (name, done.stderr)
            assert "missing" not in done.stdout
    xml.rmdir()
    away.rename(xml)
    assert decided(work) == before


def test_compaction_with_a_lost_manifest_keeps_a_shard_whose_meta_json_cannot_be_read(work, right):
    (work / "manifest.jsonl").write_bytes(b"")
    for name in reading.names(str(work))[1:]:
        shutil.rmtree(work / "cache" / name)
    done = faulty.struck("compact-shards", "--work", work, fault=f"EIO read {META} 1")
    assert done.returncode == 1 and SHARD in done.stderr and (work / "cache" / SHARD / "meta.json").exists()
    (work / "cache" / SHARD / "meta.json").write_text("{")
    done = script("compact-shards", "--work", work)
    assert done.returncode == 1 and SHARD in done.stderr and (work / "cache" / SHARD / "tokens.npy").exists()


def test_compaction_keeps_the_bytes_of_a_damaged_shard_whose_games_are_encoded_elsewhere(tmp_path, ready, logs):
    work = faulty.copy(ready("rebuild-index"), tmp_path)
    os.truncate(work / "cache" / SHARD / "tokens.npy", 1000)
    faulty.ok("encode-batch", "--work", work, "--queued", "--jobs", 1)
    faulty.ok("compact-shards", "--work", work, "--shard-rows", 1)
    assert SHARD not in reading.names(str(work))
    assert [path.name for path in (work / "trash").rglob("labels.npy")] == ["labels.npy"]


def test_a_lost_shard_whose_logs_are_there_is_encoded_again_and_the_run_says_so(tmp_path, ready, right):
    work = faulty.copy(ready("rebuild-index"), tmp_path)
    shutil.rmtree(work / "cache" / "shard_00001")
    done = make("run", f"WORK={work}", f"TENHOU_URL={NOBODY}")
    assert done.returncode == 0, done.stderr
    assert "encode-batch: shard_00001 is gone: encoding 1 game again" in done.stderr
    assert faulty.difference(work, right) == (0, 0)


def test_games_lost_with_their_logs_are_named_by_the_check_and_queued_only_when_asked(work):
    shutil.rmtree(work / "cache" / "shard_00001")
    manifest = (work / "manifest.jsonl").read_bytes()
    for target in ("check", "run"):
        done = make(target, f"WORK={work}", f"TENHOU_URL={NOBODY}")
        assert done.returncode == 2 and f": make check REPAIR=1 WORK={work}\n" in done.stdout + done.stderr
        assert (work / "manifest.jsonl").read_bytes() == manifest
        assert target == "run" or f"lost\t{faulty.game(1)}\n" in done.stdout
    done = make("check", f"WORK={work}", "REPAIR=1")
    assert Manifest(work).latest[faulty.game(1)]["status"] == "corrupt"
    assert {r["status"] for name, r in Manifest(work).latest.items() if name[-1] in "023"} == {"encoded"}
    assert make("check", f"WORK={work}").returncode == 0


def test_a_lost_shard_that_comes_back_after_a_repair_has_its_rows_in_the_index_again(work, right):
    shard, away = work / "cache" / "shard_00001", work.parent / "away"
    shard.rename(away)
    make("check", f"WORK={work}", "REPAIR=1")
    away.rename(shard)
    faulty.ok("rebuild-index", "--work", work)
    built = json.loads((work / "cache" / "index.json").read_bytes())
    assert built["total_rows"] == sum(map(len, right.values())) and "shard_00001" in built["row_ranges"]


def test_rows_that_are_damaged_beyond_a_shallow_look_are_not_claimed_again(tmp_path, ready, logs):
    work = faulty.copy(ready("rebuild-index"), tmp_path)
    data = bytearray((work / "cache" / "shard_00001" / "tokens.npy").read_bytes())
    data[-3] ^= 1
    (work / "cache" / "shard_00001" / "tokens.npy").write_bytes(data)
    (work / "xml" / f"{faulty.game(1)}.txt").unlink()
    make("check", f"WORK={work}", "REPAIR=1", "DEEP=1")
    record = Manifest(work).latest[faulty.game(1)]
    assert record["status"] == "corrupt" and "claim" not in record
