"""What was read of a large manifest, kept so that the next script need not parse it again. A cache: it can be deleted
at any time, and what is not proved to come from these very bytes, read by this very program, counts as not there. The
proof is against mistakes, not against forgers: what others may have written counts as not there either."""

import hashlib
import marshal
import os
import sys

from . import files

LARGE = 1 << 24  # bytes: a smaller manifest is read faster than it takes to think about it
NEWS = 1 << 23  # bytes read after the last snapshot that make a new one worth writing
_BLOCK = 1 << 24
_SHORT = 24  # characters: times, statuses, names of shards
_PROGRAM = ("../manifest.py", "gid.py", "snapshot.py")  # what decides how lines become state


def _path(manifest):
    return os.path.join(os.path.dirname(manifest), ".manifest-snapshot")


def _begin():
    """A hash, to be fed all bytes of the manifest that are read; another one for each program and Python."""
    proof = hashlib.blake2b(sys.version.encode())
    for name in _PROGRAM:
        with open(os.path.join(os.path.dirname(__file__), name), "rb") as f:
            proof.update(f.read())
    return proof


def _seal(proof, payload):
    whole = proof.copy()
    whole.update(payload)
    return whole.digest()


def load(path, f, end):
    """(proof, offset, state): the state that `save` was given when `offset` bytes of the manifest had been read, and
    their hash. Without a snapshot of what stands there, (hash of nothing, 0, None). f: the manifest, of `end` bytes.
    """
    proof = _begin()
    try:
        with files.open_regular(_path(path)) as snapshot:
            if not files.is_ours(os.fstat(snapshot.fileno())):
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
    """Keep `state`, (lines, bad, latest, claims) of a Manifest, which comes from the first `offset` bytes of it, hashed
    into `proof`. Raises OSError, and ValueError for a state that cannot be kept."""
    lines, bad, latest, claims = state
    # what many records have in common is written once, and so read quicker and kept once in memory
    latest = {game: {key: sys.intern(value) if type(value) is str and len(value) < _SHORT else value
                     for key, value in record.items()} for game, record in latest.items()}
    payload = marshal.dumps((lines, bad, latest, claims))
    with files.atomic_write(_path(path)) as f:
        os.fchmod(f.fileno(), 0o600)
        f.write(_seal(proof, payload) + offset.to_bytes(8, "big"))
        f.write(payload)
