"""Tests of what a work directory needs of its file system, by several processes at once, also on several machines."""

import contextlib
import fcntl
import mmap
import os
import threading
import time

from ..store import files, wording

PROPERTIES = {  # what must be true: what would happen if it is not
    "flock lets in one process at a time": "two processes would claim the same rows: mount it with locks that all "
                                           "machines share",
    "an appended line is whole, and others can read it": "the manifest would lose events: use it from one machine only",
    "a rename replaces a file at once, for all": "readers would find half an index, or none",
    "a rename never puts a directory over another": "shards would be torn or lost",
    "a new name is in every listing at once": "shards would count as gone and be encoded again (harmless, but slow):"
                                              " mount it without a cache of names (NFS: lookupcache=none,acdirmax=0)",
    "mmap shows what others have written": "readers of the cache would see old rows",
    "fsync works on files and directories": "after a power loss, finished work could be gone",
}
LOCK, APPEND, REPLACE, PLACE, NAMES, MMAP, FSYNC = PROPERTIES
_LOG, _LATEST, _INSIDE, _OVER = "log", "latest", "inside", "over"
_PATIENCE = 60  # seconds that a process waits until the others have started


class _Broken(Exception):
    """A property that failed, and what happened."""


@contextlib.contextmanager
def _expecting(what):
    """A block whose OSErrors mean that the property `what` has failed."""
    try:
        yield
    except OSError as e:
        raise _Broken(what, str(e)) from None


def _content(n):
    return b"%08d" % n * 1024


@contextlib.contextmanager
def _locked(directory):
    with _expecting(LOCK):
        fd = os.open(os.path.join(directory, _LOG), os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        fcntl.flock(fd, fcntl.LOCK_EX)
    inside = os.path.join(directory, _INSIDE)
    try:
        try:
            os.close(os.open(inside, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            raise _Broken(LOCK, "two processes had it at the same time") from None
        try:
            yield fd
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(inside)
    finally:
        os.close(fd)


def _entries(data):
    """The numbers in the lines of the log."""
    *lines, rest = data.split(b"\n")
    if rest or not all(line[:8].isdigit() and len(line) == 8 for line in lines):
        raise _Broken(APPEND, f"a torn line after {wording.count(len(lines), 'whole line')}")
    return [int(line) for line in lines]


def _append(fd, n):
    with _expecting(APPEND):
        os.write(fd, b"%08d\n" % n)
    with _expecting(FSYNC):
        os.fsync(fd)


def _read(path):
    with open(path, "rb") as f:
        return f.read()


def take_part(directory, n_workers, rounds):
    """Be one of `n_workers` processes in `directory`; returns {property: what happened} of the properties that failed.

    In each round, under the lock: check what the last process did, do the same with the next number, and append that
    number to the log.
    """
    found, done = {}, threading.Event()
    reader = threading.Thread(target=_watch, args=[directory, done, found])
    try:
        _await_others(directory, n_workers)
        reader.start()
        for _ in range(rounds):
            if _is_over(directory):
                break
            with _locked(directory) as fd:
                last = max(_entries(os.pread(fd, 1 << 24, 0)))
                if last:
                    _see(directory, last)
                _do(directory, last)
                _append(fd, last + 1)
    except _Broken as e:
        found[e.args[0]] = e.args[1]
        os.makedirs(os.path.join(directory, _OVER), exist_ok=True)  # the others need not wait for us
    done.set()
    if reader.ident:
        reader.join()
    return found


def _await_others(directory, n_workers):
    with _locked(directory) as fd:
        _append(fd, 0)
    end = time.monotonic() + _PATIENCE
    while True:
        with _locked(directory) as fd:
            there = _entries(os.pread(fd, 1 << 24, 0)).count(0)
        if there >= n_workers or _is_over(directory):
            return
        if time.monotonic() > end:
            raise _Broken(APPEND, f"only {there} of {n_workers} processes found each other")
        time.sleep(0.05)


def _is_over(directory):
    return os.path.exists(os.path.join(directory, _OVER))


def _see(directory, last):
    """Check that what the last process has renamed and written is there, whole."""
    with _expecting(REPLACE):
        if _read(os.path.join(directory, _LATEST)) != _content(last):
            raise _Broken(REPLACE, f"the file is not the one that rename number {last} put there")
    if f"d{last}" not in os.listdir(directory):
        raise _Broken(NAMES, f"d{last} was not in the listing yet")
    with _expecting(MMAP), open(os.path.join(directory, f"d{last}", "data"), "rb") as f:
        if mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)[:] != _content(last):
            raise _Broken(MMAP, f"d{last} has other bytes than were written")


def _do(directory, last):
    aside = files.temporary_path(os.path.join(directory, "d"))
    with _expecting(FSYNC):
        os.makedirs(aside, exist_ok=True)
        files.write(os.path.join(aside, "data"), _content(last + 1))
    if last:
        with contextlib.suppress(OSError):
            os.rename(aside, os.path.join(directory, f"d{last}"))
            raise _Broken(PLACE, f"a rename onto d{last} did not fail, although d{last} is not empty")
    with _expecting(PLACE):
        os.rename(aside, os.path.join(directory, f"d{last + 1}"))
    with _expecting(FSYNC):
        files.sync_dir(directory)
        files.write(os.path.join(directory, _LATEST), _content(last + 1))


def _watch(directory, done, found):
    """Read, without a lock, the file that is replaced all the time: it must always be there, and whole."""
    seen = False
    while not done.wait(0.0005):
        try:
            data = _read(os.path.join(directory, _LATEST))
            seen = True
        except FileNotFoundError as e:
            if seen:
                found[REPLACE] = str(e)
            continue
        if len(data) != len(_content(0)) or data != data[:8] * 1024:
            found[REPLACE] = "a reader got half a file"


def result(directory, expected):
    """{property: what is wrong} with the log that the workers leave, which should have `expected` numbers."""
    try:
        numbers = [n for n in _entries(_read(os.path.join(directory, _LOG))) if n]
    except _Broken as e:
        return {e.args[0]: e.args[1]}
    if len(numbers) != len(set(numbers)):
        return {LOCK: f"{len(numbers) - len(set(numbers))} of {len(numbers)} numbers are in the log twice"}
    return {APPEND: f"{len(numbers)} lines instead of {expected}"} if len(numbers) != expected else {}
