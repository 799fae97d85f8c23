"""Processes that read and encode games, for one process that writes. Results come in the order of the games.

A worker is `python -m lib.rows.workers WORK JUDGE PARENT STDERR`. First it sends its IDENTITY. Then it takes games: for
each line [gid, sha256] on its stdin it sends _TAKEN and then a pickled answer to its stdout. It ignores signals,
because the process that started it decides when to stop, and it ends with that process. If a worker dies before _TAKEN,
that says nothing about the game.
"""

import collections
import contextlib
import glob
import hashlib
import json
import os
import pickle
import select
import signal
import subprocess
import sys
import time

from ..cli import settings
from ..logs import logfile
from ..mahjong.judge import is_judged
from ..store import files, parent
from ..store.errors import Problem
from . import encoder

DEADLINE = 60  # seconds that a worker has for a game before it is killed; a long game takes half a second
_ANSWER = 1 << 20  # bytes that a pipe should hold, so that an answer is written in one go
_TRIES = 2  # a worker may be killed for some other reason; only a game that kills two workers is at fault
_TAKEN = b"t"
_STARTING, _GIVEN, _WORKING = range(3)


def _identity():
    """64 bytes that stand for the encoder's version and the source of this tree. A worker must have the same as the
    process that started it."""
    digest = hashlib.sha256(json.dumps(encoder.ENCODER, sort_keys=True).encode())
    for path in sorted(glob.glob(os.path.join(settings.ROOT, "lib", "**", "*.py"), recursive=True)):
        with open(path, "rb") as f:
            digest.update(f.read())
    return digest.hexdigest().encode()


# read now, because the tree may have changed by the time a worker is started, and .venv may be another one
IDENTITY = _identity()
_PYTHON = os.path.join(os.path.realpath(os.path.dirname(sys.executable)), os.path.basename(sys.executable))


def answer(work, game, sha256, one_in=1):
    """What becomes of a game whose file should have this hash: ('encoded', folded rows), ('failed', reason),
    ('corrupt', the hash found), ('missing', None), ('unreadable', why), ('error', OSError) and, only from Workers,
    ('died', reason). Workers add the `seconds` that it took to the rows.

    one_in: the judge looks at one game in so many.
    """
    try:
        data, found = logfile.read(work, game)
        if found != sha256:
            return "corrupt", found
        return "encoded", encoder.encode_folded(data, is_judged(game, one_in))
    except encoder.Unencodable as e:
        return "failed", str(e)
    except files.Unreadable as e:
        return "unreadable", e.strerror
    except OSError as e:  # a file counts as missing only if the work directory is there
        return ("missing", None) if isinstance(e, FileNotFoundError) and os.path.isdir(work) else ("error", e)


class _Worker:
    """A process, the task that it was given last, and how far it has come with it."""

    def __init__(self, work, judge):
        talk = os.dup(2)
        try:
            self.process = subprocess.Popen(
                [_PYTHON, "-m", "lib.rows.workers", work, *map(str, (judge, os.getpid(), talk))], cwd=settings.ROOT,
                env=os.environ | {"PYTHONSAFEPATH": ""},  # or it would not find lib in its current directory
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pipesize=_ANSWER,
                pass_fds=[talk],  # its stderr once it has started; if it cannot start, we tell why
                start_new_session=True)  # Ctrl-C is not for it, not even while it starts
        except OSError as e:
            raise Problem(f"cannot start a process that encodes games: {e.strerror}") from None
        finally:
            os.close(talk)
        self.stage, self.task = _STARTING, None

    def give(self, task):
        self.task = task
        if self.stage != _STARTING:
            self.stage = _GIVEN
        with contextlib.suppress(BrokenPipeError):  # it is dead, which the end of its stdout will show
            self.process.stdin.write(json.dumps(task[:2]).encode() + b"\n")
            self.process.stdin.flush()

    def receive(self):
        """Read what there is to read. True once it has answered, False if its answer is still to come. Raises EOFError
        if it is dead, and Problem if this tree has changed since the run began."""
        out = self.process.stdout
        if self.stage == _WORKING:
            try:
                self.task[2] = pickle.load(out)
            except pickle.UnpicklingError:
                raise EOFError from None
            return True
        said = os.read(out.fileno(), len(IDENTITY if self.stage == _STARTING else _TAKEN))
        if not said:
            raise EOFError
        if self.stage == _STARTING and said != IDENTITY:
            raise Problem("this tree was changed during this run, so rows of two versions would be mixed: "
                          "start the run again")
        self.stage += 1
        return False

    def end(self):
        """Kill it, if it is not dead yet. Returns how it ended, and the last line on its stderr if it never started."""
        self.process.kill()
        said = (self.process.communicate()[1] or b"").decode(errors="replace").split("\n")
        code = self.process.returncode
        return signal.Signals(-code).name if code < 0 else f"exit status {code}", next(filter(None, said[::-1]), "")


