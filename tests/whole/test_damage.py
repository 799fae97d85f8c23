"""Damaged state: check names it and says which command mends it, and that command does mend it."""

import hashlib
import json
import os
import re
import shutil

import faulty
import pytest
from flows import NOBODY, make

from lib.manifest import Manifest
from lib.shards import reading


def shard(work, n):
    return work / "cache" / f"shard_0000{n}"


def flip(path, at=-3):
    """Turn one bit of a file around."""
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def cut(path, part=0.5):
    os.truncate(path, int(path.stat().st_size * part))


def swap(work):
    os.rename(shard(work, 0), work / "aside")
    os.rename(shard(work, 1), shard(work, 0))
    os.rename(work / "aside", shard(work, 1))


def overwrite_a_line(work, text, n):
    path = work / "manifest.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:n], text + b"\n", *lines[n + 1:]]))


def forget(work, number=None):
    """Drop the events of one game, or all; and its log with them, so that its rows are all that is left."""
    path = work / "manifest.jsonl"
    kept = [line for line in path.read_text().splitlines() if number is not None and faulty.game(number) not in line]
    path.write_text("".join(f"{line}\n" for line in kept))
    for log in (work / "xml").iterdir():
        if log.suffix == ".txt" and (number is None or faulty.game(number) in log.name):
            log.unlink()


RUN, COMPACT, RECOVER, INDEX = "make run DEEP=1", "make compact", "make recover", "make rebuild-index"
DAMAGES = {  # what is damaged: (how, what check says of it, the commands that mend it, each as the next check says)
    "array cut": (lambda w: cut(shard(w, 1) / "tokens.npy"), "mismatch\tshard_00001\ttokens.npy", [RUN, COMPACT]),
    "array emptied": (lambda w: cut(shard(w, 1) / "labels.npy", 0), "mismatch\tshard_00001\tlabels.npy",
                      [RUN, COMPACT]),
    "array gone": (lambda w: (shard(w, 1) / "origin.npy").unlink(), "mismatch\tshard_00001\torigin.npy",
                   [RUN, COMPACT]),
    "bit of an array": (lambda w: flip(shard(w, 1) / "tokens.npy"), "mismatch\tshard_00001\ttokens.npy: its SHA-256",
                        [RUN, COMPACT]),
    "bit of a header": (lambda w: flip(shard(w, 1) / "tokens.npy", 12), "mismatch\tshard_00001\ttokens.npy",
                        [RUN, COMPACT]),
    "meta.json gone": (lambda w: (shard(w, 1) / "meta.json").unlink(), "mismatch\tshard_00001\tmeta.json is gone",
                       [RUN, COMPACT]),
    "meta.json torn": (lambda w: cut(shard(w, 1) / "meta.json"),
                       "mismatch\tshard_00001\tmeta.json is not valid JSON", [RUN, COMPACT]),
    "parquet file cut": (lambda w: cut(shard(w, 3) / "rows.parquet"), "mismatch\tshard_00003\trows.parquet",
                         [RUN, COMPACT]),
    "bit of a parquet file": (lambda w: flip(shard(w, 3) / "rows.parquet", 100), "mismatch\tshard_00003\trows.parquet",
                             [RUN, COMPACT]),
    "shard gone": (lambda w: shutil.rmtree(shard(w, 1)), "mismatch\tshard_00001\tthe directory is gone", [RUN]),
    "shards swapped": (swap, "mismatch\tshard_00000", [RUN, COMPACT]),
    "orphan": (lambda w: shutil.copytree(shard(w, 1), shard(w, 7)), "orphan\tshard_00007", [COMPACT]),
    "index gone": (lambda w: (w / "cache" / "index.json").unlink(), "index\tindex.json\tis missing", [INDEX]),
    "index torn": (lambda w: cut(w / "cache" / "index.json"), "index\tindex.json\tis damaged", [INDEX]),
    "bit of the index": (lambda w: flip(w / "cache" / "index.json", -6), "index\tindex.json", [INDEX]),
    "index of other shards": (lambda w: (w / "cache" / "index.json").write_text(
        (w / "cache" / "index.json").read_text().replace("shard_00003", "shard_00017")), "which is gone", [INDEX]),
    "log damaged": (lambda w: flip(w / "xml" / f"{faulty.game(1)}.txt"), f"corrupt\t{faulty.game(1)}",
                    ["make check REPAIR=1 DEEP=1"]),
    "garbage in the manifest": (lambda w: overwrite_a_line(w, b"\xff\0{]" * 9, 1), "skipped 1 line without", [RECOVER]),
    "an encoded event lost": (lambda w: overwrite_a_line(w, b"", -2), "mismatch\tshard_00003\tmeta.json says",
                              ["make run"]),
    "a game forgotten": (lambda w: forget(w, 1), "orphan\tshard_00001", [RECOVER]),
    "one of a shard's games forgotten": (lambda w: forget(w, 3), "mismatch\tshard_00003\tmeta.json says", [RECOVER]),
    "manifest emptied, logs gone": (forget, "orphan\tshard_00001", [RECOVER]),
    "manifest gone": (lambda w: (w / "manifest.jsonl").unlink(), "orphan\tshard_00001", [RECOVER]),
}  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory, logs):
    """A work directory in which all is well: three dense shards of a game, and a parquet one of two."""
    work = tmp_path_factory.mktemp("whole") / "w"
    faulty.put(work, logs)
    faulty.ok("adopt-xml", "--work", work)
    faulty.ok("encode-batch", "--work", work, *[faulty.game(n) for n in (0, 1, 2)], "--shard-rows", 1)
    faulty.put(work, {faulty.game(8): logs[faulty.game(0)] + b"\n"})
    faulty.ok("adopt-xml", "--work", work)
    faulty.ok("encode-batch", "--work", work, "--queued", "--layout", "parquet")
    faulty.ok("rebuild-index", "--work", work)
    faulty.assert_clean(work)
    return work


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
def test_check_names_it_and_says_what_mends_it_and_that_does(tmp_path, whole, logs, damage):
    work, (harm, words, commands) = faulty.copy(whole, tmp_path), DAMAGES[damage]
    right = faulty.rows(work)
    harm(work)
    found = make("check", f"WORK={work}", "DEEP=1")
    assert words in found.stdout and "Traceback" not in found.stdout + found.stderr, found.stdout
    assert found.returncode == (0 if "garbage" in damage else 2)  # bad lines hurt nobody
    advised = []
    while lines := re.findall(rf": (make .*) WORK={work}$", found.stdout, re.M):
        advised.append(lines[-1])
        done = make(*lines[-1].split()[1:], f"WORK={work}", f"TENHOU_URL={NOBODY}", "DELAY=0", "MAX_REFUSALS=1")
        assert done.returncode == 0 and len(advised) < 5, (advised, done.stderr)
        found = make("check", f"WORK={work}", "DEEP=1")
    assert advised == commands
    if "log" in damage.split():
        assert not (work / "xml" / f"{faulty.game(1)}.txt").exists()
        faulty.finish(work, logs)
    assert not Manifest(work).bad
    assert faulty.difference(work, right) == (0, 0)
    faulty.assert_clean(work)


