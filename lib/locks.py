"""Locks between processes that must not run at the same time: flock on a small file that says who holds it."""

import contextlib
import fcntl
import os
import re
import tempfile

from lib.errors import Busy
from lib.files import is_alive
from lib.manifest import now


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
            holder = os.pread(fd, 500, 0).decode(errors="replace").strip()
            raise Busy(f"busy: {what} ({holder or 'holder unknown'}); try later") from None
        touched = os.fstat(fd)
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"pid {pid or os.getpid()}, since {now()}, in {os.getcwd()}\n".encode(), 0)
        os.utime(fd, ns=(touched.st_atime_ns, touched.st_mtime_ns))  # the time stamp has its own meaning
        yield fd
    finally:
        os.close(fd)


def _open(path):
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(path, flags)  # without O_CREAT: a sticky /tmp forbids that for another user's file
    except FileNotFoundError:
        fd = os.open(path, flags | os.O_CREAT, 0o666)
    os.fchmod(fd, 0o666)  # every user of this machine is the same guest to the server
    os.utime(fd, (0, 0))
    return fd


def holder_is_alive(path):
    """False if the process that took the lock `path` is gone, though one that inherited it may still be at work."""
    with open(path, encoding="utf-8", errors="replace") as f:
        found = re.match(r"pid ([0-9]+),", f.read(500))
    return not found or is_alive(int(found[1]))


def machine_path(name):
    """The lock file of this machine, for all its users and work directories, that goes by `name`."""
    directory = "/tmp" if os.path.isdir("/tmp") else tempfile.gettempdir()
    return os.path.join(directory, f"tenhou-{re.sub('[^0-9a-zA-Z.-]', '_', name)}.lock")
