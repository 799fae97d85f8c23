"""Shards: rows come back as they went in, and a shard appears whole or not at all."""

import errno
import os
import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import ENCODER, SHARD, downloaded, event, findings, game, in_cache, log, noise, npy, put_shard, sha

from lib.manifest import Manifest
from lib.rows import schema
from lib.shards import commit, compaction, dense, index, reading, writing
from lib.store import workdir


@pytest.mark.parametrize("counts", [[1], [5, 0, 3], [0], [40, 1, 1]])
def test_rows_come_back_by_memory_map_as_they_went_in(work, counts):
    put_shard(work, dict(enumerate(counts)))
    meta = reading.read_meta(work, SHARD)
    assert meta["n_rows"] == sum(counts) and meta["encoder"] == ENCODER
    assert (meta["schema_version"], meta["layout"], meta["max_seq_len"]) == (3, "dense", 360)
    assert sorted(os.listdir(workdir.path(work, "cache", SHARD))) == sorted(
        [reading.META, *(f"{name}.npy" for name in schema.ARRAYS)])
    for name, (shape, dtype) in schema.ARRAYS.items():
        array = np.load(npy(work, name), mmap_mode="r")
        assert isinstance(array, np.memmap) and array.shape == (sum(counts), *shape) and array.dtype == dtype
        assert sha(array.tobytes()) == meta["sha256"][name]
        for k, g in enumerate(meta["games"]):
            expected = noise(log(k, counts[k]), counts[k])[name]
            if name == "origin":
                expected["game"] = k
            assert array[g["start"]:g["start"] + g["n_rows"]].tobytes() == expected.tobytes()
    assert [(g["gid"], g["sha256"], g["n_rows"]) for g in meta["games"]] == [
        (game(k), sha(log(k, n)), n) for k, n in enumerate(counts)]
    assert findings(work)[0] == {SHARD: ("ok", 0)}


@given(n=st.integers(0, 10**15))
def test_a_header_takes_the_same_place_for_any_number_of_rows(tmp_path_factory, n):
    writer = dense.Writer(tmp_path_factory.getbasetemp())
    before = {name: f.tell() for name, f in writer._files.items()}
    writer._n_rows = n
    writer._write_headers()
    assert {name: f.tell() for name, f in writer._files.items()} == before
    writer.close()


def test_a_shard_is_written_straight_to_disk(work):
    writer = writing.Writer(work)
    before = os.path.getsize(os.path.join(writer.path, "tokens.npy"))
    rows = noise(b"", 50)
    writer.add(game(0), "aa", rows)
    size = os.path.getsize(os.path.join(writer.path, "tokens.npy"))
    assert size - before >= rows["tokens"].nbytes - (1 << 17)  # no more than a buffer is held back
    writer.discard()
    assert in_cache(work) == []


def test_a_write_that_fails_on_its_way_to_the_disk_fails_the_shard(work, monkeypatch):
    def fails_once(fd):
        monkeypatch.setattr(os, "fsync", fsync)  # the kernel tells of a lost page to one fsync, and to no other
        raise OSError(errno.EIO, "lost")

    fsync = os.fsync
    monkeypatch.setattr(dense, "_FLUSH", 1 << 16)
    monkeypatch.setattr(os, "fsync", fails_once)
    writer = writing.Writer(work)
    with pytest.raises(OSError, match="lost"):
        for n in range(3):
            writer.add(game(n), "aa", noise(b"", 20))
        writer.finish(ENCODER)
    writer.discard()
    assert in_cache(work) == []


@pytest.mark.parametrize(("name", "bad"), [
    ("tokens", np.zeros((2, 360, 5), "i8")), ("tokens", np.zeros((2, 360, 4), "u1")), ("labels", np.zeros(3, "<i2")),
    ("labels", np.zeros(2, ">i2")), ("scalars", np.zeros((2, 360, 4), "f8"))])
def test_rows_of_another_shape_or_type_are_refused_and_not_cast(work, name, bad):
    writer = writing.Writer(work)
    rows = noise(b"", 2)
    rows[name] = bad
    with pytest.raises(ValueError, match=f"{game(0)}: "):
        writer.add(game(0), "aa", rows)
    writer.discard()