@pytest.mark.slow
@pytest.mark.parametrize("part", [0.01, 0.2, 0.37, 0.5, 0.66, 0.81, 0.95])
def test_a_manifest_cut_anywhere_is_mended_by_a_run_without_encoding_again(tmp_path, whole, part):
    work = faulty.copy(whole, tmp_path)
    right, names = faulty.rows(work), reading.names(work)
    cut(work / "manifest.jsonl", part)
    assert make("check", f"WORK={work}").returncode == 2
    faulty.ok("adopt-xml", "--work", work)
    assert "rows" in faulty.ok("encode-batch", "--work", work, "--queued", "--jobs", 1).stderr
    faulty.ok("rebuild-index", "--work", work)
    assert faulty.difference(work, right) == (0, 0) and reading.names(work) == names
    faulty.assert_clean(work)


@pytest.mark.slow
@pytest.mark.parametrize("part", [0, 0.3, 0.6, 0.9])
def test_a_manifest_cut_anywhere_is_recovered_even_without_the_logs(tmp_path, whole, part):
    work = faulty.copy(whole, tmp_path)
    right, names = faulty.rows(work), reading.names(work)
    cut(work / "manifest.jsonl", part)
    for log in (work / "xml").glob("*.txt"):
        log.unlink()
    refused = make("compact", f"WORK={work}")
    if part < 0.9:  # else nothing is lost but an event that the next run, or compaction, appends again
        assert refused.returncode == 2 and f": make recover WORK={work}\n" in refused.stderr
        assert reading.names(work) == names
    assert make("recover", f"WORK={work}").returncode == 0
    assert faulty.difference(work, right) == (0, 0)
    faulty.assert_clean(work)


def test_recovery_keeps_each_old_manifest_beside_the_new_one(tmp_path, whole):
    work = faulty.copy(whole, tmp_path)
    olds = []
    for garbage in (b"one", b"two", b"three"):
        overwrite_a_line(work, garbage, 0)
        olds.append((work / "manifest.jsonl").read_bytes())
        faulty.ok("recover-manifest", "--work", work)
    kept = sorted(work.glob("manifest.jsonl.*"))
    assert sorted(olds) == sorted(path.read_bytes() for path in kept)


def test_of_two_shards_with_a_game_the_later_one_is_recovered(tmp_path, whole, logs):
    """The earlier one may have been given up for its damage, or have rows of other bytes."""
    work = faulty.copy(whole, tmp_path)
    other = logs[faulty.game(0)] + b" "
    Manifest(work).append([{"gid": faulty.game(1), "status": "corrupt", "sha256": None}])
    (work / "xml" / f"{faulty.game(1)}.txt").write_bytes(other)
    Manifest(work).append([{"gid": faulty.game(1), "status": "downloaded",
                            "sha256": hashlib.sha256(other).hexdigest(), "size": len(other)}])
    faulty.finish(work, {})
    right = faulty.rows(work)
    (work / "manifest.jsonl").unlink()
    faulty.ok("recover-manifest", "--work", work)
    assert faulty.difference(work, right) == (0, 0)
    assert Manifest(work).latest[faulty.game(1)]["shard"] == "shard_00004"


def test_an_index_that_only_lags_behind_is_no_fault(tmp_path, whole):
    work = faulty.copy(whole, tmp_path)
    index = json.loads((work / "cache" / "index.json").read_text())
    assert index["shards"]
    empty = index | {"total_rows": 0, "shards": [], "row_ranges": {}}
    (work / "cache" / "index.json").write_text(json.dumps(empty))
    assert faulty.ok("rebuild-index", "--work", work, "--check").stdout == ""
