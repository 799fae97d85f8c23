"""Signals, and the end of the make that started a script: the wish that it end. Only scripts import this module."""

import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)  # at once: a reader just dies; writers `catch` what they must not die of

import contextlib
import os
import threading
import time

from ..store.errors import Interrupted
from ..store.files import is_alive


def _where():
    """What tells apart the places where a process number means another process; the Makefile builds the same text."""
    boot = pids = ""
    with contextlib.suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
        boot = f.read().strip()
    with contextlib.suppress(OSError):
        pids = os.readlink("/proc/self/ns/pid")
    return f"{boot}/{pids}"


def run_pid():
    """The process number of the make that the user started; None if this is no make's script, or if that make runs
    elsewhere: Slurm, for one, passes RUN_PID on to its tasks on other machines."""
    pid, _, where = os.environ.get("RUN_PID", "").partition("@")
    return int(pid) if pid.isdecimal() and where == _where() else None


def _follow(pid):
    """Take the end of the make that started us for a SIGTERM: a killed run leaves nobody at work behind."""
    while is_alive(pid):
        time.sleep(0.2)
    signal.pthread_kill(threading.main_thread().ident, signal.SIGTERM)


if run_pid():
    threading.Thread(target=_follow, args=[run_pid()], daemon=True).start()


class Stop:
    """The wish of a user or of the system that this script end: the first SIGINT or SIGTERM. A second one kills.

    signum: the signal that came, 0 while none has
    """

    def __init__(self):
        self.signum, self._waiting = 0, False

    def catch(self):
        """From now on a signal sets `signum`, ends a `waiting` block, and does nothing else."""
        for signum in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signum, self._handle)

    def _handle(self, signum, frame):
        self.signum = signum
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_DFL)
        if self._waiting:
            raise Interrupted

    @contextlib.contextmanager
    def waiting(self):
        """A block in which nothing is half done: a signal, also an earlier one, raises Interrupted there."""
        self._waiting = True
        try:
            if self.signum:
                raise Interrupted
            yield
        finally:
            self._waiting = False


stop = Stop()
