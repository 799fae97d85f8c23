"""Encoding a stream of games: all or nothing, each id once, said only when its rows are durable."""

import json
import multiprocessing
import os
import subprocess
import sys
import time

import faulty
import numpy as np
import pytest
from flows import ROOT, environment
from support import downloaded, findings, game, in_cache, log, noise, put, sha, tree

from lib.manifest import Manifest
from lib.shards import pace, policy, reading, writing
from lib.shards.batch import Batch
from lib.store import workdir


def encode(work, ids, shard_rows=100):
    """Run a batch over ids with a fresh manifest; returns (ids said, tally)."""
    batch = Batch(work, Manifest(work), shard_rows)
    return list(batch.run(ids)), dict(batch.tally)


def record(work, n):
    return Manifest(work).latest[game(n)]


def sizes(work):
    """The rows of each game of each shard, by number of the game."""
    return [{int(g["gid"][-8:], 16): g["n_rows"] for g in reading.read_meta(work, name)["games"]}
            for name in reading.names(work)]


def test_games_become_rows_of_a_shard_and_their_events_say_where(work, encoder):
    ids = [downloaded(work, n, log(n, 3 + n)) for n in range(3)]
    assert encode(work, ids) == (ids, {"encoded": 3, "rows": 12})
    assert {k: v for k, v in record(work, 1).items() if k != "ts"} == {
        "gid": game(1), "status": "encoded", "shard": "shard_00000", "n_samples": 4, "sha256": sha(log(1, 4)),
        "size": len(log(1, 4)), "start": 3, "encoder": "1"}
    tokens = np.load(workdir.path(work, "cache", "shard_00000", "tokens.npy"), mmap_mode="r")
    assert (tokens[3:7] == noise(log(1, 4), 4)["tokens"]).all()
    assert findings(work)[0] == {"shard_00000": ("ok", 0)}


@pytest.mark.parametrize(("shard_rows", "shape"), [
    (1, [{0: 4}, {1: 4}, {2: 4}, {3: 9}, {4: 1}]), (8, [{0: 4, 1: 4}, {2: 4}, {3: 9}, {4: 1}]),
    (9, [{0: 4, 1: 4}, {2: 4}, {3: 9}, {4: 1}]), (12, [{0: 4, 1: 4, 2: 4}, {3: 9, 4: 1}]),
    (99, [{0: 4, 1: 4, 2: 4, 3: 9, 4: 1}])])
def test_a_shard_is_closed_before_it_would_be_too_large_and_no_game_is_split(work, encoder, shard_rows, shape):
    ids = [downloaded(work, n, log(n, rows)) for n, rows in enumerate((4, 4, 4, 9, 1))]
    assert encode(work, ids, shard_rows)[0] == ids and sizes(work) == shape
    assert set(findings(work)[0].values()) == {("ok", 0)}


def test_an_id_is_said_only_when_its_shard_and_its_event_are_in_place(work, encoder):
    ids = [downloaded(work, n, log(n, 2)) for n in range(5)]
    batch = Batch(work, Manifest(work), 4)
    said = []
    for gid in batch.run(ids):
        said.append(gid)
        now = Manifest(work).latest[gid]
        assert now["status"] == "encoded" and gid in [g["gid"] for g in reading.read_meta(work, now["shard"])["games"]]
        if len(said) == 2:  # a full shard does not wait for what comes later on stdin
            assert len(encoder.seen) == 2
    assert said == ids


def test_the_same_id_many_times_is_encoded_and_said_once(work, encoder):
    ids = [downloaded(work, n, log(n)) for n in range(2)]
    assert encode(work, [*ids, *ids, *reversed(ids)])[0] == ids and len(encoder.seen) == 2
    assert sizes(work) == [{0: 3, 1: 3}] and findings(work)[0] == {"shard_00000": ("ok", 0)}
    assert encode(work, ids) == ([], {"settled before": 2, "encoded": 0, "rows": 0})


