"""Files that others trust: whole or not there, durable, and no left-overs for ever."""

import contextlib
import errno
import fcntl
import hashlib
import os
import resource
import subprocess
import sys

import pytest
from flows import ROOT
from support import game

from lib.manifest import Manifest
from lib.store import files


@pytest.fixture
def calls(monkeypatch):
    """The names of what is fsynced and renamed, in order."""
    found, fsync, rename = [], os.fsync, os.rename

    def spy_fsync(fd):
        found.append(("fsync", os.readlink(f"/proc/self/fd/{fd}")))
        fsync(fd)

    def spy_rename(old, new):
        found.append(("rename", new))
        rename(old, new)

    monkeypatch.setattr(os, "fsync", spy_fsync)
    monkeypatch.setattr(os, "rename", spy_rename)
    return found


def test_a_file_is_synced_before_its_rename_and_its_directory_after_it(tmp_path, calls):
    path = str(tmp_path / "x")
    files.write(path, b"new")
    (first, temporary), *rest = calls
    assert first == "fsync" and os.path.dirname(temporary) == str(tmp_path) and os.path.basename(temporary)[0] == "."
    assert rest == [("rename", path), ("fsync", str(tmp_path))]
    assert os.listdir(tmp_path) == ["x"] and (tmp_path / "x").read_bytes() == b"new"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, OSError])
def test_a_block_that_fails_leaves_the_old_file_and_nothing_aside(tmp_path, error):
    path = tmp_path / "x"
    path.write_bytes(b"old")
    with pytest.raises(error), files.atomic_write(str(path)) as f:
        f.write(b"new")
        raise error
    assert os.listdir(tmp_path) == ["x"] and path.read_bytes() == b"old"


def test_a_full_disk_leaves_the_old_file_and_nothing_aside(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"old")
    code = "import sys; from lib.store import files; files.write(sys.argv[1], bytes(100_000))"
    done = subprocess.run([sys.executable, "-c", code, path], cwd=ROOT, capture_output=True, text=True,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000)))
    assert done.returncode == 1 and f"[Errno {errno.EFBIG}]" in done.stderr
    assert os.listdir(tmp_path) == ["x"] and path.read_bytes() == b"old"


def test_a_name_without_a_directory_means_the_current_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files.write("x", b"data")
    assert (tmp_path / "x").read_bytes() == b"data"


def killed(work):
    """Run `work()` in a child that ends at once after it, as if killed; returns the child's pid."""
    pid = os.fork()
    if not pid:
        try:
            work()
        finally:
            os._exit(9)
    os.waitpid(pid, 0)
    return pid


def test_what_a_killed_process_left_aside_is_swept_and_what_a_living_one_writes_is_not(tmp_path):
    def begin():
        stack = contextlib.ExitStack()
        stack.enter_context(files.atomic_write(str(tmp_path / "x"))).write(b"half")
        os.mkdir(shard := files.temporary_path(str(tmp_path / "shard")))
        with open(os.path.join(shard, "part"), "wb"):
            os._exit(9)

    killed(begin)
    assert len(os.listdir(tmp_path)) == 2
    with files.atomic_write(str(tmp_path / "mine")) as f:
        files.sweep(str(tmp_path))
        assert [name.rpartition("-")[2] for name in os.listdir(tmp_path)] == ["mine"]
        f.write(b"whole")
    assert (tmp_path / "mine").read_bytes() == b"whole"


def test_the_sweep_touches_nothing_of_other_hosts_or_of_users(tmp_path):
    pid = killed(lambda: None)
    kept = [f".tmp-elsewhere-{pid}-x", ".tmp-", ".tmp-x", ".tmpfile", "x", f"{files.HOST}-{pid}-x",
            f".tmp-{files.HOST}-{'9' * 30}-x", f".tmp-{files.HOST}-x"]
    for name in kept:
        (tmp_path / name).write_bytes(b"")
    files.sweep(str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == sorted(kept)


def test_the_sweep_removes_a_link_and_not_what_it_points_to(tmp_path):
    pid = killed(lambda: None)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "precious").write_bytes(b"")
    (tmp_path / "cache").mkdir()
    os.symlink(tmp_path / "elsewhere", tmp_path / "cache" / f".tmp-{files.HOST}-{pid}-x")
    files.sweep(str(tmp_path / "cache"))
    assert os.listdir(tmp_path / "cache") == [] and os.listdir(tmp_path / "elsewhere") == ["precious"]


