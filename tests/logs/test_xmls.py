"""The files of xml/ against the manifest: judged, taken in, thrown out, and never what lies outside."""

import gzip
import os

import pytest
from support import downloaded, game, log, put, sha, tree

from lib import manifest
from lib.logs import adopt as logs_adopt
from lib.logs import logfile, repair, verify
from lib.manifest import Manifest
from lib.store import files, workdir

G = game(1)
RIGHT, WRONG, OTHER = log(1), log(1) + b"x", log(1, rows=9)


def append(work, *events):
    """Append events of the game G."""
    Manifest(work).append([{"gid": G, **event} for event in events])


def adopt(work, n=1):
    """Adopt the n-th game with a fresh manifest; returns what became of it."""
    return logs_adopt.take_in(work, Manifest(work), game(n))


def record(work, n=1):
    return Manifest(work).latest.get(game(n))


def check(work, ids=None):
    """The findings as {gid or name: kind}."""
    found = list(verify.check(work, Manifest(work), ids))
    assert len({what for _, what in found}) == len(found)
    return {what: kind for kind, what in found}


@pytest.mark.parametrize(("events", "data", "kind"), [
    ([{"status": "downloaded", "sha256": sha(RIGHT)}], RIGHT, "ok"),
    ([{"status": "downloaded", "sha256": sha(RIGHT)}], WRONG, "corrupt"),
    ([{"status": "downloaded", "sha256": sha(RIGHT)}], None, "missing"),
    ([{"status": "downloaded"}], None, "missing"),
    ([{"status": "downloaded"}], RIGHT, "unknown"),
    ([{"status": "downloaded", "sha256": sha(RIGHT)}, {"status": "encoded", "shard": "shard_00000"}], WRONG, "corrupt"),
    ([{"status": "downloaded", "sha256": sha(RIGHT)}, {"status": "encoded", "shard": "shard_00000"}], None, "absent"),
    ([{"status": "failed", "stage": "download", "error": "404"}], RIGHT, "unknown"),
    ([{"status": "failed", "stage": "encode", "sha256": sha(WRONG)}], WRONG, "ok"),
    ([{"status": "corrupt", "sha256": sha(RIGHT)}], None, "absent"),
    ([], RIGHT, "unknown"),
    ([], None, "absent"),
])
def test_a_game_s_file_is_judged_by_the_recorded_sha256(work, events, data, kind):
    append(work, *events)
    if data is not None:
        put(work, 1, data)
    assert check(work, [G]) == {G: kind}
    assert check(work) == ({} if kind == "absent" else {G: kind})


@pytest.mark.parametrize("make", [
    lambda path, outside: os.symlink(outside, path), lambda path, _: os.mkfifo(path), lambda path, _: os.mkdir(path)],
    ids=["link", "pipe", "directory"])
def test_a_link_a_pipe_and_a_directory_named_like_a_game_are_foreign_and_never_read(work, tmp_path, make):
    (tmp_path / "outside").write_bytes(RIGHT)
    make(workdir.xml(work, G), tmp_path / "outside")
    assert check(work) == {f"{G}.txt": "foreign"}
    assert adopt(work) == "left" and record(work) is None
    append(work, {"status": "downloaded", "sha256": sha(RIGHT)})
    assert check(work) == {f"{G}.txt": "foreign", G: "missing"}
    assert not repair.throw_out(work, Manifest(work), G)
    with pytest.raises(FileNotFoundError):
        logfile.read(work, G)
    assert os.path.lexists(workdir.xml(work, G)) and (tmp_path / "outside").read_bytes() == RIGHT


def test_a_new_file_is_adopted_with_its_sha256_and_size(work):
    put(work, 1, RIGHT)
    assert adopt(work) == "downloaded"
    assert record(work) == {"ts": record(work)["ts"], "gid": G, "status": "downloaded", "sha256": sha(RIGHT),
                            "size": len(RIGHT)}
    assert adopt(work) == "left" and check(work) == {G: "ok"}


FAILED = {"status": "failed", "stage": "download", "error": "HTTP 404"}
UNFIT = {"status": "failed", "stage": "encode", "error": "incomplete: no owari", "encoder": "1"}