def test_a_game_that_cannot_be_encoded_fails_with_its_reason_leaves_no_row_and_is_not_tried_again(work, encoder):
    ids = [downloaded(work, 0, log(0)), downloaded(work, 1, b"<mjloggm></mjloggm>"), downloaded(work, 2, log(2))]
    said, tally = encode(work, ids)
    assert said == [ids[0], ids[2]] and tally["failed"] == 1 and sizes(work) == [{0: 3, 2: 3}]
    assert {k: v for k, v in record(work, 1).items() if k != "ts"} == {
        "gid": game(1), "status": "failed", "error": "incomplete: no rows", "stage": "encode", "encoder": "1",
        "sha256": sha(b"<mjloggm></mjloggm>"), "size": 19}
    seen, before = len(encoder.seen), tree(work)
    assert encode(work, ids)[0] == [] and len(encoder.seen) == seen and tree(work) == before
    assert Batch(work, Manifest(work), 9).queued() == []


def test_another_version_of_the_encoder_tries_again_what_failed(work, encoder, monkeypatch):
    gid = downloaded(work, 1, log(1))
    with monkeypatch.context() as patch:
        no = encoder.Unencodable("hand 3: no")
        patch.setattr(encoder, "encode_folded", lambda data, judged: (_ for _ in ()).throw(no))
        assert encode(work, [gid])[0] == []
    assert encode(work, [gid])[0] == []
    monkeypatch.setattr(encoder, "ENCODER", {"name": "synthetic", "version": "2"})
    assert Batch(work, Manifest(work), 9).queued() == [gid] and encode(work, [gid])[0] == [gid]


def test_a_file_that_is_not_what_was_downloaded_is_corrupt_left_where_it_is_and_stops_nobody(work, encoder):
    ids = [downloaded(work, n, log(n)) for n in range(3)]
    path = put(work, 1, log(1) + b" ")
    said, tally = encode(work, ids)
    assert said == [ids[0], ids[2]] and tally["corrupt"] == 1 and os.path.exists(path)
    assert record(work, 1)["status"] == "corrupt" and record(work, 1)["sha256"] == sha(log(1))
    assert record(work, 1)["found"] == sha(log(1) + b" ") and log(1) + b" " not in encoder.seen


def test_what_cannot_be_encoded_now_is_counted_and_left_as_it_is(work, encoder, tmp_path):
    gone, linked = downloaded(work, 1, log(1)), downloaded(work, 2, log(2))
    os.rename(workdir.xml(work, gone), tmp_path / "outside")
    os.unlink(workdir.xml(work, linked))
    os.symlink(tmp_path / "outside", workdir.xml(work, linked))
    Manifest(work).append([{"gid": game(3), "status": "corrupt"}, {"gid": game(4), "status": "of next year"}])
    before = tree(work)
    said, tally = encode(work, [gone, linked, game(3), game(4), game(5)])
    assert said == [] and tally == {"file missing": 2, "settled before": 2, "not in the manifest": 1,
                                    "encoded": 0, "rows": 0}
    assert tree(work) == before and encoder.seen == []


def test_a_game_that_another_process_downloaded_since_is_found(work, encoder):
    batch = Batch(work, Manifest(work), 100)
    gid = downloaded(work, 1, log(1))
    assert list(batch.run([gid])) == [gid]


def test_an_event_appended_meanwhile_is_not_overruled(work, encoder, monkeypatch):
    gid = downloaded(work, 1, b"<mjloggm></mjloggm>")
    encode_folded = encoder.encode_folded

    def slow(data, judged):
        downloaded(work, 1, log(1))
        return encode_folded(data, judged)

    monkeypatch.setattr(encoder, "encode_folded", slow)
    assert encode(work, [gid])[0] == []
    assert record(work, 1)["status"] == "downloaded" and record(work, 1)["sha256"] == sha(log(1))


def test_encoders_that_race_for_the_same_ids_claim_each_game_once(work, encoder):
    ids = [downloaded(work, n, log(n, 2 + n)) for n in range(4)]
    barrier, pids = multiprocessing.get_context("fork").Barrier(3), []

    def until_all_have_encoded(part):
        yield from part
        barrier.wait(10)

    for who, part in enumerate((ids[:3], ids[1:], ids[2:])):
        pid = os.fork()
        if not pid:
            try:
                said = list(Batch(work, Manifest(work), 100).run(until_all_have_encoded(part)))
                with open(os.path.join(work, f"said-{who}"), "w") as f:
                    f.writelines(f"{gid}\n" for gid in said)
                os._exit(0)
            finally:
                os._exit(1)
        pids.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0, 0, 0]
    said = []
    for who in range(3):
        with open(os.path.join(work, f"said-{who}")) as f:
            said += f.read().split()
    assert sorted(said) == ids
    assert all(kind == "ok" for kind, _ in findings(work)[0].values())
    assert sum(rows for shard in sizes(work) for rows in shard.values()) == 14 + sum(
        stale for _, stale in findings(work)[0].values())


