"""Locks between processes that must not run at the same time: flock on a small file that says who holds it."""

import contextlib
import fcntl
import os
import re
import tempfile

from lib.errors import Busy
from lib.files import HOST, is_alive, naming
from lib.manifest import now

_STAMP = 20  # digits of the time stamp that a lock file begins with


@contextlib.contextmanager
def held(path, what, pid=None):
    """Hold the lock file `path` for the block, in the name of `pid` (None: this process); yields its file descriptor.

    Raises Busy, naming the holder, at once.
    """
    fd = _open(path)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(fd, 500, _STAMP + 1).decode(errors="replace").strip()
            raise Busy(f"busy: {what} ({holder or 'holder unknown'}); try later") from None
        text = f"\npid {pid or os.getpid()} on {HOST}, since {now()}, in {os.getcwd()}\n".encode()
        with naming(path):
            stamp(fd, last_stamp(fd))
            os.ftruncate(fd, _STAMP + os.pwrite(fd, text, _STAMP))
        yield fd
    finally:
        os.close(fd)


def stamp(fd, nanoseconds):
    """Put a time into a lock file that is held; it stays there when the lock is let go of.

    In the file, not on it: only its owner may set a file's times, and every user of this machine is the same guest.
    """
    os.pwrite(fd, f"{nanoseconds:0{_STAMP}d}".encode(), 0)


def last_stamp(fd):
    """The time that was last put into a lock file, in nanoseconds; 0 if there is none."""
    text = os.pread(fd, _STAMP, 0)
    return int(text) if len(text) == _STAMP and text.isdigit() else 0


def _open(path):
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(path, flags)  # without O_CREAT: a sticky /tmp forbids that for another user's file
    except FileNotFoundError:
        fd = os.open(path, flags | os.O_CREAT, 0o666)
    os.fchmod(fd, 0o666)
    return fd


def holder_is_alive(path):
    """False if the process that took the lock `path` is gone, though one that inherited it may still be at work.

    Of a process of another host nothing is known: it counts as alive.
    """
    with open(path, encoding="utf-8", errors="replace") as f:
        found = re.match(r"pid ([0-9]+)(?: on (\S+))?,", f.read(500)[_STAMP + 1:])
    return not found or found[2] not in (None, HOST) or is_alive(int(found[1]))


def machine_path(name):
    """The lock file of this machine, for all its users and work directories, that goes by `name`."""
    directory = "/tmp" if os.path.isdir("/tmp") else tempfile.gettempdir()
    return os.path.join(directory, f"tenhou-{re.sub('[^0-9a-zA-Z.-]', '_', name)}.lock")
