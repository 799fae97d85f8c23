"""Disks that are full, read-only, forbidden or gone: one clear line, exit 1, nothing half done; then it goes on."""

import contextlib
import ctypes
import os
import resource
import shutil
import subprocess
import sys

import faulty
import pytest
from flows import ROOT, make, script, stand_in

pytestmark = pytest.mark.slow

WRITERS = [writer for writer in faulty.WRITERS if "parquet" not in writer]


def forbid_everything():
    """Make this process of root one whose access file modes can forbid, if it is root's at all."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            if libc.prctl(24, capability, 0, 0, 0):  # PR_CAPBSET_DROP: they are gone after the exec
                raise OSError(ctypes.get_errno(), "prctl")


def small_files(size):
    """A function that limits the size of the files that this process writes."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.fixture(scope="module")
def small_disk(tmp_path_factory):
    """A disk of 24 MB; needs root and the right to mount."""
    path = tmp_path_factory.mktemp("disk")
    command = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(path)]
    if os.geteuid() or shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("this process may not mount a disk")
    yield path
    subprocess.run(["umount", str(path)], check=True)


def hinder(writer, work, logs, **options):
    """Run a writer on a disk that gives it trouble; returns the CompletedProcess."""
    done = script(*faulty.call(writer, work), **options)
    faulty.assert_one_line(done)
    faulty.assert_nothing_half_done(work, logs, writer != "recover-manifest")
    return done


def go_on(writer, work, logs, right):
    """The trouble is over: the next run ends as if it had not been."""
    faulty.ok(*faulty.call(writer, work))
    faulty.finish(work, logs)
    assert faulty.difference(work, right) == (0, 0)
    faulty.assert_clean(work)


