"""The sha256 of many files, on all cores; and which files need not be hashed again, since nothing touched them."""

import concurrent.futures
import contextlib
import hashlib
import itertools
import multiprocessing
import os
import stat
import time

from lib import files, parent, workdir
from lib.errors import Problem

_CHUNK = 256  # files that a process takes at a time
_RACY = 2  # seconds: a file that was changed so shortly before it was hashed may change again without showing it


def hash_files(work, wanted, jobs):
    """Yield (gid, sha256, stamp) for pairs (gid, size or None) of games with files in xml/.

    sha256 is '' for a file of another size than expected, which is not hashed, None where there is no regular file, and
    a files.Unreadable for one that cannot be read. stamp: what the file looked like, for `Seen`. Raises OSError.
    """
    wanted = iter(wanted)
    chunks = iter(lambda: [work, *itertools.islice(wanted, _CHUNK)], [work])
    few = list(itertools.islice(chunks, 2))
    if len(few) < 2 or jobs == 1:  # not worth a pool
        yield from itertools.chain.from_iterable(map(_hash_chunk, itertools.chain(few, chunks)))
        return
    with concurrent.futures.ProcessPoolExecutor(jobs, multiprocessing.get_context("fork"),
                                                parent.end_with, [os.getpid()]) as pool:
        try:
            yield from itertools.chain.from_iterable(pool.map(_hash_chunk, itertools.chain(few, chunks)))
        except concurrent.futures.BrokenExecutor:
            raise Problem("a process that hashes files was killed; run it again") from None


def _hash_chunk(chunk):
    work, *wanted = chunk
    results = []
    for game, size in wanted:
        path = workdir.xml(work, game)
        try:
            with files.reading(path):
                results.append((game, *_hash_file(path, size)))
        except files.Unreadable as e:
            results.append((game, e, None))
    return results


def _hash_file(path, size):
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as e:
        if not isinstance(e, FileNotFoundError) and not os.path.islink(path):
            raise
        return None, None
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            return None, None
        if size is not None and size != info.st_size:
            return "", None
        digest = hashlib.sha256()
        while block := os.read(fd, 1 << 20):
            digest.update(block)
        return digest.hexdigest(), stamp(info)
    finally:
        os.close(fd)


def stamp(info):
    """What a change of a file would change, of its os.stat_result, as text."""
    return f"{info.st_size} {info.st_mtime_ns} {info.st_ino}"


class Seen:
    """When each file was last found sound, and what it looked like then. A cache: losing it costs time only.

    news: the entries that `save` has still to write
    """

    def __init__(self, work):
        """Read it from the work directory; a damaged one counts as empty."""
        self._path, self.news = workdir.path(work, ".seen"), {}
        self.entries = self._read()

    def _read(self):
        with contextlib.suppress(OSError, ValueError), open(self._path, encoding="ascii") as f:
            # split up no further before it is asked for: that would be most of the work of looking at many files
            return dict(line.split("\t", 1) for line in f.read().split("\n") if line)
        return {}

    def is_sound(self, game, sha256, stamp):
        """True if the file looked like this when it was last hashed, and had this hash."""
        entry = self.entries.get(game, "")
        return entry.startswith(sha256[:16] + "\t") and entry.endswith("\t" + stamp)

    def checked(self, game):
        """When the file was last hashed and found sound, in seconds since 1970; 0 if that is not known."""
        checked = self.entries.get(game, "").split("\t")[1:2]
        return int(checked[0]) if checked and checked[0].isdecimal() else 0

    def put(self, game, sha256, stamp):
        """Note that a file that looks like this was hashed just now, and is sound."""
        if int(stamp.split()[1]) < (time.time() - _RACY) * 1e9:
            self.news[game] = self.entries[game] = f"{sha256[:16]}\t{int(time.time())}\t{stamp}"

    def save(self):
        """Write back what is new, beside what others have written meanwhile; for use under a lock. Raises OSError."""
        if self.news:
            self.entries = self._read() | self.news
            lines = (f"{game}\t{entry}\n" for game, entry in self.entries.items())
            files.write(self._path, "".join(lines).encode())
            self.news = {}
