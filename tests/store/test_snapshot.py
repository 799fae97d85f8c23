"""The snapshot of a large manifest: it changes how fast that is read, and nothing else, whatever stands there."""

import contextlib
import json
import os
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_manifest import EVENTS, GARBAGE, fresh, line

from lib.manifest import Manifest
from lib.store import snapshot

LINES = st.lists(st.one_of(EVENTS.map(line), GARBAGE.filter(lambda b: len(b) < 100).map(lambda b: b + b"\n")),
                 min_size=1, max_size=8)


@pytest.fixture(autouse=True)
def always(monkeypatch):
    """A snapshot of any manifest, however small."""
    monkeypatch.setattr(snapshot, "LARGE", 0)
    monkeypatch.setattr(snapshot, "NEWS", 1)


@pytest.fixture
def parsed(monkeypatch):
    """A list that grows by the lines that were parsed."""
    lines, take = [], Manifest._take
    monkeypatch.setattr(Manifest, "_take", lambda self, some: (lines.extend(some), take(self, some)))
    return lines


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A directory for hypothesis: each example begins with `begin` in it."""
    return str(tmp_path_factory.mktemp("snapshot"))


def begin(directory, data):
    """Put `data` in the place of the manifest, and keep a snapshot of it if it can be kept."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(kept(directory))
    fresh(directory, data)
    Manifest(directory).save_snapshot()


def kept(directory):
    return os.path.join(directory, ".manifest-snapshot")


def state(handle):
    """All that a handle knows, with all orders."""
    return json.dumps([handle.latest, handle.claims, handle.bad, handle.owners, handle._offset, handle._lines])


def both(directory):
    """The states read with the snapshot that is there and without one."""
    found = state(Manifest(directory))
    with contextlib.suppress(FileNotFoundError):
        os.rename(kept(directory), kept(directory) + ".away")
    plain = state(Manifest(directory))
    with contextlib.suppress(FileNotFoundError):
        os.rename(kept(directory) + ".away", kept(directory))
    return found, plain


@given(before=LINES, torn=st.booleans(), at=st.integers(0, 2000), gone=st.integers(0, 300),
       new=st.one_of(LINES.map(b"".join), st.binary(max_size=3)))
def test_after_any_edit_the_manifest_reads_as_if_there_were_no_snapshot(shared, before, torn, at, gone, new):
    data = b"".join(before)
    data = data[:-1] if torn else data
    begin(shared, data)
    fresh(shared, data[:at] + new + data[at + gone:])
    found, plain = both(shared)
    assert found == plain


@given(before=LINES, after=LINES, more=LINES)
def test_what_was_appended_since_is_read_also_by_a_handle_that_was_open(shared, before, after, more):
    begin(shared, b"".join(before))
    fresh(shared, b"".join(before + after))
    handle = Manifest(shared)
    handle.save_snapshot()
    fresh(shared, b"".join(before + after + more))
    handle.refresh()
    found, plain = both(shared)
    assert found == plain == state(handle)


@given(before=LINES, at=st.integers(0), value=st.integers(0, 255), cut=st.booleans())
def test_a_damaged_snapshot_is_passed_over(shared, before, at, value, cut):
    begin(shared, b"".join(before))
    with open(kept(shared), "r+b") as f:
        at %= os.fstat(f.fileno()).st_size
        f.seek(at)
        f.truncate(at) if cut else f.write(bytes([value]))
    found, plain = both(shared)
    assert found == plain


def test_lines_that_a_snapshot_has_are_not_parsed_again(work, parsed):
    first, second = (line({"gid": f"2001010100gm-00e1-0000-0000000{n}", "status": "downloaded"}) for n in (1, 2))
    begin(work, first)
    fresh(work, first + second)
    parsed.clear()
    assert len(Manifest(work).latest) == 2 and parsed == [second[:-1]]