@pytest.mark.parametrize("writer", WRITERS)
def test_files_that_may_not_grow(tmp_path, ready, logs, right, writer):
    """A limit forbids the first byte of an event, cuts it in two, or does not hurt the manifest, but shards."""
    work, failures = faulty.copy(ready(writer), tmp_path), 0
    manifest = work / "manifest.jsonl"
    size = manifest.stat().st_size if manifest.exists() else 0
    for limit in (size // 2, size + 40, size * 2 + 100_000):
        done = hinder(writer, work, logs, preexec_fn=small_files(limit))
        failures += done.returncode
        assert done.returncode == 0 or "File too large" in done.stderr
    assert failures or writer == "rebuild-index"  # whose file is smaller than any manifest
    go_on(writer, work, logs, right)


def test_an_index_that_may_not_grow(tmp_path, ready, logs, right):
    work = faulty.copy(ready("rebuild-index"), tmp_path)
    (work / "cache" / "index.json").unlink()  # encode-batch wrote it
    assert hinder("rebuild-index", work, logs, preexec_fn=small_files(100)).returncode == 1
    assert not (work / "cache" / "index.json").exists()
    go_on("rebuild-index", work, logs, right)


@pytest.mark.parametrize("writer", WRITERS)
def test_a_full_disk(small_disk, ready, logs, right, writer):
    work, filler = small_disk / "w", small_disk / "filler"
    try:
        faulty.copy(ready(writer), small_disk)
        for free in (0, 300_000):
            fill(filler, free)
            done = hinder(writer, work, logs)
            assert done.returncode == 1 or free or "repair" in writer, done.stderr  # which makes its own room
            assert done.returncode == 0 or "No space left on device" in done.stderr
            filler.unlink()
        go_on(writer, work, logs, right)
    finally:
        filler.unlink(missing_ok=True)
        shutil.rmtree(work)


def fill(filler, free):
    """Write a file until the disk is full, but for `free` bytes."""
    fd = os.open(filler, os.O_WRONLY | os.O_CREAT)
    try:
        with contextlib.suppress(OSError):
            while True:
                os.write(fd, bytes(1 << 12))
        os.ftruncate(fd, os.fstat(fd).st_size - free)
    finally:
        os.close(fd)


@pytest.mark.parametrize("writer", WRITERS)
def test_a_read_only_disk(small_disk, ready, logs, right, writer):
    work = small_disk / "w"
    try:
        faulty.copy(ready(writer), small_disk)
        subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
        try:
            done = hinder(writer, work, logs)
            assert done.returncode == 1 and "Read-only file system" in done.stderr
            assert script("verify-xml", "--work", work).returncode in (0, 1)  # a check needs no place to write
            assert "Read-only" not in script("verify-shards", "--work", work).stderr
        finally:
            subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
        go_on(writer, work, logs, right)
    finally:
        shutil.rmtree(work)


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("what", ["directories", "manifest"])
def test_a_work_directory_that_belongs_to_others(tmp_path, ready, logs, right, writer, what):
    work = faulty.copy(ready(writer), tmp_path)
    (work / "manifest.jsonl").touch()
    closed = [work, *(path for path in work.rglob("*") if path.is_dir())]
    closed = closed if what == "directories" else [work / "manifest.jsonl"]
    modes = {path: path.stat().st_mode for path in closed}
    for path in closed:
        path.chmod(0o555 if path.is_dir() else 0)
    try:
        done = script(*faulty.call(writer, work), preexec_fn=forbid_everything)
    finally:
        for path, mode in modes.items():
            path.chmod(mode)
    faulty.assert_one_line(done)
    assert done.returncode == 1 and "Permission denied" in done.stderr
    go_on(writer, work, logs, right)


@pytest.mark.parametrize("writer", WRITERS)
def test_a_work_directory_that_vanishes(tmp_path, ready, logs, right, writer):
    for n in (4, 12):
        work = faulty.copy(ready(writer), tmp_path)
        done = faulty.struck(*faulty.call(writer, work), fault=f"vanish * {work}/* {n}")
        faulty.assert_one_line(done)
        # --repair can have ended but for its notes of what need not be hashed again
        assert done.returncode == 1 or work.exists() or "repair" in writer
        faulty.assert_nothing_half_done(work, logs, writer != "recover-manifest")
        faulty.finish(work, logs)
        assert faulty.difference(work, right) == (0, 0)
        shutil.rmtree(work)


def test_an_encoder_whose_work_directory_is_removed_while_it_waits(tmp_path, ready):
    work = faulty.copy(ready("encode-batch"), tmp_path)
    command = [sys.executable, ROOT / "bin" / "encode-batch", "--work", work, "--shard-rows", "1", "--jobs", "1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        process.stdin.write(f"{faulty.game(0)}\n")
        process.stdin.flush()
        assert process.stdout.readline().strip() == faulty.game(0)
        shutil.rmtree(work)
        process.stdin.write(f"{faulty.game(1)}\n")
        _, stderr = process.communicate(timeout=30)
    assert "Traceback" not in stderr and not work.exists()
    assert process.returncode == 1 and "No such file or directory" in stderr


@pytest.mark.parametrize("name", ["adopt-xml", "encode-batch --queued", "manifest-status", "manifest-latest"])
def test_a_full_disk_behind_stdout(tmp_path, ready, logs, right, name):
    writer = "adopt-xml" if "adopt" in name else "encode-batch"
    work = faulty.copy(ready(writer), tmp_path)
    script_name, *options = name.split()
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, ROOT / "bin" / script_name, "--work", work, *options], stdout=full,
                              stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    assert done.returncode == 1 and done.stderr.splitlines()[-1:] == [f"{script_name}: No space left on device"]
    assert "Exception" not in done.stderr and "Traceback" not in done.stderr
    go_on(writer, work, logs, right)


@pytest.fixture(scope="module")
def tenhou(tmp_path_factory):
    """A stand-in with a few games; yields (its address, gid -> log, rows of an undisturbed run)."""
    with stand_in(tmp_path_factory.mktemp("server"), "--games", 4) as (url, _):
        calm = tmp_path_factory.mktemp("calm") / "w"
        faulty.download(calm, url)
        found = {path.stem: path.read_bytes() for path in (calm / "xml").glob("2*")}
        faulty.finish(calm, {})
        yield url, found, faulty.rows(calm)


@pytest.mark.parametrize("name", faulty.DOWNLOADERS)
@pytest.mark.parametrize("trouble", ["no byte", "some bytes", "forbidden", "vanished", "failed sync"])
def test_downloads_in_trouble(tmp_path, tenhou, name, trouble):
    url, found, right = tenhou
    work, server = tmp_path / "w", {"TENHOU_URL": url, "DELAY": "0"}
    faulty.download(work, url, name)
    (work / "raw").mkdir(exist_ok=True)
    if trouble == "vanished":
        done = faulty.struck(*faulty.call(name, work), fault=f"vanish fsync {work}/* 1", **server)
    elif trouble == "failed sync":
        done = faulty.struck(*faulty.call(name, work), fault=f"EIO fsync {work}* 2", **server)
    else:
        closed = work / ("" if name == "extract-ids" else "raw" if name == "fetch-index" else "xml")
        closed.mkdir(exist_ok=True)
        closed.chmod(0o500 if trouble == "forbidden" else 0o755)
        limit = forbid_everything if trouble == "forbidden" else small_files(0 if trouble == "no byte" else 70)
        done = script(*faulty.call(name, work), settings=server, preexec_fn=limit)
        closed.chmod(0o755)
    faulty.assert_one_line(done)
    assert done.returncode == 1, done.stderr
    faulty.assert_nothing_half_done(work, found)
    assert not (work / "raw" / "scraw2024.zip").exists() or name != "fetch-index" or trouble == "failed sync"
    faulty.download(work, url)
    faulty.finish(work, {})
    assert faulty.difference(work, right) == (0, 0)
    faulty.assert_clean(work)


@pytest.mark.parametrize("target", ["run", "check", "compact", "recover", "status", "rebuild-index"])
def test_make_on_a_read_only_disk_says_so_in_lines_without_tracebacks(small_disk, ready, target):
    work = small_disk / "w"
    try:
        faulty.copy(ready("encode-batch"), small_disk)
        subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
        try:
            done = make(target, f"WORK={work}")
        finally:
            subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
        assert "Traceback" not in done.stdout + done.stderr
        assert done.returncode == (0 if target in ("check", "status") else 2), done.stderr
        assert "Read-only file system" in done.stderr or done.returncode == 0
    finally:
        shutil.rmtree(work)
