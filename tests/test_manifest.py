"""The manifest: the last line of an id wins, and no kill, no tear, no full disk and no neighbour costs a whole line."""

import errno
import json
import os
import resource
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import BAD_IDS, game

from lib import manifest
from lib.manifest import Manifest
from lib.store import files, workdir
from lib.store.current import CurrentLines

GAMES = [game(n) for n in range(4)]
TEXT = st.text(st.characters(codec="utf-8"), max_size=5)
EVENTS = st.fixed_dictionaries(
    {"gid": st.sampled_from(GAMES), "status": st.sampled_from(
        ["downloaded", "encoded", "duplicate", "corrupt", "failed", "a status of next year"])},
    optional={
        "sha256": st.sampled_from([None, "aa", "bb", "cc"]), "size": st.integers(0, 9), "ts": TEXT,
        "shard": st.sampled_from([None, "shard_00000", "shard_00001", "../牌"]), "n_samples": st.integers(0, 9),
        "dropped": st.sampled_from([None, 5, "shard_00009", ["shard_00009"], [[]]]), "error": TEXT,
        "a field of next year": st.recursive(st.none() | TEXT, st.lists, max_leaves=3),
    })
GARBAGE = st.sampled_from([
    b"x", b"{", b"null", b"[]", b"3", b"\"" + GAMES[0].encode() + b"\"", b"{}", b'{"gid": null}', b'{"gid": []}',
    b'{"status": "encoded"}', b"\xff\xfe\x00", "牌".encode()[:2], b"[" * 50_000, b"9" * 5000, b"\0" * 4096, b" ",
    json.dumps({"gid": "../../x", "status": "downloaded"}).encode(),
    json.dumps({"gid": GAMES[0], "status": ["encoded"]}).encode(),
    json.dumps({"gid": GAMES[0], "status": "downloaded", "sha256": []}).encode(),
    json.dumps({"gid": GAMES[0], "status": "encoded", "shard": {}}).encode(),
])


def model(events):
    """What `latest` must be after these events."""
    latest = {}
    for event in events:
        record, before = dict(event), latest.get(event["gid"], {})
        if record.get("sha256") is None and before.get("sha256"):
            record["sha256"] = before["sha256"]
        if record.get("sha256") is not None and record["sha256"] == before.get("sha256") and "size" in before:
            record.setdefault("size", before["size"])
        latest[event["gid"]] = record
    return latest


def line(event):
    """An event as a line of the file."""
    return json.dumps(event, ensure_ascii=False).encode() + b"\n"


@pytest.fixture
def path(work):
    """The path of the manifest of `work`."""
    return os.path.join(work, workdir.MANIFEST)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A directory for hypothesis: each example begins with `fresh` in it."""
    return str(tmp_path_factory.mktemp("manifest"))


def fresh(directory, data=b""):
    """Put these bytes in the place of the directory's manifest; returns its path."""
    path = os.path.join(directory, "manifest.jsonl")
    with open(path, "wb") as f:
        f.write(data)
    return path


def printed(latest):
    """What manifest-latest prints, as records; the size of the file is only carried on for the scripts."""
    return without_size({game: json.loads(line) for game, line in latest.latest.items()})


def without_size(records):
    return {game: {key: value for key, value in record.items() if key != "size"} for game, record in records.items()}


def content(path):
    with open(path, "rb") as f:
        return f.read()


@given(events=st.lists(EVENTS, max_size=12))
def test_any_sequence_of_events_comes_to_what_the_model_says(shared, events):
    fresh(shared, b"".join(map(line, events)))
    read = Manifest(shared)
    assert read.latest == model(events) and not read.bad
    assert printed(CurrentLines(shared)) == without_size(read.latest)
    assert list(read.latest) == list(dict.fromkeys(event["gid"] for event in events))
    claims = {}
    for event in events:
        if event["status"] == "encoded" and event.get("shard"):
            claims.setdefault(event["shard"], {})[event["gid"]] = event.get("n_samples")
    assert {name: games for name, games in read.claims.items() if games} == claims
    assert ("shard_00009" in read.claims) == any(event.get("dropped") == ["shard_00009"] for event in events)