def test_rows_lost_to_another_encoder_are_not_counted_as_ours(work, encoder):
    ids = [downloaded(work, n, log(n)) for n in range(2)]
    batch, said = Batch(work, Manifest(work), 100), []

    def stream():
        yield from ids
        assert encode(work, ids[:1])[0] == ids[:1]

    said = list(batch.run(stream()))
    assert said == ids[1:] and batch.tally["rows"] == 3 and batch.tally["encoded"] == 1
    assert findings(work)[0] == {"shard_00000": ("ok", 0), "shard_00001": ("ok", 3)}


def test_a_consumer_that_stops_early_leaves_nothing_half_done(work, encoder):
    ids = [downloaded(work, n, log(n, 2)) for n in range(5)]
    run = Batch(work, Manifest(work), 4).run(ids)
    assert next(run) == ids[0]
    run.close()
    assert in_cache(work) == ["index.json", "shard_00000"] and findings(work)[0] == {"shard_00000": ("ok", 0)}
    assert encode(work, ids)[0] == ids[2:]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_what_fails_in_the_middle_drops_the_open_shard_and_the_next_run_encodes_it(work, encoder, error, monkeypatch):
    ids = [downloaded(work, n, log(n, 2)) for n in range(3)]

    def fail(self, *args):
        raise error

    with monkeypatch.context() as patch, pytest.raises(type(error)):
        patch.setattr(writing.Writer, "finish", fail)
        encode(work, ids)
    assert in_cache(work) == [] and not Manifest(work).claims
    assert encode(work, ids)[0] == ids


def test_an_interrupted_commit_is_said_first_and_not_encoded_again(work, encoder, monkeypatch):
    ids = [downloaded(work, n, log(n, 2)) for n in range(3)]

    def fail(*args):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError):
        patch.setattr(policy, "claim", fail)
        encode(work, ids[:2])
    seen = len(encoder.seen)
    said, tally = encode(work, ids)
    assert said == ids and tally["encoded"] == 3 and tally["rows"] == 6 and len(encoder.seen) == seen + 1
    assert sizes(work) == [{0: 2, 1: 2}, {2: 2}]


def test_nothing_to_do_touches_nothing(work, encoder):
    encode(work, [downloaded(work, 1, log(1))])
    before = tree(work)
    assert encode(work, []) == ([], {"encoded": 0, "rows": 0}) and tree(work) == before


def test_the_time_that_games_take_is_noted_without_that_in_which_none_was_there(tmp_path, logs):
    faulty.ready_to_encode(tmp_path / "w", logs)
    run = subprocess.Popen([sys.executable, ROOT / "bin" / "encode-batch", "--work", tmp_path / "w", "--jobs", "1",
                            "--shard-rows", "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                           env=environment())
    begin = time.monotonic()
    with run:
        for gid in logs:
            print(gid, file=run.stdin, flush=True)
            assert run.stdout.readline().strip() == gid  # its shard is in place: now it waits
            time.sleep(1)
        run.stdin.close()
    with open(tmp_path / "w" / ".pace") as f:
        spent = json.load(f)
    assert spent["games"] == len(logs) and spent["encode"] > 0 and spent["write"] > 0
    assert spent["encode"] + spent["write"] < time.monotonic() - begin - len(logs)
    assert pace.encoding(tmp_path / "w", 1) == 3600 * len(logs) / max(spent["encode"], spent["write"])


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"games": 1}', '{"games": "x", "encode": 1, "write": 1}',
                                  '{"games": 3, "encode": 0, "write": 0}'])
def test_a_note_that_says_nothing_is_none(work, text):
    with open(os.path.join(work, ".pace"), "w") as f:
        f.write(text)
    assert pace.encoding(work, 2) is None
