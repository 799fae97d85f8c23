"""Locks for processes that must not run at the same time: flock on a small file that says who holds the lock."""

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import socket
import sys
import tempfile

from .clock import now
from .errors import Busy, Problem
from .files import HOST, is_alive, naming

_STAMP = 20  # digits of each of the two times at the beginning of a lock file
_HEAD = 2 * _STAMP + 1
_TEXT = 1000  # bytes of what follows that anybody reads
_HOLDER = re.compile(r"pid (?P<pid>\d+)(?: on (?P<host>[^ ,]+))?(?:, since (?P<since>[^,]*))?"
                     r"(?:, in (?P<folder>.*)|,|$)")


@contextlib.contextmanager
def held(path, what, pid=None, command="", then="try later"):
    """Hold the lock file `path` for the block, in the name of `pid` (None: this process); yields its file descriptor.

    command: what the holder was started as; then: what becomes of it if another process holds it. If one does, raises
    Busy at once, which names the holder and says `then`; raises Problem if we may not open the file.
    """
    while is_removed(fd := _take(path, what, then), path):  # somebody removed it before we had the lock
        os.close(fd)
    try:
        text = f"\npid {pid or os.getpid()} on {HOST}, since {now()}, in {os.getcwd()}\n{command}\n"
        text = text.encode(errors="replace")
        with naming(path):
            stamp(fd, *stamps(fd))
            os.ftruncate(fd, _HEAD + os.pwrite(fd, text, _HEAD))
        yield fd
    finally:
        os.close(fd)


def _take(path, what, then):
    fd = _open(path)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with os.fdopen(fd):
            raise _busy(what, fd, then) from None
    except BaseException:
        os.close(fd)
        raise
    return fd


def _busy(what, fd, then):
    return Busy(f"busy: {what} ({described(_holder(fd)) or 'holder unknown'}); {then}")


def _holder(fd):
    """What a lock file says of who took it last: pid, host, since, folder and command, as texts; {} if it says nothing.
    """
    line, _, command = os.pread(fd, _TEXT, _HEAD + 1).decode(errors="replace").partition("\n")
    found = _HOLDER.match(line)
    return found.groupdict(default="") | {"command": command.partition("\n")[0]} if found else {}


def described(holder):
    """A holder as text: make run YEAR=2024, pid 4711 on alpha, since 2024-05-01T12:00:00Z; '' if nobody knows it."""
    if not holder:
        return ""
    name = re.sub("_[0-9a-f]{8}$", "", holder["host"])  # what HOST adds to the name tells no reader anything
    parts = [holder["command"], f"pid {holder['pid']}{' on ' * bool(name)}{name}",
             holder["since"] and f"since {holder['since']}",
             holder["folder"] and not holder["command"] and f"in {holder['folder']}"]
    return "".join(c if c.isprintable() else "?" for c in ", ".join(filter(None, parts)))


def is_removed(fd, path):
    """True if `path` no longer names the open lock file `fd`: then the lock keeps nobody out."""
    try:
        return not os.path.samestat(os.fstat(fd), os.lstat(path))
    except FileNotFoundError:
        return True


@contextlib.contextmanager
def held_by_name(path, what, then="try later"):
    """As `held`, but nobody can remove this lock: the kernel keeps it, and the file `path` only says who holds it.

    On systems other than Linux it keeps nobody out.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as name:
        try:
            if sys.platform == "linux":
                name.bind(f"\0{hashlib.sha256(os.fsencode(path)).hexdigest()}")
        except OSError as e:
            if e.errno != errno.EADDRINUSE:
                raise
            with os.fdopen(_open(path)) as f:
                raise _busy(what, f.fileno(), then) from None
        yield


def is_held(path):
    """True if some process holds the lock `path`; a lock that is not there, or closed to us, counts as free."""
    return holder(path) is not None


def holder(path):
    """Who holds the lock `path`, as a dict of texts (pid, host, since, folder, command), {} if nobody knows; None if it
    is free, not there, or closed to us."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except BlockingIOError:
        return _holder(fd)
    finally:
        os.close(fd)


def stamp(fd, last, until):
    """Write two times, in nanoseconds, into a lock file that is held; they stay there when the lock is released.

    They are in the content because only the owner of a file may set its times; to a server, all users of this machine
    are the same guest.
    """
    os.pwrite(fd, f"{last:0{_STAMP}d} {until:0{_STAMP}d}".encode(), 0)


def stamps(fd):
    """The two times in a lock file; 0 for one that is not there."""
    text = os.pread(fd, _HEAD, 0)
    return [int(part) if len(part) == _STAMP and part.isdigit() else 0 for part in (text[:_STAMP], text[_STAMP + 1:])]


def _open(path):
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        try:
            return os.open(path, flags)  # without O_CREAT, which a sticky /tmp forbids for another user's file
        except FileNotFoundError:
            fd = os.open(path, flags | os.O_CREAT, 0o666)
    except OSError as e:
        if e.errno not in (errno.EACCES, errno.EPERM, errno.ELOOP):
            raise
        raise Problem(f"{path}: {e.strerror}: this lock file belongs to another user, or is a link; remove it, or let "
                      "all users write it (chmod 666)") from None
    os.fchmod(fd, 0o666)
    return fd


def holder_is_alive(path):
    """False if the process that took the lock `path` has ended, even if a process that inherited the lock is at work.

    A process on another host counts as alive, because we cannot know.
    """
    with open(path, "rb") as f:
        found = _holder(f.fileno())
    return not found or found["host"] not in ("", HOST) or is_alive(int(found["pid"]))


def machine_path(name):
    """The lock file called `name` that all users and work directories of this machine share."""
    directory = "/tmp" if os.path.isdir("/tmp") else tempfile.gettempdir()
    return os.path.join(directory, f"tenhou-{re.sub('[^0-9a-zA-Z.-]', '_', name)}.lock")