@settings(deadline=None)
@given(batches=st.lists(st.tuples(st.integers(0, 2), st.lists(EVENTS, max_size=3)), max_size=6))
def test_handles_that_append_in_turn_know_what_the_others_appended(shared, batches):
    os.unlink(fresh(shared))
    handles = [Manifest(shared) for _ in range(3)]
    for who, events in batches:
        now = Manifest(shared).latest
        with handles[who].locked() as append:
            assert handles[who].latest == now
            append(events)
        assert handles[who].latest == Manifest(shared).latest
    for handle in handles:
        with handle.locked():
            pass
        new = Manifest(shared)
        assert (handle.latest, handle.claims, handle.owners) == (new.latest, new.claims, new.owners)
    assert [r | {"ts": ""} for r in new.latest.values()] == [
        r | {"ts": ""} for r in model(event for _, events in batches for event in events).values()]


@settings(deadline=None)
@given(events=st.lists(EVENTS, min_size=1, max_size=5), data=st.data())
def test_cut_anywhere_all_whole_lines_survive_and_appending_goes_on(shared, events, data):
    whole = b"".join(map(line, events))
    cut = data.draw(st.integers(0, len(whole)))
    path = fresh(shared, whole[:cut])
    *lines, tail = whole[:cut].split(b"\n")
    survive = events[:len(lines)]
    if tail and line(events[len(lines)]) == tail + b"\n":
        survive, tail = events[:len(lines) + 1], b""  # only the newline is lost
    before = Manifest(shared)
    assert before.latest == model(survive)
    assert before.bad == ([len(survive) + 1] if tail else [])
    new = {"ts": "", "gid": game(7), "status": "downloaded", "sha256": "dd"}
    before.append([new])
    after = Manifest(shared)
    assert after.latest == before.latest == model([*survive, new])
    assert len(after.bad) == len(before.bad) == bool(tail)
    assert content(path) == whole[:cut] + (b"" if whole[:cut][-1:] in b"\n" else b"\n") + line(new)


@settings(deadline=None)
@given(lines=st.lists(EVENTS.map(line) | GARBAGE.map(lambda text: text + b"\n"), min_size=1, max_size=8))
def test_garbage_in_the_middle_is_counted_and_hides_no_neighbour(shared, lines):
    def is_event(text):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return False
        return isinstance(found, dict) and found.get("gid") in GAMES and not any(
            isinstance(found.get(key), list | dict) for key in ("status", "sha256", "shard"))

    fresh(shared, b"".join(lines))
    read = Manifest(shared)
    bad = [number for number, text in enumerate(lines, 1) if not is_event(text)]
    assert read.latest == model(json.loads(text) for text in lines if is_event(text))
    assert read.bad == bad
    shown = CurrentLines(shared)
    assert printed(shown) == without_size(read.latest) and shown.bad == bad


@pytest.mark.parametrize("both", [
    b'{"gid": "%b"}, {"gid": "%b"}', b'{"gid": "%b"}, 5, {"gid": "%b"}', b'{"a": {"gid": "%b"}}, {"gid": "%b"}'])
def test_torn_lines_do_not_join_up_where_another_line_has_two_records(work, both):
    data = [b'{"a": [{}', b"{}]}", both % (GAMES[0].encode(), GAMES[1].encode())]
    fresh(work, b"\n".join([*data, *data[::-1], line({"gid": GAMES[2]})]))
    for read in Manifest(work), CurrentLines(work):
        assert read.bad == [1, 2, 3, 4, 5, 6] and list(read.latest) == [GAMES[2]]


@pytest.mark.parametrize("text", BAD_IDS)
def test_a_record_whose_gid_is_no_game_id_is_a_bad_line(work, text):
    fresh(work, line({"gid": text, "status": "downloaded", "sha256": "aa"}))
    read = Manifest(work)
    assert not read.latest and not read.owners and read.bad == [1]


def test_a_block_boundary_inside_a_line_splits_nothing(work, monkeypatch):
    events = [{"gid": game(n), "status": "failed", "error": "牌" * n} for n in range(50)]
    fresh(work, b"".join(map(line, events)))
    for size in (1, 7, 64):
        monkeypatch.setattr(manifest, "_BLOCK", size)
        assert Manifest(work).latest == model(events) and not Manifest(work).bad


def test_lines_are_counted_right_after_a_last_line_without_newline(work, path):
    fresh(work, line({"gid": GAMES[0], "status": "corrupt"})[:-1])
    handle = Manifest(work)
    handle.append([{"gid": GAMES[1], "status": "corrupt"}])
    with open(path, "ab") as f:
        f.write(b"garbage\n")
    with handle.locked():
        assert handle.bad[0] == 3


def test_no_manifest_is_an_empty_one_and_reading_makes_none(work, path):
    assert Manifest(work).latest == {}
    assert not os.path.exists(path)


