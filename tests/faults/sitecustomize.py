"""Faults for scripts that are run with this directory in PYTHONPATH: python imports this file at its start.

Nothing in bin/ or lib/ knows of it. Every call that changes a file passes here, under its name in `os` or `open`, with
the path that it changes (rename: the new name). TENHOU_FAULT="WHAT CALL GLOB N" strikes the Nth call whose name is CALL
(or * for any) and whose path matches GLOB: WHAT is `before` or `after` (SIGKILL then), `half` (SIGKILL after half of a
write), `vanish` (all that GLOB names up to its * is removed before the call), `crash` (SIGSEGV), `hang` (for ever, and
deaf to Python's own signal handlers) or the name of an errno, which is raised in the call's place. TENHOU_TRACE=FILE
gets a line for each call. Files opened to be read pass here too, as the call `read`, which * does not mean and which is
not traced; it is struck from the Nth time on. So do the names in a directory that is looked through.
TENHOU_STRUCK=FILE gets a line for each fault that struck. TENHOU_FAULT_IN="a b" limits faults to the scripts a and b of
bin/, and to what is run with -m. TENHOU_DEADLINE=S: no timer runs for longer than S seconds.
"""

import builtins
import ctypes
import errno
import fnmatch
import os
import shutil
import signal
import sys

_TRACE = os.environ.get("TENHOU_TRACE")
_write, _open, _rename = os.write, builtins.open, os.rename


def _path(what, dir_fd=None):
    if isinstance(what, int):
        return os.readlink(f"/proc/self/fd/{what}")
    base = os.readlink(f"/proc/self/fd/{dir_fd}") if dir_fd is not None else os.getcwd()
    return os.path.join(base, os.fsdecode(what))


def _die():
    os.kill(os.getpid(), signal.SIGKILL)


class _Fault:
    def __init__(self, spec):
        self.what, self.call, self.glob, count = spec.split(" ")
        self.left = int(count)

    def strikes(self, call, path):
        if self.call in (call, "*" if call != "read" else call) and fnmatch.fnmatch(path, self.glob):
            self.left -= 1
            if self.left == 0 or (call == "read" and self.left < 0):
                if "TENHOU_STRUCK" in os.environ:
                    with _open(os.environ["TENHOU_STRUCK"], "a") as f:
                        f.write(f"{call} {path}\n")
                return True
        return False


_FAULT = _Fault(os.environ.get("TENHOU_FAULT", "none none none 0"))


def _hooked(name, real, path_of, changes=lambda *args, **kwargs: True):
    def call(*args, **kwargs):
        if not changes(*args, **kwargs):
            return real(*args, **kwargs)
        path = path_of(*args, **kwargs)
        if _TRACE and name != "read":
            with _open(_TRACE, "a") as f:
                f.write(f"{name} {path}\n")
        if not _FAULT.strikes(name, path):
            return real(*args, **kwargs)
        if _FAULT.what == "before":
            _die()
        if _FAULT.what == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        while _FAULT.what == "hang":
            ctypes.PyDLL(None).pause()  # as the engine would: the interpreter stays locked
        if _FAULT.what == "half":
            _write(args[0], args[1][:len(args[1]) // 2])
            _die()
        if _FAULT.what == "after":
            real(*args, **kwargs)
            _die()
        if _FAULT.what == "vanish":
            gone = _FAULT.glob.partition("*")[0].rstrip("/")
            _rename(gone, gone + ".gone")  # at once: other threads may be writing there
            shutil.rmtree(gone + ".gone", ignore_errors=True)
            return real(*args, **kwargs)
        number = getattr(errno, _FAULT.what)
        named = () if isinstance(args[0], int) else (args[0],)
        raise OSError(number, os.strerror(number), *named)

    return call


def _install():
    def own(path, *args, dir_fd=None, **kwargs):
        return _path(path, dir_fd)

    def new(source, target, *args, dst_dir_fd=None, **kwargs):
        return _path(target, dst_dir_fd)

    for name in ("write", "fsync", "ftruncate", "unlink", "remove", "rmdir", "mkdir"):
        setattr(os, name, _hooked(name, getattr(os, name), own))
    for name in ("rename", "replace", "link", "symlink"):
        setattr(os, name, _hooked(name, getattr(os, name), new))
    for name in ("listdir", "scandir"):
        setattr(os, name, _hooked("read", getattr(os, name), lambda path=".", *args: _path(path)))
    os.open = _hooked("read", os.open, own, lambda path, flags, *args, **kwargs: not flags & (os.O_CREAT | os.O_RDWR))
    os.open = _hooked("open", os.open, own, lambda path, flags, *args, **kwargs: flags & (os.O_CREAT | os.O_TRUNC))
    builtins.open = _hooked("read", _open, own, lambda path, mode="r", *args, **kwargs: (
        isinstance(path, (str, bytes, os.PathLike)) and not set(mode) & set("wax+")))
    builtins.open = _hooked("open", builtins.open, own, lambda path, mode="r", *args, **kwargs: (
        isinstance(path, (str, bytes, os.PathLike)) and set(mode) & set("wax+")))


def _is_meant():
    names = os.environ.get("TENHOU_FAULT_IN", "").split()
    return not names or os.path.basename(sys.argv[0]) in [*names, "-m"]


if ("TENHOU_FAULT" in os.environ or _TRACE) and _is_meant():
    _install()
if "TENHOU_DEADLINE" in os.environ:
    _timer, _most = signal.setitimer, float(os.environ["TENHOU_DEADLINE"])
    signal.setitimer = lambda which, seconds, *more: _timer(which, min(seconds, _most), *more)
