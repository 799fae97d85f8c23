"""A snapshot of a large manifest that was read, so that the next script need not parse it again.

It is a cache and can be deleted at any time. A snapshot is used only if a hash proves that it comes from these very
bytes and this very program. The hash guards against mistakes, not against forgers, so a snapshot that another user may
have written is not used either.
"""

import hashlib
import marshal
import os
import stat
import sys

from . import files

LARGE = 1 << 24  # bytes; for a smaller manifest a snapshot saves nothing
NEWS = 1 << 23  # bytes read since the last snapshot after which a new one is worth writing
_BLOCK = 1 << 24
_SHORT = 24  # characters; times, statuses and names of shards are shorter
_PROGRAM = ("../manifest.py", "gid.py", "snapshot.py")  # the files that decide how lines become state


def _path(manifest):
    return os.path.join(os.path.dirname(manifest), ".manifest-snapshot")


def _begin():
    """A hash that takes all bytes of the manifest as they are read. It begins differently for each program and
    Python."""
    proof = hashlib.blake2b(sys.version.encode())
    for name in _PROGRAM:
        with open(os.path.join(os.path.dirname(__file__), name), "rb") as f:
            proof.update(f.read())
    return proof


def _seal(proof, payload):
    whole = proof.copy()
    whole.update(payload)
    return whole.digest()


def _is_ours(info):
    """True if only we, or root, can have written a file; info: its os.stat_result."""
    return info.st_uid == os.geteuid() and not info.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def load(path, f, end):
    """(proof, offset, state): the state that `save` got after `offset` bytes of the manifest, and the hash of these
    bytes. (hash of nothing, 0, None) if there is no snapshot of this manifest. f: the manifest, which has `end` bytes.
    """
    proof = _begin()
    try:
        with files.open_regular(_path(path)) as snapshot:
            if not _is_ours(os.fstat(snapshot.fileno())):
                raise PermissionError
            seal, offset = snapshot.read(proof.digest_size), int.from_bytes(snapshot.read(8), "big")
            payload = snapshot.read() if offset <= end else b""
    except OSError:
        payload = b""
    if payload:
        f.seek(0)
        left = offset
        while left and (block := f.read(min(_BLOCK, left))):
            proof.update(block)
            left -= len(block)
        if not left and _seal(proof, payload) == seal:
            return proof, offset, marshal.loads(payload)
    return _begin(), 0, None


def save(path, proof, offset, state):
    """Save `state`, (lines, bad, latest, claims) of a Manifest after its first `offset` bytes; proof: their hash.
    Raises OSError, and ValueError for a state that cannot be saved."""
    lines, bad, latest, claims = state
    # a text that many records share is written once: it loads faster, and is in memory once
    latest = {game: {key: sys.intern(value) if type(value) is str and len(value) < _SHORT else value
                     for key, value in record.items()} for game, record in latest.items()}
    payload = marshal.dumps((lines, bad, latest, claims))
    with files.atomic_write(_path(path)) as f:
        os.fchmod(f.fileno(), 0o600)
        f.write(_seal(proof, payload) + offset.to_bytes(8, "big"))
        f.write(payload)
