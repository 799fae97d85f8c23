"""Files that others trust: written aside, fsynced, renamed, their directory fsynced. Nothing else writes them."""

import contextlib
import errno
import hashlib
import os
import secrets
import shutil
import socket
import stat
import time

ASIDE = ".tmp-"  # how the names of what is written aside begin
_DAY = 86400  # seconds without a change after which what another host left aside counts as left behind


def _host():
    name = socket.gethostname().split(".")[0].replace("-", "_") or "localhost"
    try:
        with open("/etc/machine-id", "rb") as f:
            known = f.read() + os.readlink("/proc/self/ns/pid").encode()
    except OSError:
        return name
    return f"{name}_{hashlib.sha256(known).hexdigest()[:8]}"


# Hosts that share a work directory may have the same name, and so may containers with process numbers of their own.
HOST = _host()


def temporary_path(path):
    """A new name in the same directory for what is to become `path`. It says which process of which host works on it;
    nobody can foretell it, and so put a link there for us to write through."""
    name = f"{ASIDE}{HOST}-{os.getpid()}-{secrets.token_hex(8)}-{os.path.basename(path)}"
    return os.path.join(os.path.dirname(path), name)


@contextlib.contextmanager
def naming(path):
    """A block whose OSErrors name `path` if they name no file: a write that fails does not say where."""
    try:
        yield
    except OSError as e:
        if e.filename is None:
            e.filename = path
        raise


class Unreadable(OSError):
    """A file is there, but it may not be read, or the disk cannot: that hinders only who needs this file."""


@contextlib.contextmanager
def reading(path):
    """A block whose OSErrors that are the fault of one file, which is read there, are Unreadable and name `path`."""
    try:
        with naming(path):
            yield
    except OSError as e:
        if e.errno in (errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE, errno.ETIMEDOUT):
            raise Unreadable(e.errno, e.strerror, path) from None
        raise


def sync_dir(path):
    """fsync a directory, so that the names in it survive a loss of power."""
    fd = os.open(path or os.curdir, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with naming(path):
            os.fsync(fd)
    finally:
        os.close(fd)


def make_dirs(path):
    """Make a directory, and those above it that are missing, durably; no error if it is there. Raises OSError."""
    if os.path.isdir(path):
        return
    above = os.path.dirname(os.path.abspath(path))
    make_dirs(above)
    try:
        os.mkdir(path)
    except FileExistsError:
        if not os.path.isdir(path):  # or another was quicker
            raise
    sync_dir(above)


@contextlib.contextmanager
def atomic_write(path, like=None):
    """A binary file to write that becomes `path`, whole and durable, when the block ends well; else nothing is left.

    like: an os.stat_result whose mode, group and, if we may, owner the file gets; None: those of a new file.
    """
    temporary = temporary_path(path)
    try:
        with naming(path), open(temporary, "xb") as f:
            if like:
                _make_like(f.fileno(), like)
            yield f
            f.flush()
            os.fsync(f.fileno())
        os.rename(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    sync_dir(os.path.dirname(path))


def _make_like(fd, info):
    for owner in (info.st_uid, -1):  # only root may give a file away; to a group of his own anybody may
        with contextlib.suppress(PermissionError):
            os.fchown(fd, owner, info.st_gid)
            break
    os.fchmod(fd, stat.S_IMODE(info.st_mode))


def write(path, data):
    """Put `data` (bytes) at `path`, atomically and durably."""
    with atomic_write(path) as f:
        f.write(data)


def write_all(found):
    """Put bytes at many paths of one directory, {path: data}, each atomically and all durably; the disk is waited for
    together, which is quicker than one by one."""
    made = []
    try:
        for path, data in found.items():
            made.append((temporary_path(path), path))
            with naming(path), open(made[-1][0], "xb") as f:
                f.write(data)
        for temporary, path in made:
            with naming(path), open(temporary, "rb") as f:
                os.fsync(f.fileno())
        while made:
            os.rename(*made[-1])
            made.pop()
    finally:
        for temporary, _ in made:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
    sync_dir(os.path.dirname(path))


def write_aside(path, data):
    """Put `data` (bytes) beside `path`, synced, under the name that is returned: os.rename and sync_dir do the rest."""
    temporary = temporary_path(path)
    try:
        with naming(temporary), open(temporary, "xb", buffering=0) as f:
            view = memoryview(data)
            while view:
                view = view[f.write(view):]
            os.fsync(f.fileno())
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    return temporary


def sweep(directory):
    """Remove what dead processes of this host left aside in `directory`; of another, what is a day old."""
    with contextlib.suppress(FileNotFoundError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.startswith(ASIDE) and _is_dead(entry):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
                else:
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(entry.path)


def _is_dead(entry):
    host, _, rest = entry.name.removeprefix(ASIDE).partition("-")
    pid = rest.partition("-")[0]
    if not pid.isdecimal():
        return False
    if host == HOST:
        return not is_alive(int(pid))
    try:  # a process of another host that shares the directory may still be at it
        newest = entry.stat(follow_symlinks=False).st_mtime
        if entry.is_dir(follow_symlinks=False):
            with os.scandir(entry.path) as inside:
                newest = max([newest, *(each.stat(follow_symlinks=False).st_mtime for each in inside)])
    except FileNotFoundError:
        return False
    return newest < time.time() - _DAY


def is_alive(pid):
    """True if a process of this host has that number and has not ended, also if nobody has waited for it yet."""
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except ProcessLookupError:
        return False
    except (OSError, OverflowError, IndexError):
        return True  # another user's, or a system without /proc


def open_regular(path):
    """A file opened to be read as bytes; FileNotFoundError also for a link, which may lead anywhere, and for a pipe or
    a directory."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as e:
        if e.errno in (errno.ELOOP, errno.ENXIO):  # a link, a socket
            raise FileNotFoundError(errno.ENOENT, "not a regular file", path) from None
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise FileNotFoundError(errno.ENOENT, "not a regular file", path)
    return open(fd, "rb")


def is_ours(info):
    """True if nobody but us, and root, can have written a file, of its os.stat_result."""
    return info.st_uid == os.geteuid() and not info.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def sha256(path):
    """The sha256 of a regular file's bytes, as hex; raises OSError as open_regular does."""
    with open_regular(path) as f:
        return hashlib.file_digest(f, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else _sha256(f)


def _sha256(f):  # Python 3.10
    digest = hashlib.sha256()
    while chunk := f.read(1 << 20):
        digest.update(chunk)
    return digest.hexdigest()
