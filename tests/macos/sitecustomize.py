"""A Python that looks like one of macOS to scripts that run with this directory in PYTHONPATH: what Linux alone has is
not there. Tests hide /proc themselves."""

import ctypes
import fcntl
import os
import sys
import types

sys.platform = "darwin"
sys.modules["_scproxy"] = types.SimpleNamespace(_get_proxy_settings=lambda: {"exclude_simple": False},
                                                _get_proxies=dict)
for module, names in {os: ("sched_getaffinity sched_setaffinity posix_fadvise posix_fallocate pipe2 memfd_create "
                           "copy_file_range sendfile splice eventfd getrandom pidfd_open fdatasync O_TMPFILE "
                           "O_DIRECT getxattr setxattr listxattr removexattr"),
                      fcntl: "F_SETPIPE_SZ F_GETPIPE_SZ F_OFD_SETLK F_ADD_SEALS"}.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
fcntl.F_FULLFSYNC = 51
_fcntl, _getattr = fcntl.fcntl, ctypes.CDLL.__getattr__


def _full_fsync(fd, what, arg=0):
    return os.fsync(fd) or 0 if what == fcntl.F_FULLFSYNC else _fcntl(fd, what, arg)


def _no_prctl(library, name):
    if name == "prctl":
        raise AttributeError(name)
    return _getattr(library, name)


fcntl.fcntl, ctypes.CDLL.__getattr__ = _full_fsync, _no_prctl