def test_sweeping_a_directory_that_is_not_there_is_no_error(tmp_path):
    files.sweep(str(tmp_path / "nowhere"))


@pytest.mark.parametrize("size", [0, 1, (1 << 20) + 1])
def test_sha256_is_that_of_the_bytes(tmp_path, size):
    data = os.urandom(size)
    (tmp_path / "x").write_bytes(data)
    assert files.sha256(tmp_path / "x") == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("make", [lambda p: os.symlink("/etc/hostname", p), os.mkfifo, os.mkdir, lambda p: None])
def test_what_is_no_regular_file_is_not_there(tmp_path, make):
    make(tmp_path / "x")
    with pytest.raises(FileNotFoundError):
        files.sha256(tmp_path / "x")


def test_a_process_that_ended_and_was_not_waited_for_is_dead():
    pid = os.fork()
    if not pid:
        os._exit(0)
    try:
        while files.is_alive(pid):
            pass
        assert files.is_alive(os.getpid())
    finally:
        os.waitpid(pid, 0)


def test_a_temporary_name_cannot_be_foretold(tmp_path):
    names = {files.temporary_path(str(tmp_path / "x")) for _ in range(100)}
    assert len(names) == 100
    assert len({name.split("-")[-2] for name in names}) == 100 and all(len(name.split("-")[-2]) == 16 for name in names)


def test_nothing_is_written_through_a_link_in_the_place_of_a_temporary_file(tmp_path, monkeypatch):
    outside = tmp_path / "outside"
    outside.write_bytes(b"precious")
    monkeypatch.setattr(files, "temporary_path", lambda path: str(tmp_path / "foretold"))
    os.symlink(outside, tmp_path / "foretold")
    with pytest.raises(FileExistsError):
        files.write(str(tmp_path / "x"), b"data")
    assert outside.read_bytes() == b"precious"


def test_a_link_is_not_read_though_it_takes_the_place_of_a_file_at_the_last_moment(tmp_path, monkeypatch):
    (tmp_path / "outside").write_bytes(b"secret")
    (tmp_path / "x").write_bytes(b"")
    lstat = os.lstat

    def exchange(path, *args, **kwargs):
        info = lstat(path, *args, **kwargs)
        if str(path) == str(tmp_path / "x"):
            os.unlink(path)
            os.symlink(tmp_path / "outside", path)
        return info

    monkeypatch.setattr(os, "lstat", exchange)
    try:
        with files.open_regular(str(tmp_path / "x")) as f:
            assert f.read() == b""
    except FileNotFoundError:
        pass


def test_a_file_like_another_has_its_mode_and_its_group(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"old")
    path.chmod(0o640)
    groups = [group for group in os.getgroups() if group != path.stat().st_gid]
    group = groups[0] if groups else 12345 if os.geteuid() == 0 else path.stat().st_gid
    os.chown(path, -1, group)
    with files.atomic_write(str(path), os.stat(path)) as f:
        f.write(b"new")
    assert (path.stat().st_mode & 0o7777, path.stat().st_gid, path.read_bytes()) == (0o640, group, b"new")


@pytest.fixture
def full_syncs(monkeypatch):
    """The names of what is synced down to the disk's own memory, as macOS can."""
    found = []
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", lambda fd, what: found.append((os.readlink(f"/proc/self/fd/{fd}"), what)))
    return found


def test_on_macos_a_directory_and_an_event_are_synced_down_to_the_disk_itself(work, full_syncs):
    files.write(os.path.join(work, "x"), b"new")
    assert full_syncs == [(work, 51)]
    files.write_all({os.path.join(work, "y"): b"", os.path.join(work, "z"): b""})
    assert full_syncs == [(work, 51)] * 2
    Manifest(work).append([{"gid": game(1), "status": "corrupt"}])
    assert full_syncs[2:] == [(os.path.join(work, "manifest.jsonl"), 51), (work, 51)]


@pytest.mark.parametrize("error", [errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOTTY])
def test_a_file_system_that_knows_no_such_sync_has_the_usual_one(work, full_syncs, monkeypatch, error):
    def fail(fd, what):
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(fcntl, "fcntl", fail)
    files.write(os.path.join(work, "x"), b"new")
    error = errno.EIO
    with pytest.raises(OSError, match="Input/output error"):
        files.write(os.path.join(work, "x"), b"newer")