@pytest.mark.parametrize(("events", "data", "taken"), [
    ([{"status": "corrupt"}], RIGHT, True),
    ([{"status": "corrupt", "sha256": sha(RIGHT)}], RIGHT, True),
    ([{"status": "corrupt", "sha256": sha(RIGHT)}], OTHER, True),
    ([{"status": "corrupt", "sha256": sha(RIGHT)}], WRONG, False),
    ([{"status": "corrupt", "sha256": sha(RIGHT), "found": sha(OTHER)}], OTHER, False),
    ([FAILED], RIGHT, True),
    ([{"status": "corrupt", "sha256": sha(RIGHT)}, FAILED], RIGHT, True),
    ([{"status": "corrupt", "sha256": sha(RIGHT), "found": sha(OTHER)}, FAILED], OTHER, False),
    ([{**UNFIT, "sha256": sha(WRONG)}], WRONG, False),
    ([{**UNFIT, "sha256": sha(WRONG)}], RIGHT, False),
    ([{**UNFIT, "sha256": sha(WRONG)}], RIGHT.replace(b"<ROWS", b"<END owari=\"1\"/><ROWS"), True),
    ([{**UNFIT, "sha256": sha(WRONG)}], b"<mjloggm>", False),
    ([{"status": "downloaded", "sha256": sha(RIGHT)}], OTHER, False),
    ([{"status": "downloaded"}], RIGHT, True),
    ([{"status": "encoded", "sha256": sha(RIGHT), "shard": "shard_00000"}], OTHER, False),
    ([{"status": "encoded", "shard": "shard_00000"}], RIGHT, False),
    ([{"status": "duplicate", "sha256": sha(RIGHT), "alias_of": game(2)}], OTHER, False),
    ([{"status": "a status of next year"}], RIGHT, False),
])
def test_of_a_known_game_only_what_mends_it_is_taken_in(work, events, data, taken):
    append(work, *events)
    path, before = put(work, 1, data), record(work)
    assert adopt(work) == ("downloaded" if taken else "left")
    with open(path, "rb") as f:
        assert f.read() == data
    if taken:
        assert record(work)["status"] == "downloaded" and record(work)["sha256"] == sha(data)
        assert check(work) == {G: "ok"}
    else:
        assert record(work) == before


def test_the_right_file_put_back_heals_a_file_that_was_thrown_out(work):
    downloaded(work, 1, RIGHT)
    put(work, 1, WRONG)
    assert check(work) == {G: "corrupt"}
    assert repair.throw_out(work, Manifest(work), G)
    assert not os.path.exists(workdir.xml(work, G)) and record(work)["status"] == "corrupt"
    assert record(work)["sha256"] == sha(RIGHT)
    put(work, 1, RIGHT)
    assert adopt(work) == "downloaded" and check(work) == {G: "ok"}


@pytest.mark.parametrize(("data", "there"), [(RIGHT, True), (None, False)])
def test_what_is_sound_or_gone_by_now_is_not_thrown_out(work, data, there):
    downloaded(work, 1, RIGHT)
    if there:
        put(work, 1, data)
    else:
        os.unlink(workdir.xml(work, G))
    before = tree(work)
    assert not repair.throw_out(work, Manifest(work), G)
    assert tree(work) == before


def test_a_file_that_a_download_replaced_since_the_manifest_was_read_is_not_thrown_out(work):
    downloaded(work, 1, RIGHT)
    old = Manifest(work)
    downloaded(work, 1, OTHER)
    assert not repair.throw_out(work, old, G) and record(work)["sha256"] == sha(OTHER)


@pytest.mark.parametrize("known", [True, False])
def test_a_file_that_a_download_put_there_since_the_manifest_was_read_is_judged_by_its_new_record(work, known):
    downloaded(work, 1, RIGHT)
    if not known:
        os.unlink(workdir.xml(work, G))
    old = Manifest(work)
    downloaded(work, 1, OTHER)
    assert list(verify.check(work, old, None if known else [G])) == [("ok", G)]


def test_repair_during_the_check_may_learn_of_new_games(work):
    for n in (1, 2):
        os.unlink(workdir.xml(work, downloaded(work, n, log(n))))
    handle, found = Manifest(work), []
    for kind, what in verify.check(work, handle):
        found.append((kind, what))
        downloaded(work, 10 + len(found), log(10))
        assert not repair.throw_out(work, handle, what)
    assert found == [("missing", game(1)), ("missing", game(2))] and game(12) in handle.latest


def test_the_same_bytes_under_another_id_are_a_duplicate_and_only_the_copy_goes(work):
    downloaded(work, 1, RIGHT)
    path = put(work, 2, RIGHT)
    assert adopt(work, 2) == "duplicate" and not os.path.exists(path)
    assert {k: v for k, v in record(work, 2).items() if k != "ts"} == {
        "gid": game(2), "status": "duplicate", "sha256": sha(RIGHT), "alias_of": G}
    assert check(work) == {G: "ok"}


