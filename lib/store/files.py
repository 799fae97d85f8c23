"""Files that other steps trust: written under another name, fsynced, renamed, and their directory fsynced. All such
files are written here."""

import contextlib
import errno
import fcntl
import hashlib
import os
import secrets
import shutil
import socket
import stat
import time

ASIDE = ".tmp-"  # the beginning of the names of temporary files
_DAY = 86400  # seconds without a change after which a temporary file of another host counts as abandoned


def _host():
    name = socket.gethostname().split(".")[0].replace("-", "_") or "localhost"
    try:
        with open("/etc/machine-id", "rb") as f:
            known = f.read() + os.readlink("/proc/self/ns/pid").encode()
    except OSError:
        return name
    return f"{name}_{hashlib.sha256(known).hexdigest()[:8]}"


# A name alone is not enough: two hosts, or two containers with the same process numbers, may have the same one.
HOST = _host()


def temporary_path(path):
    """A new temporary name in the directory of `path`. It says which process of which host works on the file, and
    nobody can guess it and put a link there through which we would write."""
    name = f"{ASIDE}{HOST}-{os.getpid()}-{secrets.token_hex(8)}-{os.path.basename(path)}"
    return os.path.join(os.path.dirname(path), name)


@contextlib.contextmanager
def naming(path):
    """A block whose OSErrors name `path` if they name no file: a failed write does not say which file it was."""
    try:
        yield
    except OSError as e:
        if e.filename is None:
            e.filename = path
        raise


class Unreadable(OSError):
    """A file is there, but permissions or the disk do not let us read it. Only work that needs this file stops."""


@contextlib.contextmanager
def reading(path):
    """A block that reads the file `path`. If an OSError is the fault of this file, it becomes an Unreadable with its
    name."""
    try:
        with naming(path):
            yield
    except OSError as e:
        if e.errno in (errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE, errno.ETIMEDOUT):
            raise Unreadable(e.errno, e.strerror, path) from None
        raise


def sync(fd):
    """fsync a file or directory. The fsync of macOS leaves what it writes in the memory of the disk, so there the disk
    writes out all of that too, also what came by os.fsync before."""
    os.fsync(fd)
    if hasattr(fcntl, "F_FULLFSYNC"):
        try:
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
        except OSError as e:
            if e.errno not in (errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOTTY):
                raise  # else it is the disk of another machine, say


def sync_dir(path):
    """fsync a directory, so that the names in it, and what was fsynced before, are still there after a power loss."""
    fd = os.open(path or os.curdir, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with naming(path):
            sync(fd)
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
        if not os.path.isdir(path):  # else another process made it first
            raise
    sync_dir(above)


@contextlib.contextmanager
def atomic_write(path, like=None):
    """A binary file to write. When the block ends without an error, it becomes `path`, whole and durable; otherwise
    nothing is left of it.

    like: an os.stat_result; the file gets its mode, its group and, if we may, its owner. None: those of a new file.
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
    for owner in (info.st_uid, -1):  # only root may change the owner, but anybody may choose one of their groups
        with contextlib.suppress(PermissionError):
            os.fchown(fd, owner, info.st_gid)
            break
    os.fchmod(fd, stat.S_IMODE(info.st_mode))


def write(path, data):
    """Put `data` (bytes) at `path`, atomically and durably."""
    with atomic_write(path) as f:
        f.write(data)


def write_all(found):
    """Write the files of {path: data}, all in one directory, each atomically and durably. The fsyncs come together at
    the end, which is faster than one after the other."""
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
    """Write `data` (bytes) to a temporary file beside `path`, synced, and return its name. The caller has to rename it
    and sync the directory."""
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
    """Remove temporary files that dead processes of this host left in `directory`, and those of other hosts that are a
    day old."""
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
    try:  # a process on another host that shares the directory may still be writing it
        newest = entry.stat(follow_symlinks=False).st_mtime
        if entry.is_dir(follow_symlinks=False):
            with os.scandir(entry.path) as inside:
                newest = max([newest, *(each.stat(follow_symlinks=False).st_mtime for each in inside)])
    except FileNotFoundError:
        return False
    return newest < time.time() - _DAY


def is_alive(pid):
    """True if a process of this host has that number and has not ended. A zombie has ended."""
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except ProcessLookupError:
        return False
    except (OSError, OverflowError, IndexError):
        return True  # another user's, or a system without /proc


def open_regular(path):
    """A regular file, opened to read bytes. Raises FileNotFoundError also for a link, which may lead anywhere, a pipe
    or a directory."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as e:
        if e.errno in (errno.ELOOP, errno.ENXIO, errno.EOPNOTSUPP):  # a link, a socket, a socket of macOS
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
    digest = hashlib.sha256()
    with open_regular(path) as f:
        while block := f.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
