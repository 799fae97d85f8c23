"""The log file of a game: reading it; is it whole? does another game have the same bytes?"""

import hashlib
import re
import zlib

from ..store import files, workdir

LIMIT = 1 << 24  # bytes that a log may have, or unpack to; a long hanchan has 60 kB

_PREFACE = 1024  # the first tag of a log begins within so many bytes
_BEGIN = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:(?:<\?[^<>]*\?>|<!--[^<>]*-->)\s*)*<mjloggm")


def is_whole(data, ended=False):
    """True if the bytes, which may be packed with gzip, begin and end like a paipu; a BOM and white space do not
    matter. ended: the game must also have been played to its end."""
    if data[:2] == b"\x1f\x8b":
        try:
            unpacker = zlib.decompressobj(wbits=31)
            data = unpacker.decompress(data, LIMIT)
        except zlib.error:
            return False
        if not unpacker.eof:
            return False
    body = data.strip(b"\xef\xbb\xbf \t\r\n")
    return (begins(body) and body.endswith(b"</mjloggm>") and b"<GO" in body
            and (not ended or b"owari" in body))


def begins(data):
    """True if the bytes begin like a paipu; a BOM, white space, declarations and comments may come first."""
    return _BEGIN.match(data[:_PREFACE]) is not None


def find_twin(work, manifest, game, sha256):
    """The id of another game whose file has these bytes, None if there is none. For use under the lock."""
    other = manifest.owners.get(sha256, game)
    return other if other != game and _is_sound(work, manifest.latest[other], sha256) else None


def _is_sound(work, record, sha256):
    """True if a game has these bytes according to `record`, and its file still has them."""
    if record.get("sha256") != sha256 or record.get("status") not in ("encoded", "downloaded", "failed"):
        return False
    try:
        return read(work, record["gid"])[1] == sha256
    except (FileNotFoundError, files.Unreadable):
        return False


def read(work, game):
    """(bytes, sha256) of a game's file. If it is too long for a log, only its first bytes. Raises files.Unreadable,
    OSError."""
    path = workdir.xml(work, game)
    with files.reading(path), files.open_regular(path) as f:
        data = f.read(LIMIT + 1)
        digest = hashlib.sha256(data)
        while rest := f.read(1 << 20):
            digest.update(rest)
    return data, digest.hexdigest()
