"""The pause between requests: one process of this machine asks a server, and not before the server wishes."""

import contextlib
import time
import urllib.parse

from ..store import locks
from ..store.clock import utc
from ..store.errors import Problem

_MARGIN = 0.05  # seconds on top of the pause: the way to the server may take longer for one request than for the next
_LONGEST_AWAY = 30 * 86400  # seconds for which a wish to be left alone is remembered


def place(base):
    """One name for the server at the address `base`, however that is written; Tenhou's hosts are one server."""
    parts = urllib.parse.urlsplit(base)
    host = parts.hostname.rstrip(".")
    if f".{host}".endswith(".tenhou.net"):
        return "tenhou.net"
    return host if parts.port in (None, {"http": 80, "https": 443}[parts.scheme]) else f"{host}:{parts.port}"


@contextlib.contextmanager
def held(base, delay):
    """Be the one process of this machine that asks the server at the address `base`, for the block; yields a Pause.

    delay: seconds between requests. Raises Busy when another process is, Problem while the server wishes to be left
    alone.
    """
    path, what = locks.machine_path(f"fetch-{place(base)}"), f"another process of this machine is asking {base}"
    with contextlib.ExitStack() as stack:
        stack.enter_context(locks.held_by_name(path, what))
        pause = Pause(path, lambda: stack.enter_context(locks.held(path, what)), delay)
        until = pause.wish()
        if 0 < until - time.time() <= _LONGEST_AWAY:  # one that is further away was noted before the clock was set back
            raise Problem(f"{place(base)} has asked us to stay away until {utc(until)} (noted in {path}); "
                          "nothing was asked for")
        yield pause


class Pause:
    """The times of the last request, and until when to stay away, in a lock file that outlives this process."""

    def __init__(self, path, lock, delay):
        """lock(): opens the lock file `path` and takes the lock; returns the file's descriptor."""
        self._path, self._lock, self._delay, self._until = path, lock, delay, 0
        self._fd = lock()

    def wish(self):
        """Until when the server wished to be left alone, as an earlier run has noted it, in seconds since 1970."""
        return locks.stamps(self._fd)[1] / 1e9

    def left(self):
        """Seconds until the next request may be made."""
        last = locks.stamps(self._fd)[0] / 1e9
        since = time.time() - last
        if since < 0 or not last:
            return self._delay  # the clock was set back, or the file was removed
        return max(0, self._delay + _MARGIN - since) if self._delay else 0

    def stamp(self):
        """Note that a request is made, or was answered, just now. Raises Busy."""
        if locks.is_removed(self._fd, self._path):
            self._fd = self._lock()
        locks.stamp(self._fd, time.time_ns(), int(self._until * 1e9))

    def stay_away(self, seconds):
        """Have all runs of this machine wait for so long; returns until when, in seconds since 1970."""
        self._until = time.time() + min(seconds, _LONGEST_AWAY)
        self.stamp()
        return self._until
