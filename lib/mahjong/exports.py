"""Writing the games of a work directory as mjai files: many processes read logs and make events, one writes the files.
"""

import collections
import concurrent.futures
import gzip
import multiprocessing
import os

from ..logs import logfile
from ..store import files, parent, workdir
from ..store.errors import Problem
from . import mjai

_CHUNK = 32  # games that a process takes at a time, and files that are synced together
_AHEAD = 4  # chunks for each process that may be under way
_LEVEL = 6  # of gzip: a fifth of the time that the events take


def export(work, games, jobs, stream=False):
    """Yield (gid, kind, what) for pairs (gid, recorded sha256 or None), in their order. A None among the pairs means
    that there is none just now; it is yielded once all before it are done.

    kind, and what: exported (with `stream` the events as text; else None, and the file is safely on disk), there (the
    file is newer than the log), failed (why), corrupt (the log differs from the recorded one), missing, unreadable
    (why). jobs: how many processes. Raises OSError, Problem.
    """
    if jobs == 1:
        yield from _in_order(work, games, 1, stream, _Now())
        return
    with concurrent.futures.ProcessPoolExecutor(jobs, multiprocessing.get_context("fork"),
                                                parent.end_with, [os.getpid()]) as pool:
        try:
            yield from _in_order(work, games, jobs, stream, pool)
        except concurrent.futures.BrokenExecutor:
            raise Problem("a process that exports games was killed; start the export again") from None


class _Now:
    """Stands in for a pool of processes, and does everything at once."""

    def submit(self, function, *args):
        future = concurrent.futures.Future()
        future.set_result(function(*args))
        return future


def _in_order(work, games, jobs, stream, pool):
    under_way, chunk = collections.deque(), []

    def done(at_most):
        """Start the open chunk, then write down what is done, until only `at_most` chunks are under way."""
        if chunk:
            under_way.append(pool.submit(_read_chunk, work, chunk[:], stream))
            chunk.clear()
        while len(under_way) > at_most:
            yield from _put_away(work, under_way.popleft().result(), stream)

    for game in games:
        if game is None:
            yield from done(0)
            yield None
        else:
            chunk.append(game)
            if len(chunk) == _CHUNK:
                yield from done(_AHEAD * jobs)
    yield from done(0)


def _read_chunk(work, chunk, stream):
    return [(game, *_read(work, game, sha256, stream)) for game, sha256 in chunk]


def _read(work, game, sha256, stream):
    """(kind, what) as in `export`; but for a game that is to be written to a file, what is the bytes of that file."""
    try:
        if not stream and _is_there(work, game):
            return "there", None
        data, found = logfile.read(work, game)
    except files.Unreadable as e:
        return "unreadable", e.strerror
    except FileNotFoundError:
        if not os.path.isdir(workdir.path(work, "xml")):  # if xml/ itself is gone, the log may well exist
            raise
        return "missing", None
    if sha256 not in (None, found):
        return "corrupt", None
    try:
        text = mjai.text(game, data)
    except mjai.Unencodable as e:
        return "failed", str(e)
    return "exported", text if stream else gzip.compress(text.encode(), _LEVEL, mtime=0)


def _is_there(work, game):
    """True if a game's file was written after its log was put in its place."""
    try:
        return os.lstat(workdir.mjai(work, game)).st_mtime_ns > os.lstat(workdir.xml(work, game)).st_ctime_ns
    except FileNotFoundError:
        return False


def _put_away(work, results, stream):
    if not stream:
        found = {workdir.mjai(work, game): what for game, kind, what in results if kind == "exported"}
        if found:
            files.write_all(found)
            results = [(game, kind, None if kind == "exported" else what) for game, kind, what in results]
    yield from results