class Workers:
    """Up to `jobs` workers. They are started when there is work for them."""

    def __init__(self, work, jobs, judge=1):
        self._work, self._jobs, self._judge = os.path.abspath(work), jobs, judge
        self._tasks = collections.deque()  # [game, sha256, answer or None, tries], in the order of the games
        self._idle, self._busy = [], {}  # workers; stdout's number -> worker

    def put(self, game, sha256):
        """Take on a game. If all workers are busy, wait for one. If there is only one worker, wait until it has done
        the game, so that no more than one core is in use."""
        task = [game, sha256, None, 1]
        self._tasks.append(task)
        while not self._idle and len(self._busy) >= self._jobs:
            self.wait()
        self._give(task)
        while self._jobs == 1 and self._busy:
            self.wait()

    def is_full(self):
        """True if so many games wait for a slow one before them that the next should not be put yet."""
        return len(self._tasks) >= 4 * self._jobs

    def is_working(self):
        """True if an answer is still to come."""
        return bool(self._busy)

    def wait(self, also=(), waiting=contextlib.nullcontext):
        """Wait until a worker has sent something, or one of the files `also` can be read.

        waiting(): a context in which a signal may raise Interrupted. Answers are read outside of it, so that none is
        cut in half. Raises Problem if a worker cannot start.
        """
        with waiting():
            ready = select.select([*self._busy, *also], [], [])[0]
        for fd in ready:
            if fd in self._busy:
                self._receive(fd)

    def done(self):
        """Yield (game, sha256, kind, what) of the games that are done, up to the first that is not."""
        while self._tasks and self._tasks[0][2]:
            game, sha256, (kind, what), _ = self._tasks.popleft()
            yield game, sha256, kind, what

    def close(self):
        """End the workers, and drop what they were doing."""
        for worker in [*self._idle, *self._busy.values()]:
            worker.end()
        self._idle, self._busy = [], {}
        self._tasks.clear()

    def _give(self, task):
        worker = self._idle.pop() if self._idle else _Worker(self._work, self._judge)
        worker.give(task)
        self._busy[worker.process.stdout.fileno()] = worker

    def _receive(self, fd):
        worker = self._busy[fd]
        try:
            if worker.receive():
                self._idle.append(self._busy.pop(fd))
        except EOFError:
            del self._busy[fd]
            self._mourn(worker)

    def _mourn(self, worker):
        """Give the task of a dead worker to another one. If it has killed _TRIES of them, it has failed."""
        task, (how, said) = worker.task, worker.end()
        if worker.stage == _STARTING:
            raise Problem(f"a process that encodes games could not start ({how}){': ' * bool(said)}{said}")
        task[3] += worker.stage == _WORKING
        if task[3] <= _TRIES:
            self._give(task)
        else:
            how = how if how != "SIGALRM" else f"not done in {DEADLINE} s"
            task[2] = "died", f"the encoder died on it ({how})"


def _say(out, what):
    out.write(what)
    out.flush()


def _main(work, judge, pid, talk):
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # the deadline; it also ends C++ code that never returns to Python
    parent.end_with(pid)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(talk, 2)
    os.dup2(2, 1)  # stdout is for answers only, so what the engine prints goes to stderr
    os.close(talk)
    try:
        _say(out, IDENTITY)
        for line in sys.stdin:
            _say(out, _TAKEN)
            signal.setitimer(signal.ITIMER_REAL, DEADLINE)
            begin = time.perf_counter()
            found = answer(work, *json.loads(line), judge)
            signal.setitimer(signal.ITIMER_REAL, 0)
            if found[0] == "encoded":
                found[1]["seconds"] = time.perf_counter() - begin
            pickle.dump(found, out, pickle.HIGHEST_PROTOCOL)
            out.flush()
    except BrokenPipeError:
        os._exit(1)  # nobody waits for the answer any more


if __name__ == "__main__":
    _main(sys.argv[1], *map(int, sys.argv[2:]))
