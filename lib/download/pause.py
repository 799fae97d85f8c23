"""Whose turn it is to ask a server: one process of this machine, with pauses, and not before the server wishes."""

import contextlib
import time
import urllib.parse

from ..store import locks
from ..store.clock import utc
from ..store.errors import Problem

_MARGIN = 0.05  # seconds on top of the pause: the way to the server may take longer for one request than for the next
_LONGEST_AWAY = 30 * 86400  # seconds for which a wish to be left alone is remembered


@contextlib.contextmanager
def held(base, delay):
    """Be the one process of this machine that asks the server at the address `base`, for the block; yields a Turns.

    delay: seconds between requests. Raises Busy when another process is, Problem while the server wishes to be left
    alone.
    """
    place = urllib.parse.urlsplit(base).netloc
    path = locks.machine_path(f"fetch-{place}")
    with locks.held(path, f"another process of this machine is asking {base}") as fd:
        until = locks.stamps(fd)[1] / 1e9
        if 0 < until - time.time() <= _LONGEST_AWAY:  # one that is further away was noted before the clock was set back
            raise Problem(f"{place} has asked us to stay away until {utc(until)} (noted in {path}); "
                          "nothing was asked for")
        yield Pause(fd, delay)


class Pause:
    """The times of the last request, and until when to stay away, in a lock file that outlives this process."""

    def __init__(self, fd, delay):
        self._fd, self._delay, self._until = fd, delay, 0

    def left(self):
        """Seconds until the next request may be made."""
        since = time.time() - locks.stamps(self._fd)[0] / 1e9
        if since < 0:
            return self._delay  # the clock was set back
        return max(0, self._delay + _MARGIN - since) if self._delay else 0

    def stamp(self):
        """Note that a request is made, or was answered, just now."""
        locks.stamp(self._fd, time.time_ns(), int(self._until * 1e9))

    def stay_away(self, seconds):
        """Have all runs of this machine wait for so long; returns until when, in seconds since 1970."""
        self._until = time.time() + min(seconds, _LONGEST_AWAY)
        self.stamp()
        return self._until