def test_sha256_and_size_are_carried_forward_until_the_bytes_are_others(work):
    handle = Manifest(work)
    for event in ({"status": "downloaded", "sha256": "aa", "size": 5}, {"status": "encoded", "sha256": None},
                  {"status": "corrupt"}, {"status": "failed", "error": "404"}):
        handle.append([{"gid": GAMES[0], **event}])
        assert handle.latest[GAMES[0]]["sha256"] == "aa" and handle.latest[GAMES[0]]["size"] == 5
    handle.append([{"gid": GAMES[0], "status": "downloaded", "sha256": "bb"}])
    assert handle.latest[GAMES[0]]["sha256"] == "bb" and "size" not in handle.latest[GAMES[0]]
    assert Manifest(work).latest == handle.latest


def test_owner_of_bytes_is_who_was_downloaded_last_with_them_and_never_a_duplicate(work):
    handle = Manifest(work)
    a, b, c, d = GAMES
    handle.append([{"gid": d, "status": "duplicate", "sha256": "aa", "alias_of": a}])
    assert handle.owners == {}
    handle.append([{"gid": a, "status": "encoded", "sha256": "aa"}, {"gid": b, "status": "encoded", "sha256": "aa"}])
    assert handle.owners == {"aa": a}
    handle.append([{"gid": c, "status": "downloaded", "sha256": "aa"}])
    assert handle.owners == {"aa": c}


def test_time_stamps_are_utc_in_whole_seconds(work):
    Manifest(work).append([{"gid": GAMES[0], "status": "corrupt"}])
    stamp = Manifest(work).latest[GAMES[0]]["ts"]
    then = time.mktime(time.strptime(stamp, "%Y-%m-%dT%H:%M:%SZ")) - time.timezone
    assert abs(time.time() - then) < 5


def test_half_a_surrogate_pair_is_written_as_json_can_say_it(work):
    Manifest(work).append([{"gid": GAMES[0], "status": "failed", "error": "\ud800牌"}])
    assert Manifest(work).latest[GAMES[0]]["error"] == "\ud800牌"


def test_a_batch_is_one_write_synced_before_the_lock_is_given_up_and_so_is_a_new_directory_entry(work, monkeypatch):
    calls = []
    write, fsync, close, sync_dir = os.write, os.fsync, os.close, files.sync_dir
    monkeypatch.setattr(os, "write", lambda fd, data: calls.append(("write", data.count(b"\n"))) or write(fd, data))
    monkeypatch.setattr(os, "fsync", lambda fd: calls.append("fsync") or fsync(fd))
    monkeypatch.setattr(os, "close", lambda fd: calls.append("close") or close(fd))
    monkeypatch.setattr(files, "sync_dir", lambda name: calls.append(name))
    handle = Manifest(work)
    handle.append([{"gid": g, "status": "corrupt"} for g in GAMES])
    assert calls == [("write", 4), "fsync", work, "close"]
    monkeypatch.setattr(files, "sync_dir", sync_dir)
    del calls[:]
    handle.append([{"gid": g, "status": "corrupt"} for g in GAMES])
    assert calls == [("write", 4), "fsync", "close"]


def test_a_short_write_is_gone_on_with(work, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:7]))
    handle = Manifest(work)
    handle.append([{"gid": g, "status": "corrupt"} for g in GAMES])
    assert Manifest(work).latest == handle.latest and list(handle.latest) == GAMES


