"""Signals, and the end of the make that started a script: both ask it to end. Only scripts import this module."""

import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)  # first: a script that only reads just dies, one that writes calls `catch`

import contextlib
import os
import threading
import time

from ..store.errors import Interrupted
from ..store.files import is_alive


def _where():
    """A text that differs between machines and containers, where a process number means another process. The Makefile
    builds the same text."""
    boot = pids = ""
    with contextlib.suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
        boot = f.read().strip()
    with contextlib.suppress(OSError):
        pids = os.readlink("/proc/self/ns/pid")
    return f"{boot}/{pids}"


def run_pid():
    """The process number of the make that the user started; None if no make started this script, or if that make runs
    on another machine (Slurm passes RUN_PID on to its tasks there)."""
    pid, _, where = os.environ.get("RUN_PID", "").partition("@")
    return int(pid) if pid.isdecimal() and where == _where() else None


def _follow(pid):
    """When the make that started us ends, act as after a SIGTERM, so that no script of a killed run stays at work."""
    while is_alive(pid):
        time.sleep(0.2)
    signal.pthread_kill(threading.main_thread().ident, signal.SIGTERM)


if run_pid():
    threading.Thread(target=_follow, args=[run_pid()], daemon=True).start()


class Stop:
    """The first SIGINT or SIGTERM asks this script to end; a second one kills it.

    signum: the signal that came, 0 if none has come
    """

    def __init__(self):
        self.signum, self._waiting = 0, False

    def catch(self):
        """From now on a signal only sets `signum` and ends a `waiting` block."""
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
        """A block in which nothing is half done: there a signal, even one that came before, raises Interrupted."""
        self._waiting = True
        try:
            if self.signum:
                raise Interrupted
            yield
        finally:
            self._waiting = False


stop = Stop()
