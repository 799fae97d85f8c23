"""Claims: each game once, interrupted commits finished, losers' rows harmless, and every damage named."""

import json
import os
import shutil
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import (
    ENCODER,
    SHARD,
    downloaded,
    edit_meta,
    event,
    findings,
    game,
    in_cache,
    log,
    noise,
    npy,
    put_shard,
    sha,
    tree,
)

from lib import manifest
from lib.manifest import Manifest
from lib.rows import schema
from lib.shards import commit, policy, reading, verify, writing
from lib.store import files, workdir


def test_only_what_still_awaits_encoding_from_the_same_bytes_is_claimed(work):
    writer, handle = writing.Writer(work), Manifest(work)
    for n in range(5):
        downloaded(work, n, log(n))
        writer.add(game(n), sha(log(n)), noise(log(n), 3))
    event(work, 0, status="corrupt")
    event(work, 1, status="downloaded", sha256="other bytes by now")
    event(work, 2, status="encoded", shard="shard_00007", n_samples=3, start=0)
    event(work, 3, status="failed", stage="encode", error="x", encoder=ENCODER["version"])
    assert commit.publish(writer, handle, work, ENCODER) == [game(4)]
    assert handle.claims["shard_00008"] == {game(4): 3}
    assert handle.latest[game(4)]["start"] == 12
    assert findings(work)[0]["shard_00008"] == ("ok", 12)


def test_a_shard_without_a_game_that_can_be_claimed_leaves_nothing(work):
    downloaded(work, 1, log(1))
    writer, handle = writing.Writer(work), Manifest(work)
    writer.add(game(1), sha(log(1)), noise(log(1), 3))
    event(work, 1, status="corrupt")
    before = tree(work)
    assert commit.publish(writer, handle, work, ENCODER) == []
    assert {k: v for k, v in tree(work).items() if not k.startswith("cache")} == {
        k: v for k, v in before.items() if not k.startswith("cache")} and in_cache(work) == []
    assert commit.publish(writing.Writer(work), handle, work, ENCODER) == [] and in_cache(work) == []


def test_two_writers_race_and_each_game_is_claimed_once_and_the_loser_s_rows_are_stale(work):
    writers = []
    for n in range(4):
        downloaded(work, n, log(n))
    for games in (0, 1, 2), (1, 2, 3):
        writers.append((writing.Writer(work), Manifest(work)))
        for n in games:
            writers[-1][0].add(game(n), sha(log(n)), noise(log(n), 3))
        writers[-1][0].finish(ENCODER)
        writers[-1][0].path = shutil.move(writers[-1][0].path, f"{writers[-1][0].path}-{len(writers)}")  # one process
        writers[-1][0].finish = lambda encoder: None
    done = [commit.publish(writer, handle, work, ENCODER) for writer, handle in writers]
    assert done == [[game(0), game(1), game(2)], [game(3)]]
    with open(os.path.join(work, "manifest.jsonl")) as f:
        claimed = [r["gid"] for r in map(json.loads, f) if r["status"] == "encoded"]
    assert sorted(claimed) == [game(n) for n in range(4)]
    assert findings(work)[0] == {"shard_00000": ("ok", 0), "shard_00001": ("ok", 6)}


@pytest.mark.parametrize("later", [
    [{"status": "corrupt"}], [{"status": "corrupt"}, {"status": "failed", "stage": "download", "error": "404"}],
    [{"status": "downloaded", "sha256": "other bytes"}],
    [{"status": "encoded", "shard": "shard_00001", "sha256": "aa", "n_samples": 3, "start": 0}]])
def test_rows_that_lost_a_race_stay_harmless_whatever_becomes_of_their_game(work, later):
    put_shard(work, {0: 2})
    writer = writing.Writer(work)
    for n in (0, 1):
        writer.add(game(n), sha(log(n, 2)), noise(log(n, 2), 2))
    downloaded(work, 1, log(1, 2))
    commit.publish(writer, Manifest(work), work, ENCODER)
    for fields in later:
        event(work, 0, **fields)
    assert findings(work)[0]["shard_00001"][0] == ("ok" if "shard" not in later[0] else "mismatch")
    assert findings(work)[0]["shard_00000"] == ("ok", 0 if "shard" not in later[0] else 2)