@pytest.mark.parametrize("old", [b"", line({"gid": game(0), "status": "corrupt"}), b'{"gid": "torn'])
@pytest.mark.parametrize("failing", ["write", "fsync"])
def test_an_append_that_fails_half_way_is_cut_back_and_the_next_one_works(work, monkeypatch, old, failing):
    path = fresh(work, old)
    handle = Manifest(work)
    before, write = dict(handle.latest), os.write

    def half(fd, data):
        if content(path) != old:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(fd, data[:len(data) // 2])

    def fail(fd):
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, *{"write": ("write", half), "fsync": ("fsync", fail)}[failing])
        with pytest.raises(OSError):
            handle.append([{"gid": game(1), "status": "corrupt"}, {"gid": game(2), "status": "corrupt"}])
    assert content(path) == old and handle.latest == before
    handle.append([{"gid": game(3), "status": "corrupt"}])
    assert list(Manifest(work).latest) == list(handle.latest) == [*before, game(3)]
    assert len(Manifest(work).bad) == len(handle.bad) == (b"torn" in old)


def test_a_disk_that_fills_up_leaves_whole_lines_only(work, path):
    pid = os.fork()
    if not pid:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        handle, n = Manifest(work), 0
        try:
            while True:
                handle.append([{"gid": game(n), "status": "corrupt"}, {"gid": game(n + 1), "status": "corrupt"}])
                n += 2
        except OSError as e:
            os._exit(n if e.errno == errno.EFBIG else 255)
    n = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    read = Manifest(work)
    assert 0 < n < 255 and list(read.latest) == [game(k) for k in range(n)] and not read.bad
    assert content(path).endswith(b"\n")


def test_what_is_decided_under_the_lock_stands_on_what_others_appended(work):
    mine, other = Manifest(work), Manifest(work)
    other.append([{"gid": GAMES[0], "status": "downloaded", "sha256": "aa"}])
    assert mine.latest == {}
    with mine.locked() as append:
        assert mine.latest[GAMES[0]]["status"] == "downloaded"
        append([])
    assert len(content(mine.path).splitlines()) == 1


def test_an_exception_under_the_lock_gives_it_up(work):
    with pytest.raises(ValueError), Manifest(work).locked():
        raise ValueError
    Manifest(work).append([{"gid": GAMES[0], "status": "corrupt"}])


def test_a_manifest_that_was_replaced_or_cut_is_read_anew(work, path):
    handle = Manifest(work)
    handle.append([{"gid": GAMES[0], "status": "encoded", "shard": "shard_00000", "sha256": "aa"}])
    files.write(path, b"not json\n" + line({"gid": GAMES[1], "status": "downloaded", "sha256": "bb"}) * 3)
    handle.append([{"gid": GAMES[2], "status": "corrupt"}])
    new = Manifest(work)
    assert list(handle.latest) == [GAMES[1], GAMES[2]] and handle.claims == {} and handle.owners == new.owners
    assert handle.latest == new.latest and len(handle.bad) == len(new.bad) == 1
    os.truncate(path, 9)
    with handle.locked():
        assert handle.latest == {} and len(handle.bad) == 1


def test_a_manifest_replaced_while_we_wait_for_the_lock_gets_our_lines(work, path):
    fresh(work, line({"gid": GAMES[0], "status": "corrupt"}))
    handle, (there, here) = Manifest(work), os.pipe()
    pid = os.fork()
    if not pid:
        with Manifest(work).locked():
            os.write(here, b"x")
            time.sleep(0.2)  # by now the parent waits for the lock; should it be late, it must end well too
            files.write(path, line({"gid": GAMES[1], "status": "corrupt"}))
        os._exit(0)
    os.read(there, 1)
    handle.append([{"gid": GAMES[2], "status": "corrupt"}])
    os.waitpid(pid, 0)
    assert list(Manifest(work).latest) == list(handle.latest) == [GAMES[1], GAMES[2]]


def test_eight_processes_append_at_once_while_others_read_and_no_line_is_lost_or_torn(work, path):
    writers, rounds, batch = 8, 100, 3
    pids = []
    for who in range(writers + 2):
        pid = os.fork()
        if pid:
            pids.append(pid)
            continue
        try:
            handle, seen = Manifest(work), 0
            for n in range(rounds):
                if who < writers:
                    handle.append([{"gid": game(1000 * who + batch * n + k), "status": "failed", "error": "牌" * k}
                                   for k in range(batch)])
                else:
                    read = Manifest(work)
                    if read.bad or len(read.latest) < seen or len(read.latest) % batch:
                        os._exit(1)
                    seen = len(read.latest)
            os._exit(0)
        except BaseException:
            os._exit(2)
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0] * (writers + 2)
    lines = [json.loads(text) for text in content(path).decode().splitlines()]
    per_writer = [[r["gid"] for r in lines if int(r["gid"][-8:], 16) // 1000 == who] for who in range(writers)]
    assert per_writer == [[game(1000 * who + n) for n in range(rounds * batch)] for who in range(writers)]
    firsts = [r["gid"] for r in lines][::batch]  # the lines of a batch stand together
    assert all(int(g[-8:], 16) % 1000 % batch == 0 for g in firsts)


def test_another_manifest_of_the_same_inode_and_a_larger_size_is_another_one(work, path):
    """An inode's number is used again, and a file may be written anew in its place."""
    Manifest(work).append([{"gid": game(1), "status": "downloaded"}])
    handle = Manifest(work)
    with open(path, "r+b") as f:
        f.write(manifest.encode([{"gid": game(n), "status": "failed"} for n in (2, 3, 4)]))
        f.truncate()
    assert os.stat(path).st_size > 0
    handle.refresh()
    assert list(handle.latest) == [game(2), game(3), game(4)]
