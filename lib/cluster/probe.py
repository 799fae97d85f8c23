"""What a work directory asks of its file system, tried out by several processes at once, on several machines too."""

import contextlib
import fcntl
import mmap
import os
import threading
import time

from ..store import files

PROPERTIES = {  # what must hold: what it means if it does not
    "flock lets one in at a time, and on": "two would claim the same rows: mount it with locks that all machines share",
    "what is appended is whole, and read by the next": "the manifest would lose events: no work directory for several",
    "a rename replaces a file at once, for all": "readers would find half an index, or none",
    "a rename puts a directory in place, never over another": "shards would be torn, or lost",
    "a new name is in every listing at once": "shards would count as gone and be encoded again (harmless, but slow):"
                                              " mount it without a cache of names (NFS: lookupcache=none,acdirmax=0)",
    "mmap shows what another has written": "readers of the cache would see old rows",
    "fsync of files and of directories": "a loss of power could take what was reported as done",
}
LOCK, APPEND, REPLACE, PLACE, NAMES, MMAP, FSYNC = PROPERTIES
_LOG, _LATEST, _INSIDE, _OVER = "log", "latest", "inside", "over"
_PATIENCE = 60  # seconds that one waits for the others to come


class _Broken(Exception):
    """A property that does not hold, and what was seen."""


@contextlib.contextmanager
def _expecting(what):
    """A block whose OSErrors mean that the property `what` does not hold."""
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
            raise _Broken(LOCK, "two had it at the same time") from None
        try:
            yield fd
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(inside)
    finally:
        os.close(fd)


def _entries(data):
    """The lines of the log: a number and who wrote it."""
    *lines, rest = data.split(b"\n")
    if rest or not all(line[:8].isdigit() and len(line) == 8 for line in lines):
        raise _Broken(APPEND, f"a torn line after {len(lines)} whole ones")
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
    """Be one of `n_workers` in `directory`; returns {property: what was seen} of those that do not hold.

    In each round, under the lock: see what the last one did, do it with the next number, put that into the log.
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
        os.makedirs(os.path.join(directory, _OVER), exist_ok=True)  # nobody need wait for us
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
            raise _Broken(APPEND, f"only {there} of {n_workers} processes have seen each other")
        time.sleep(0.05)


def _is_over(directory):
    return os.path.exists(os.path.join(directory, _OVER))


def _see(directory, last):
    """What the last one has renamed and written must be there, whole, for whoever has the lock."""
    with _expecting(REPLACE):
        if _read(os.path.join(directory, _LATEST)) != _content(last):
            raise _Broken(REPLACE, f"not the file that was renamed as number {last}")
    if f"d{last}" not in os.listdir(directory):
        raise _Broken(NAMES, f"d{last} was not yet in the listing")
    with _expecting(MMAP), open(os.path.join(directory, f"d{last}", "data"), "rb") as f:
        if mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)[:] != _content(last):
            raise _Broken(MMAP, f"other bytes in d{last}")


def _do(directory, last):
    aside = files.temporary_path(os.path.join(directory, "d"))
    with _expecting(FSYNC):
        os.makedirs(aside, exist_ok=True)
        files.write(os.path.join(aside, "data"), _content(last + 1))
    if last:
        with contextlib.suppress(OSError):
            os.rename(aside, os.path.join(directory, f"d{last}"))
            raise _Broken(PLACE, f"a rename onto d{last}, which is not empty, did not fail")
    with _expecting(PLACE):
        os.rename(aside, os.path.join(directory, f"d{last + 1}"))
    with _expecting(FSYNC):
        files.sync_dir(directory)
        files.write(os.path.join(directory, _LATEST), _content(last + 1))


def _watch(directory, done, found):
    """Read, without any lock, what is replaced all the time: it must always be there, and whole."""
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
            found[REPLACE] = "half a file"


def result(directory, expected):
    """{property: what is wrong} of the log that the workers leave behind, with that many numbers in it."""
    try:
        numbers = [n for n in _entries(_read(os.path.join(directory, _LOG))) if n]
    except _Broken as e:
        return {e.args[0]: e.args[1]}
    if len(numbers) != len(set(numbers)):
        return {LOCK: f"{len(numbers) - len(set(numbers))} of {len(numbers)} numbers were counted twice"}
    return {APPEND: f"{len(numbers)} lines of {expected}"} if len(numbers) != expected else {}