def test_games_encoded_again_elsewhere_are_stale_rows_and_no_mismatch(work):
    put_shard(work, {0: 2, 1: 3})
    put_shard(work, {1: 3})
    assert findings(work)[0] == {"shard_00000": ("ok", 3), "shard_00001": ("ok", 0)}


def kill_between_rename_and_append(work, games):
    """A commit that dies right after its rename, in a child process."""
    for n, rows in games.items():
        downloaded(work, n, log(n, rows))
    pid = os.fork()
    if not pid:
        try:
            move = writing.Writer.move_into_place
            writing.Writer.move_into_place = lambda *args: move(*args) and os._exit(9)
            writer = writing.Writer(work)
            for n, rows in games.items():
                writer.add(game(n), sha(log(n, rows)), noise(log(n, rows), rows))
            commit.publish(writer, Manifest(work), work, ENCODER)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    assert reading.names(work) and not Manifest(work).claims


def test_an_interrupted_commit_is_finished_by_the_next_run_without_encoding_again(work):
    kill_between_rename_and_append(work, {0: 2, 1: 0, 2: 3})
    assert findings(work)[0] == {SHARD: ("orphan", 0)}
    handle = Manifest(work)
    assert commit.finish_interrupted(work, handle, ENCODER) == [game(0), game(1), game(2)]
    assert findings(work)[0] == {SHARD: ("ok", 0)}
    assert [handle.latest[game(n)]["start"] for n in range(3)] == [0, 2, 2]
    assert commit.finish_interrupted(work, Manifest(work), ENCODER) == []


def test_of_an_interrupted_commit_only_what_still_awaits_encoding_is_claimed(work):
    kill_between_rename_and_append(work, {0: 2, 1: 1, 2: 3})
    event(work, 0, status="corrupt")
    event(work, 1, status="downloaded", sha256="other bytes")
    assert commit.finish_interrupted(work, Manifest(work), ENCODER) == [game(2)]
    assert findings(work)[0] == {SHARD: ("ok", 3)}


def test_rows_that_were_claimed_before_are_not_claimed_again_after_a_repair(work):
    """A game that was thrown out may have been so since its shard was damaged: it is encoded anew."""
    put_shard(work, {0: 2})
    event(work, 0, status="corrupt")
    downloaded(work, 0, log(0, 2))
    assert commit.finish_interrupted(work, Manifest(work), ENCODER) == []


def test_one_game_in_two_orphan_shards_is_claimed_once(work):
    for _ in range(2):
        put_shard(work, {0: 2}, claimed=False)
    assert commit.finish_interrupted(work, Manifest(work), ENCODER) == [game(0)]
    assert sorted(findings(work)[0].values()) == [("ok", 0), ("orphan", 0)]


def test_damaged_shards_are_passed_over_when_commits_are_finished(work):
    put_shard(work, {0: 2}, claimed=False)
    put_shard(work, {1: 2}, claimed=False)
    edit_meta(work, lambda meta: meta["games"][0].update(gid="../../x"))
    assert commit.finish_interrupted(work, Manifest(work), ENCODER) == [game(1)]


def test_a_commit_whose_event_does_not_fit_on_the_disk_is_finished_later(work, monkeypatch):
    downloaded(work, 1, log(1))
    writer, handle = writing.Writer(work), Manifest(work)
    writer.add(game(1), sha(log(1)), noise(log(1), 3))

    def full(fd, data):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError):
        patch.setattr(manifest.os, "write", full)
        commit.publish(writer, handle, work, ENCODER)
    writer.discard()
    assert reading.names(work) == [SHARD] and handle.latest[game(1)]["status"] == "downloaded"
    assert commit.finish_interrupted(work, handle, ENCODER) == [game(1)] and findings(work)[0] == {SHARD: ("ok", 0)}