def test_a_shard_is_durable_before_its_rename_and_its_rename_before_the_event(work, monkeypatch):
    data, calls = log(1), []
    downloaded(work, 1, data)
    fsync, rename, write = os.fsync, os.rename, os.write

    def name_of(fd):
        return os.path.basename(os.readlink(f"/proc/self/fd/{fd}"))

    monkeypatch.setattr(os, "fsync", lambda fd: calls.append(("fsync", name_of(fd))) or fsync(fd))
    monkeypatch.setattr(os, "rename", lambda a, b: calls.append(("rename", os.path.basename(b))) or rename(a, b))
    monkeypatch.setattr(os, "write", lambda fd, b: calls.append(("write", name_of(fd))) or write(fd, b))
    writer = writing.Writer(work)
    aside = os.path.basename(writer.path)
    writer.add(game(1), sha(data), noise(data, 3))
    commit.publish(writer, Manifest(work), work, ENCODER)
    moved = calls.index(("rename", SHARD))
    assert {name for what, name in calls[:moved] if what == "fsync"} >= {
        *(f"{name}.npy" for name in schema.ARRAYS), aside} and ("rename", reading.META) in calls[:moved]
    assert calls[moved + 1:] == [("fsync", "cache"), ("write", "manifest.jsonl"), ("fsync", "manifest.jsonl")]


def test_a_number_is_never_used_twice(work):
    assert [put_shard(work, {n: 1}) for n in range(2)] == ["shard_00000", "shard_00001"]
    shutil.rmtree(workdir.path(work, "cache", "shard_00001"))
    assert put_shard(work, {2: 1}) == "shard_00002"
    assert put_shard(work, {3: 1}, claimed=False) == "shard_00003"
    assert put_shard(work, {4: 1}) == "shard_00004"
    event(work, 4, status="encoded", shard="shard_99999")
    assert put_shard(work, {5: 1}) == "shard_100000"


@pytest.mark.parametrize("name", [
    "", None, "shard_", "shard_1", "shard_000001", "shard_0000x", "shard_00000/", "shard_00000\n", "../shard_00000",
    "shard_0000\u0660", "shard_-0001", "xshard_00000", f"shard_{'9' * 5000}", ".tmp-host-1-shard", "index.json"])
def test_what_is_no_shard_s_name_has_no_number_and_is_never_opened(work, name):
    assert reading.number(name) is None
    with pytest.raises(ValueError, match="not the name of a shard"):
        reading.read_meta(work, name)


def test_shards_are_in_the_order_of_their_numbers_beyond_five_digits(work):
    for number in (99999, 100000, 7, 1000000):
        os.mkdir(workdir.path(work, "cache", workdir.SHARD.format(number)))
    assert [reading.number(name) for name in reading.names(work)] == [7, 99999, 100000, 1000000]


def test_the_index_lists_them_so_and_the_later_of_two_is_recovered(work):
    for number, n in ((99999, 1), (100000, 2)):
        name = put_shard(work, {n: 2})
        os.rename(workdir.path(work, "cache", name), workdir.path(work, "cache", workdir.SHARD.format(number)))
        record = Manifest(work).latest[game(n)]
        Manifest(work).append([{**record, "shard": workdir.SHARD.format(number)}])
    built, problems = index.build(work, Manifest(work).latest)
    assert not problems and [entry["path"] for entry in built["shards"]] == ["shard_99999", "shard_100000"]
    index.rebuild(work, Manifest(work).latest)
    assert index.check(work, Manifest(work).latest) is None


def test_compaction_says_why_a_shard_without_live_rows_is_kept_in_the_trash(work):
    sound, damaged, lost = (put_shard(work, {n: 3}) for n in range(3))
    for n in range(3):
        event(work, n, status="encoded", shard="shard_00009", n_samples=3, start=0, sha256=sha(log(n)))
    event(work, 2, status="failed", stage="encode", error="x", encoder="2")
    with open(npy(work, "tokens", damaged), "r+b") as f:
        f.truncate(100)
    said = []
    assert compaction.remove(work, Manifest(work), [sound, damaged, lost], said.append) == [sound, damaged, lost]
    assert reading.names(work) == [] and len(said) == 2  # the sound one is deleted: its game has rows elsewhere
    assert said[0].startswith(f"{damaged} is not used any more and was moved to ") and "it is damaged (" in said[0]
    assert said[1].startswith(f"{lost} is not used any more") and "no other shard has rows of 1 game in it" in said[1]
    assert all(text.endswith("nothing else needs to be done") for text in said)