@pytest.mark.parametrize(("event", "keep_file", "is_twin"), [
    ({"status": "encoded", "shard": "shard_00000"}, True, True),
    ({"status": "encoded", "shard": "shard_00000"}, False, False),  # the new one is the last copy
    ({"status": "failed", "stage": "encode", "error": "x"}, True, True),
    ({"status": "failed", "stage": "encode", "error": "x"}, False, False),
    ({"status": "corrupt"}, True, False),
    ({"status": "downloaded", "sha256": "another by now"}, True, False),
    ({"status": "downloaded"}, False, False),
])
def test_only_a_sound_game_makes_another_one_its_duplicate(work, event, keep_file, is_twin):
    downloaded(work, 1, RIGHT)
    append(work, event)
    if not keep_file:
        os.unlink(workdir.xml(work, G))
    path = put(work, 2, RIGHT)
    assert adopt(work, 2) == ("duplicate" if is_twin else "downloaded")
    assert os.path.exists(path) is not is_twin


def test_two_copies_of_a_lost_game_leave_one(work):
    downloaded(work, 1, RIGHT)
    append(work, {"status": "corrupt"})
    for n in (1, 2):
        put(work, n, RIGHT)
    assert sorted([adopt(work, 2), adopt(work, 1)]) == ["downloaded", "duplicate"]
    assert sorted(os.listdir(workdir.path(work, "xml"))) == [".work-id", f"{game(2)}.txt"]


def test_empty_files_are_no_duplicates_of_each_other(work):
    for n in (1, 2):
        put(work, n, b"")
    assert [adopt(work, 1), adopt(work, 2)] == ["downloaded", "downloaded"]


def test_a_duplicate_whose_copy_a_kill_left_behind_is_moved_once_and_not_recorded_twice(work):
    downloaded(work, 1, RIGHT)
    put(work, 2, RIGHT)
    adopt(work, 2)
    before, path = tree(work), put(work, 2, RIGHT)
    assert adopt(work, 2) == "moved" and not os.path.exists(path)
    assert tree(work) == before | {f"trash/{game(2)}.txt.2": RIGHT}


def test_a_duplicate_whose_twin_is_lost_takes_its_place(work):
    downloaded(work, 1, RIGHT)
    put(work, 2, RIGHT)
    adopt(work, 2)
    os.unlink(workdir.xml(work, G))
    path = put(work, 2, RIGHT)
    assert adopt(work, 2) == "downloaded" and os.path.exists(path) and record(work, 2)["status"] == "downloaded"


@pytest.mark.parametrize("data", [RIGHT, OTHER])
def test_an_adopter_that_comes_late_neither_fails_nor_appends_anything(work, data):
    """Another adopter took the file in, or away, between the look into xml/ and the lock."""
    downloaded(work, 1, RIGHT)
    late = Manifest(work)
    put(work, 2, data)
    adopt(work, 2)
    before = tree(work)
    assert logs_adopt.take_in(work, late, game(2)) == "left" and tree(work) == before


def test_a_file_replaced_before_the_lock_is_had_is_taken_in_as_it_is_then(work, monkeypatch):
    put(work, 1, RIGHT)
    locked = manifest.Manifest._open_locked

    def slow(self):
        put(work, 1, OTHER)
        return locked(self)

    monkeypatch.setattr(Manifest, "_open_locked", slow)
    adopt(work)
    assert check(work) == {G: "ok"}


@pytest.mark.parametrize("data", [
    RIGHT, b"\xef\xbb\xbf" + RIGHT, b"\r\n" + RIGHT + b"\r\n", gzip.compress(RIGHT, mtime=0),
    gzip.compress(b"\xef\xbb\xbf" + RIGHT, mtime=0)])
def test_a_whole_log_is_known_by_its_two_ends(data):
    assert logfile.is_whole(data)


@pytest.mark.parametrize("data", [
    b"", RIGHT[:-1], RIGHT[1:], b"<html>" + RIGHT, RIGHT + b"x", gzip.compress(RIGHT, mtime=0)[:-20],
    gzip.compress(RIGHT[:-1], mtime=0), b"\x1f\x8bnot gzip",
    gzip.compress(b"<mjloggm>" + bytes(1 << 24) + b"</mjloggm>", mtime=0)])
def test_what_lacks_an_end_or_unpacks_to_too_much_is_no_whole_log(data):
    assert not logfile.is_whole(data)


def test_a_full_disk_stops_adoption_and_the_file_is_adopted_later(work, monkeypatch):
    put(work, 1, RIGHT)

    def full(fd, data):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError):
        patch.setattr(os, "write", full)
        adopt(work)
    assert record(work) is None and files.sha256(workdir.xml(work, G)) == sha(RIGHT)
    assert adopt(work) == "downloaded"