def truncate(work):
    os.truncate(npy(work, "scalars"), os.path.getsize(npy(work, "scalars")) - 1)


def swap(work):
    cache = workdir.cache(work)
    os.rename(f"{cache}/shard_00000", f"{cache}/x")
    os.rename(f"{cache}/shard_00001", f"{cache}/shard_00000")
    os.rename(f"{cache}/x", f"{cache}/shard_00001")


def overwrite(data):
    def damage(work):
        with open(npy(work, "labels"), "r+b") as f:
            f.write(data)
    return damage


def zip_in_place(work):
    with zipfile.ZipFile(npy(work, "labels"), "w") as z:
        z.writestr("x", b"")


def resave(work, name, change):
    array = change(np.load(npy(work, name)))
    np.save(npy(work, name), array)


def torn_meta(work):
    path = workdir.path(work, "cache", SHARD, reading.META)
    os.truncate(path, os.path.getsize(path) // 2)


def nested_meta(work):
    with open(workdir.path(work, "cache", SHARD, reading.META), "w") as f:
        f.write("[" * 100_000)


def latin_meta(work):
    with open(workdir.path(work, "cache", SHARD, reading.META), "wb") as f:
        f.write(b"\xff\xfe{}")


DAMAGES = {
    "array cut short": truncate,
    "array emptied": lambda work: os.truncate(npy(work, "labels"), 0),
    "array removed": lambda work: os.unlink(npy(work, "tokens")),
    "array of one row less": lambda work: resave(work, "labels", lambda a: a[:-1]),
    "array of another type": lambda work: resave(work, "labels", lambda a: a.astype("i8")),
    "array of another shape": lambda work: resave(work, "tokens", lambda a: a.reshape(len(a), 5, 360)),
    "array that is a zip": zip_in_place,
    "magic gone": overwrite(b"\0\0\0\0\0\0\0\0"),
    "header gone": overwrite(b"\x93NUMPY\x01\x00\xff\xff{'descr': ("),
    "header that is no Python": overwrite(b"\x93NUMPY\x01\x00v\x00{'descr'((((((("),
    "meta.json removed": lambda work: os.unlink(workdir.path(work, "cache", SHARD, reading.META)),
    "meta.json torn": torn_meta,
    "meta.json nested without end": nested_meta,
    "meta.json no text": latin_meta,
    "meta.json another thing": lambda work: edit_meta(work, lambda meta: meta.pop("games")),
    "meta.json of more rows": lambda work: edit_meta(work, lambda meta: meta.update(n_rows=meta["n_rows"] + 1)),
    "a game of more rows": lambda work: edit_meta(work, lambda meta: (
        meta["games"][-1].update(n_rows=9), meta.update(n_rows=11))),
    "a game of other bytes": lambda work: edit_meta(work, lambda meta: meta["games"][0].update(sha256="aa")),
    "games that overlap": lambda work: edit_meta(work, lambda meta: meta["games"][1].update(start=1)),
    "games the other way round": lambda work: edit_meta(work, lambda meta: meta["games"].reverse()),
    "a game with a name that is a path": lambda work: edit_meta(work, lambda meta: meta["games"][0].update(gid="../x")),
    "a game renamed": lambda work: edit_meta(work, lambda meta: meta["games"][0].update(gid=game(77))),
    "a game taken for another": lambda work: edit_meta(work, lambda meta: meta["games"][0].update(gid=game(5))),
    "swapped with another": swap,
    "removed": lambda work: shutil.rmtree(workdir.path(work, "cache", SHARD)),
    "a file in its place": lambda work: (
        shutil.rmtree(workdir.path(work, "cache", SHARD)), files.write(workdir.path(work, "cache", SHARD), b"")),
    "an event with other rows": lambda work: event(
        work, 0, status="encoded", shard=SHARD, n_samples=3, sha256=sha(log(0, 2)), start=0),
    "an event with another start": lambda work: event(
        work, 0, status="encoded", shard=SHARD, n_samples=2, sha256=sha(log(0, 2)), start=2),
    "an event of a game it has not": lambda work: event(
        work, 5, status="encoded", shard=SHARD, n_samples=2, sha256="aa", start=0),
    "an event lost": lambda work: drop_event(work, game(0)),
}


def drop_event(work, gid):
    path = os.path.join(work, "manifest.jsonl")
    with open(path) as f:
        lines = [text for text in f if not (gid in text and '"encoded"' in text)]
    with open(path, "w") as f:
        f.writelines(lines)


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_shard_is_named_a_mismatch_with_a_reason(work, damage):
    put_shard(work, {0: 2, 1: 3})
    put_shard(work, {2: 5, 5: 0})
    assert set(findings(work)[0].values()) == {("ok", 0)}
    damage(work)
    kinds, whys = findings(work)
    assert kinds[SHARD] == ("mismatch", kinds[SHARD][1]) and whys[SHARD] and "\n" not in whys[SHARD]
    if damage in (torn_meta, nested_meta):
        assert whys[SHARD] == "meta.json is not valid JSON"
    if damage is not swap:
        assert kinds["shard_00001"] == ("ok", 0)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(flips=st.lists(st.tuples(st.integers(0, 127), st.integers(0, 255)), min_size=1, max_size=3),
       array=st.sampled_from(list(schema.ARRAYS)))
@pytest.mark.filterwarnings("ignore")
def test_whatever_happens_to_a_header_the_check_goes_on(work, flips, array):
    if not reading.names(work):
        put_shard(work, {0: 2, 1: 3})
    right = np.load(npy(work, array))
    with open(npy(work, array), "r+b") as f:
        whole = f.read()
        damaged = bytearray(whole)
        for at, byte in flips:
            damaged[at] = byte
        f.seek(0)
        f.write(damaged)
    try:
        kinds, _ = findings(work)
        try:
            found = np.load(npy(work, array), mmap_mode="r")
            same = found.dtype == right.dtype and found.shape == right.shape
        except Exception:
            same = False
        assert kinds == {SHARD: ("ok" if same else "mismatch", 0)}
    finally:
        with open(npy(work, array), "wb") as f:
            f.write(whole)


def test_a_shard_that_no_event_names_is_an_orphan(work):
    put_shard(work, {0: 2})
    put_shard(work, {1: 2}, claimed=False)
    assert findings(work)[0] == {"shard_00000": ("ok", 0), "shard_00001": ("orphan", 0)}


def test_a_shard_that_appears_during_the_check_is_neither_orphan_nor_gone(work):
    put_shard(work, {0: 2})
    present = reading.names(work)
    put_shard(work, {1: 2})
    handle = Manifest(work)
    found = list(verify.check(work, present, handle))
    assert [(kind, name) for kind, name, *_ in found] == [("ok", "shard_00000")]


def test_an_event_whose_shard_s_name_is_a_path_is_a_mismatch_and_opens_nothing(work, tmp_path):
    put_shard(work, {0: 2})
    shutil.copytree(workdir.path(work, "cache", SHARD), tmp_path / "outside")
    for n, name in enumerate(("../../outside", str(tmp_path / "outside"), "", None)):
        event(work, 10 + n, status="encoded", shard=name, n_samples=2, start=0)
    kinds, whys = findings(work)
    assert kinds.pop(SHARD) == ("ok", 0)
    assert set(kinds.values()) == {("mismatch", 0)} and set(whys.values()) == {None, "the directory is gone"}


def test_a_game_is_due_while_it_is_downloaded_or_failed_with_another_encoder():
    def is_due(**record):
        return policy.needs_encoding(record, ENCODER)

    assert is_due(status="downloaded") and is_due(status="failed", stage="encode", encoder="0")
    assert is_due(status="failed", stage="encode")
    assert not is_due(status="failed", stage="encode", encoder="1") and not is_due(status="failed", stage="download")
    assert not any(is_due(status=status) for status in ("encoded", "duplicate", "corrupt", "other", None))
    assert not policy.needs_encoding(None, ENCODER)
