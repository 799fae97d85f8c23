"""The pause between requests: only one process of this machine sends requests to a server, and not before DELAY seconds
and the server's own Retry-After have passed."""

import contextlib
import os
import time
import urllib.parse

from ..store import locks
from ..store.clock import utc
from ..store.errors import Problem

_MARGIN = 0.05  # seconds added to the pause, because one request may travel longer than the next
_LONGEST_AWAY = 30 * 86400  # a longer Retry-After counts as so many seconds


def place(base):
    """A name for the server at the address `base`, the same for all spellings; all hosts of Tenhou are one server."""
    parts = urllib.parse.urlsplit(base)
    host = parts.hostname.rstrip(".")
    if f".{host}".endswith(".tenhou.net"):
        return "tenhou.net"
    return host if parts.port in (None, {"http": 80, "https": 443}[parts.scheme]) else f"{host}:{parts.port}"


@contextlib.contextmanager
def held(base, delay, purpose=""):
    """For the block, be the only process of this machine that sends requests to the server `base`; yields a Pause.

    delay: seconds between requests; purpose: what others are told that we do it for. Raises Busy if another process
    does, and Problem if the server has told us to wait longer.
    """
    then = "this run encodes what is here, a later one downloads" if "IN_RUN" in os.environ else "try later"
    path, what = locks.machine_path(f"fetch-{place(base)}"), f"another process here is downloading from {base}"
    with contextlib.ExitStack() as stack:
        stack.enter_context(locks.held_by_name(path, what, then))
        pause = Pause(path, lambda: stack.enter_context(locks.held(path, what, None, purpose, then)), delay)
        until = pause.wish()
        if 0 < until - time.time() <= _LONGEST_AWAY:  # a later time was noted before the clock was set back
            raise Problem(f"{place(base)} told us to come back after {utc(until)} (noted in {path}); "
                          "no request was sent")
        yield pause


class Pause:
    """The time of the last request and the time before which we may not send another, in a lock file that stays when
    this process ends."""

    def __init__(self, path, lock, delay):
        """lock(): opens the lock file `path`, takes the lock, and returns the descriptor of the file."""
        self._path, self._lock, self._delay, self._until = path, lock, delay, 0
        self._fd = lock()

    def wish(self):
        """The time before which the server wants no request, as an earlier run noted it, in seconds since 1970."""
        return locks.stamps(self._fd)[1] / 1e9

    def left(self):
        """Seconds until the next request may be made."""
        last = locks.stamps(self._fd)[0] / 1e9
        since = time.time() - last
        if since < 0 or not last:
            return self._delay  # the clock was set back, or the file was removed
        return max(0, self._delay + _MARGIN - since) if self._delay else 0

    def stamp(self):
        """Note that a request was sent, or answered, just now. Raises Busy."""
        if locks.is_removed(self._fd, self._path):
            self._fd = self._lock()
        locks.stamp(self._fd, time.time_ns(), int(self._until * 1e9))

    def stay_away(self, seconds):
        """Make all runs of this machine wait for so many seconds; returns until when, in seconds since 1970."""
        self._until = time.time() + min(seconds, _LONGEST_AWAY)
        self.stamp()
        return self._until
