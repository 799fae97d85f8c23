"""Streams of bytes out of files of any kind: bounded, whatever they unpack to, and known by their first bytes."""

import bz2
import gzip
import lzma
import zipfile
import zlib

HEAD = 1024  # bytes by which the kind of a file is known
_RATIO, _FREE = 100, 1 << 26  # what a file may unpack to: so many times its size, and so much besides
PACKED = {b"\x1f\x8b": gzip.GzipFile, b"BZh": bz2.BZ2File, b"\xfd7zXZ\0": lzma.LZMAFile}


class Damaged(Exception):
    """A file is not what it seems to be, or not all of it; str() says why."""


def damages(error):
    """What is wrong with a file, as text, if an error that reading it raised says that it is damaged; else None."""
    if isinstance(error, (Damaged, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)):
        return str(error)
    if isinstance(error, (NotImplementedError, RuntimeError, MemoryError)):
        return f"packed in a way that is not known: {error}"
    if isinstance(error, OSError) and error.errno is None:  # how gzip and bz2 say it
        return str(error)
    return None


class Budget:
    """How many bytes a file may still unpack to, at all depths together: what unpacks without end is a trap."""

    def __init__(self, size, ratio=_RATIO):
        """size: bytes of the file itself."""
        self.ratio, self.left = ratio, ratio * size + _FREE

    def spend(self, n):
        """Take n bytes off; raises Damaged when they are not left."""
        self.left -= n
        if self.left < 0:
            raise Damaged(f"it unpacks to more than {self.ratio} times its size: the rest is passed over")


class Stream:
    """Bytes to be read in order, and once; `head`, the first of them, may be looked at before."""

    def __init__(self, f, budget=None):
        """f: anything with `read`; budget: what is read is taken off it."""
        self._f, self._budget, self._rest = f, budget, b""
        self._rest = self.head = self.read(HEAD)

    def read(self, n=-1):
        """n bytes, fewer only at the end. Raises OSError, and what `damages` knows."""
        if n is None or n < 0:
            raise ValueError("a stream is read in pieces")
        parts, self._rest = [self._rest[:n]], self._rest[n:]
        missing = n - len(parts[0])
        while missing and (block := self._f.read(missing)):
            if self._budget:
                self._budget.spend(len(block))
            parts.append(block)
            missing -= len(block)
        return parts[0] if len(parts) == 1 else b"".join(parts)


def unpacked(stream):
    """The file-like object that unpacks a stream of gzip, bzip2 or xz; None if it is none of these."""
    for magic, kind in PACKED.items():
        if stream.head.startswith(magic):
            return kind(fileobj=stream) if kind is gzip.GzipFile else kind(stream)
    return None
