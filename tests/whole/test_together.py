"""Scripts at work on one directory at the same time: each game claimed once, rows of its bytes, nobody harmed."""

import contextlib
import hashlib
import os
import random
import subprocess
import sys
import threading
import time

import faulty
import numpy as np
import pytest
from flows import ROOT, environment, records, script, stand_in

from lib.manifest import Manifest
from lib.rows import schema
from lib.shards import reading
from lib.train.reader import Cache

pytestmark = pytest.mark.slow

ENCODE = "encode-batch", "--queued", "--shard-rows", "1", "--jobs", "1"


def start(work, name, *options, stdin=subprocess.DEVNULL):
    """Start a script of bin/."""
    return subprocess.Popen([sys.executable, ROOT / "bin" / name, "--work", work, *map(str, options)], stdin=stdin,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())


def together(work, *commands, apart=0.0):
    """Run scripts at the same time, started so many seconds apart; all must end well. Returns what each printed."""
    running = []
    for name, *options in commands:
        running.append(start(work, name, *options))
        time.sleep(apart)
    ended = [process.communicate(timeout=60) for process in running]
    for (name, *_), process, (_, stderr) in zip(commands, running, ended, strict=True):
        assert process.returncode == 0 and "Traceback" not in stderr, (name, stderr)
    return [stdout.split() for stdout, _ in ended]


def queue_again(work, game):
    """Make a game due again, as if its file had been damaged and put back."""
    Manifest(work).append([{"gid": game, "status": "corrupt"}])
    faulty.ok("adopt-xml", "--work", work)


def assert_right(work, logs, right):
    faulty.finish(work, logs)
    assert faulty.difference(work, right) == (0, 0)
    faulty.assert_clean(work)


@pytest.mark.parametrize("apart", [0, 0.03, 0.1])
def test_of_two_encoders_with_the_same_ids_each_game_is_claimed_by_one(tmp_path, ready, logs, right, apart):
    work = faulty.copy(ready("encode-batch"), tmp_path)
    first, second = together(work, ENCODE, ENCODE, apart=apart)
    assert sorted(first + second) == sorted(right)
    assert faulty.difference(work, right) == (0, 0)
    assert_right(work, logs, right)


def test_encoders_and_compactors_do_each_other_no_harm(tmp_path, ready, logs, right):
    work, chance = faulty.copy(ready("compact-shards"), tmp_path), random.Random(1)
    for _ in range(4):
        queue_again(work, faulty.game(chance.randrange(4)))
        together(work, ENCODE, ("compact-shards", "--shard-rows", 500), ("verify-xml",), apart=chance.uniform(0, 0.1))
        assert faulty.difference(work, right) == (0, 0)
    assert_right(work, logs, right)


def test_two_compactors_at_once_lose_nothing(tmp_path, ready, logs, right):
    """The second may find that shards have gone from under it: then it says so, in one line."""
    work = faulty.copy(ready("compact-shards"), tmp_path)
    pair = [start(work, "compact-shards", "--shard-rows", 500) for _ in range(2)]
    for process in pair:
        _, stderr = process.communicate(timeout=60)
        assert process.returncode in (0, 1) and "Traceback" not in stderr
    assert faulty.difference(work, right) == (0, 0)
    faulty.ok("compact-shards", "--work", work)
    assert_right(work, logs, right)


def test_a_check_during_encoding_and_compaction_finds_nothing_wrong(tmp_path, ready, logs, right):
    work = faulty.copy(ready("compact-shards"), tmp_path)
    faulty.ok("compact-shards", "--work", work, "--shard-rows", 1)
    for n in range(3):
        queue_again(work, faulty.game(n))
        busy = [start(work, *ENCODE), start(work, "compact-shards", "--shard-rows", 500 * n + 1)]
        while any(process.poll() is None for process in busy):
            found = script("verify-shards", "--work", work)
            assert found.returncode == 0, found.stdout
        for process in busy:
            assert process.communicate()[1] is not None and process.returncode == 0
    assert_right(work, logs, right)


