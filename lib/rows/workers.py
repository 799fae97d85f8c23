"""Processes that read and encode games, for one process that writes. Results come in the order of the games.

A worker is `python -m lib.rows.workers WORK`: a line [gid, sha256] on its stdin, a pickled answer on its stdout. It
lives as long as its stdin is open and is deaf to signals: the process that started it decides.
"""

import collections
import json
import os
import pickle
import select
import signal
import subprocess
import sys

from ..cli import settings
from ..logs import logfile
from ..store import files
from . import encoder

_ANSWER = 1 << 20  # bytes that a pipe holds, where that can be set: an answer is written in one go
_TRIES = 2  # a worker may be killed for reasons that are not its game's: a game that kills two is at fault


def answer(work, game, sha256):
    """What comes of a game's file that should have this hash: ('encoded', folded rows), ('failed', reason), ('corrupt',
    hash found), ('missing', None), ('unreadable', why), and, from Workers, ('died', reason) or ('error', OSError)."""
    try:
        data, found = logfile.read(work, game)
        return ("encoded", encoder.encode_folded(data)) if found == sha256 else ("corrupt", found)
    except encoder.Unencodable as e:
        return "failed", str(e)
    except files.Unreadable as e:
        return "unreadable", e.strerror
    except OSError as e:  # also of a file that is not there if the work directory is not there either
        return ("missing", None) if isinstance(e, FileNotFoundError) and os.path.isdir(work) else ("error", e)


class Workers:
    """`jobs` workers, started when there is work for them; with one job the work is done in this process."""

    def __init__(self, work, jobs):
        self._work, self._jobs = os.path.abspath(work), jobs
        self._tasks = collections.deque()  # [game, sha256, answer or None, tries], in the order of the games
        self._idle, self._busy = [], {}  # processes; stdout's number -> (process, task)

    def put(self, game, sha256):
        """Take on a game; returns at once unless all workers are at work, and games have piled up behind a slow one."""
        task = [game, sha256, None, 1]
        self._tasks.append(task)
        if self._jobs == 1:
            task[2] = answer(self._work, game, sha256)
            return
        while not self._idle and len(self._busy) >= self._jobs:
            self.wait()
        self._give(task)

    def is_full(self):
        """True if games have piled up behind a slow one, so that the next should not be put yet."""
        return len(self._tasks) >= 4 * self._jobs

    def is_working(self):
        """True if an answer is still to come."""
        return bool(self._busy)

    def wait(self, also=()):
        """Wait until a worker has answered, or one of the files `also` can be read."""
        for fd in select.select([*self._busy, *also], [], [])[0]:
            if fd in self._busy:
                self._receive(fd)

    def done(self):
        """Yield (game, sha256, kind, what) of the games that are done, as far as all before them are."""
        while self._tasks and self._tasks[0][2]:
            game, sha256, (kind, what), _ = self._tasks.popleft()
            yield game, sha256, kind, what

    def close(self):
        """End the workers; what they were at is dropped."""
        for process in [*self._idle, *(process for process, _ in self._busy.values())]:
            process.kill()
            process.communicate()
        self._idle, self._busy = [], {}
        self._tasks.clear()

    def _give(self, task):
        process = self._idle.pop() if self._idle else subprocess.Popen(
            [sys.executable, "-m", "lib.rows.workers", self._work], cwd=settings.ROOT, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, pipesize=_ANSWER,
            start_new_session=True)  # Ctrl-C is not for it, not even while it starts
        try:
            process.stdin.write(json.dumps(task[:2]).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            pass  # it is dead: its end of stdout says so
        self._busy[process.stdout.fileno()] = process, task

    def _receive(self, fd):
        process, task = self._busy.pop(fd)
        try:
            task[2] = pickle.load(process.stdout)
            self._idle.append(process)
        except (EOFError, pickle.UnpicklingError):
            process.communicate()
            task[3] += 1
            if task[3] <= _TRIES:
                self._give(task)
            else:
                code = process.returncode
                how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
                task[2] = "died", f"the encoder died on it ({how})"


def _main(work):
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, signal.SIG_IGN)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the engine may print is no answer
    try:
        for line in sys.stdin:
            pickle.dump(answer(work, *json.loads(line)), out, pickle.HIGHEST_PROTOCOL)
            out.flush()
    except BrokenPipeError:
        os._exit(1)  # nobody waits for it any more


if __name__ == "__main__":
    _main(sys.argv[1])