@pytest.mark.parametrize("edit", [b"8", b"0"])
def test_a_byte_changed_by_hand_with_the_file_as_it_was_in_all_else_is_seen(work, edit):
    game = "2001010100gm-00e1-0000-00000001"
    begin(work, line({"gid": game, "status": "downloaded", "sha256": "aa", "size": 9}))
    path = os.path.join(work, "manifest.jsonl")
    was = os.stat(path)
    with open(path, "r+b") as f:
        f.seek(-3, os.SEEK_END)
        f.write(edit)
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert os.stat(path).st_ino == was.st_ino and Manifest(work).latest[game]["size"] == int(edit)


def test_a_manifest_that_was_copied_with_its_snapshot_is_not_parsed(work, tmp_path, parsed):
    begin(work, line({"gid": "2001010100gm-00e1-0000-00000001", "status": "downloaded"}))
    shutil.copytree(work, tmp_path / "copy")
    parsed.clear()
    assert len(Manifest(tmp_path / "copy").latest) == 1 and not parsed


@pytest.mark.parametrize(("thing", "name", "value"), [
    (snapshot.sys, "version", "another"), (snapshot, "_PROGRAM", (*snapshot._PROGRAM, "workdir.py"))])
def test_another_program_or_python_does_not_use_it(work, parsed, monkeypatch, thing, name, value):
    begin(work, line({"gid": "2001010100gm-00e1-0000-00000001", "status": "downloaded"}))
    parsed.clear()
    monkeypatch.setattr(thing, name, value)
    assert len(Manifest(work).latest) == 1 and len(parsed) == 1


def test_a_tail_that_may_still_grow_is_not_kept(work):
    event = line({"gid": "2001010100gm-00e1-0000-00000001", "status": "downloaded"})
    begin(work, event[:-5])
    handle = Manifest(work)
    handle.save_snapshot()
    fresh(work, event * 2)
    handle.refresh()
    handle.save_snapshot()
    assert not os.path.exists(kept(work))


def test_little_news_is_not_worth_a_snapshot_nor_is_a_small_manifest(work, monkeypatch):
    event = line({"gid": "2001010100gm-00e1-0000-00000001", "status": "downloaded"})
    monkeypatch.setattr(snapshot, "NEWS", len(event) + 1)
    begin(work, event)
    assert not os.path.exists(kept(work))
    monkeypatch.setattr(snapshot, "LARGE", 2 * len(event) + 1)
    begin(work, event * 2)
    assert not os.path.exists(kept(work))
    begin(work, event * 3)
    assert os.path.exists(kept(work))


@pytest.mark.parametrize("thing", ["link", "pipe", "directory"])
def test_what_stands_in_its_place_does_not_hinder_reading(work, thing):
    event = line({"gid": "2001010100gm-00e1-0000-00000001", "status": "downloaded"})
    fresh(work, event)
    if thing == "link":
        os.symlink("/dev/zero", kept(work))
    elif thing == "pipe":
        os.mkfifo(kept(work))
    else:
        os.mkdir(kept(work))
    assert len(Manifest(work).latest) == 1


@pytest.mark.parametrize("mode", [0o602, 0o660, 0o666])
def test_a_snapshot_that_others_may_have_written_is_not_believed(work, parsed, mode):
    begin(work, line({"gid": "2001010100gm-00e1-0000-00000001", "status": "downloaded"}))
    assert os.stat(kept(work)).st_mode & 0o777 == 0o600
    os.chmod(kept(work), mode)
    parsed.clear()
    assert len(Manifest(work).latest) == 1 and len(parsed) == 1


def test_another_user_s_snapshot_is_not_believed(work, parsed, monkeypatch):
    begin(work, line({"gid": "2001010100gm-00e1-0000-00000001", "status": "downloaded"}))
    parsed.clear()
    monkeypatch.setattr(snapshot.os, "geteuid", lambda: 54321)
    assert len(Manifest(work).latest) == 1 and len(parsed) == 1
