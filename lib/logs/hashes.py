"""The sha256 of many files, on all cores."""

import concurrent.futures
import hashlib
import itertools
import multiprocessing
import os
import stat

from ..store import files, parent, workdir
from ..store.errors import Problem
from . import last_check

_CHUNK = 256  # files that a process takes at a time


def hash_files(work, wanted, jobs):
    """Yield (gid, sha256, stamp) for pairs (gid, expected size or None) of games with files in xml/.

    sha256 is '' for a file that does not have the expected size and so is not hashed, None if there is no regular file,
    and a files.Unreadable if the file cannot be read. stamp: the state of the file, for `last_check`. Raises OSError.
    """
    wanted = iter(wanted)
    chunks = iter(lambda: [work, *itertools.islice(wanted, _CHUNK)], [work])
    few = list(itertools.islice(chunks, 2))
    if len(few) < 2 or jobs == 1:  # a pool is not worth it
        yield from itertools.chain.from_iterable(map(_hash_chunk, itertools.chain(few, chunks)))
        return
    with concurrent.futures.ProcessPoolExecutor(jobs, multiprocessing.get_context("fork"),
                                                parent.end_with, [os.getpid()]) as pool:
        try:
            yield from itertools.chain.from_iterable(pool.map(_hash_chunk, itertools.chain(few, chunks)))
        except concurrent.futures.BrokenExecutor:
            raise Problem("a process that hashes files was killed; run the same command again") from None


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
        return digest.hexdigest(), last_check.stamp(info)
    finally:
        os.close(fd)