def test_files_adopted_while_others_are_downloaded_are_each_recorded_once(tmp_path):
    n, work = 6, tmp_path / "w"
    with stand_in(tmp_path, "--games", n, "--duplicates", 1) as (url, _):
        settings = {"TENHOU_URL": url, "DELAY": "0"}
        calm = tmp_path / "calm"
        script("fetch-index", "--work", calm, "--year", 2024, settings=settings)
        ids = script("extract-ids", "--work", calm, "--year", 2024).stdout.split()
        assert script("fetch-paipu", "--work", calm, *ids, settings=settings).returncode == 0
        logs = {path.stem: path.read_bytes() for path in (calm / "xml").glob("2*")}
        work.mkdir()
        fetch = subprocess.Popen([sys.executable, ROOT / "bin" / "fetch-paipu", "--work", work, *ids], text=True,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment(**settings))
        while not (work / "xml").is_dir():
            time.sleep(0.01)
        for name, data in sorted(logs.items(), reverse=True):  # from the other end
            if not (work / "xml" / f"{name}.txt").exists():
                faulty.put(work, {name: data})
            assert script("adopt-xml", "--work", work).returncode == 0
        assert fetch.wait(60) == 0, fetch.stderr.read()
        fetch.stderr.close()
    statuses = sorted(record["status"] for record in records(work).values())
    assert statuses == ["downloaded"] * (n - 1) + ["duplicate"]
    lines = (work / "manifest.jsonl").read_text().splitlines()
    assert len(lines) == n  # no game twice
    assert sorted(path.read_bytes() for path in (work / "xml").glob("2*")) == sorted(logs.values())


def test_files_thrown_out_while_they_are_encoded_leave_no_row_of_other_bytes(tmp_path, ready, logs, right):
    chance = random.Random(2)
    for round_ in range(3):
        work = faulty.copy(ready("encode-batch"), tmp_path / str(round_))
        encoder = start(work, *ENCODE)
        for name in chance.sample(sorted(logs), 3):
            with contextlib.suppress(FileNotFoundError), open(work / "xml" / f"{name}.txt", "r+b") as f:
                f.write(b"X")  # in place: the encoder may be reading it
            assert script("verify-xml", "--work", work, "--repair").returncode == 0
        assert "Traceback" not in encoder.communicate(timeout=60)[1] and encoder.returncode == 0
        assert set(faulty.rows(work)) <= set(right)
        assert faulty.difference(work, {name: right[name] for name in faulty.rows(work)}) == (0, 0)
        assert_right(work, logs, right)


def used(directory):
    """Bytes of the files below a directory."""
    total = 0
    for path, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += os.stat(os.path.join(path, name)).st_size
    return total


def test_compaction_needs_no_more_than_one_shard_of_extra_disk(tmp_path, ready, logs, right):
    work, shard_rows = faulty.copy(ready("compact-shards"), tmp_path), 500
    faulty.ok("compact-shards", "--work", work, "--shard-rows", 1, "--layout", "dense")  # a shard a game, nothing stale
    before, seen, stop = used(work / "cache"), [], threading.Event()

    def sample():
        while not stop.is_set():
            seen.append(used(work / "cache"))

    sampler = threading.Thread(target=sample)
    sampler.start()
    done = faulty.ok("compact-shards", "--work", work, "--shard-rows", shard_rows)
    stop.set()
    sampler.join()
    row = sum(int(np.prod(shape)) * dtype.itemsize for shape, dtype in schema.ARRAYS.values())
    shard = shard_rows * row + 10_000  # headers, meta.json, index.json
    assert done.stderr.count("<-") == 2 and len(seen) > 50
    assert before + shard // 4 < max(seen) <= before + shard  # it was seen at work, and kept to its room
    assert abs(used(work / "cache") - before) < 10_000
    assert_right(work, logs, right)


def test_readers_keep_their_rows_whether_they_have_the_old_shards_mapped_or_not(tmp_path, ready):
    work = faulty.copy(ready("compact-shards"), tmp_path)
    dense = [name for name in reading.names(work) if (work / "cache" / name / "tokens.npy").exists()]
    mapped = [np.load(work / "cache" / name / f"{array}.npy", mmap_mode="r") for name in dense
              for array in schema.ARRAYS]
    digests = [hashlib.sha256(np.load(array.filename).tobytes()).digest() for array in mapped]
    reader = Cache(work / "cache")
    before = reader[:]
    faulty.ok("compact-shards", "--work", work, "--layout", "parquet")
    assert reading.names(work) and not set(reading.names(work)) & set(dense)
    assert [hashlib.sha256(array.tobytes()).digest() for array in mapped] == digests
    after = reader[:]  # found anew, by their games
    assert all(np.array_equal(after[name], array) for name, array in before.items() if name != "origin")
    assert len(Cache(work / "cache")) == len(reader)
