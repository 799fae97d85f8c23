"""Streams of bytes from files of any kind: limited in what they unpack to, and recognised by their first bytes."""

import bz2
import gzip
import lzma
import zipfile
import zlib

HEAD = 1024  # the kind of a file is known from so many bytes
_RATIO, _FREE = 100, 1 << 26  # a file may unpack to so many times its size, plus so many bytes
PACKED = {b"\x1f\x8b": gzip.GzipFile, b"BZh": bz2.BZ2File, b"\xfd7zXZ\0": lzma.LZMAFile}


class Damaged(Exception):
    """A file is damaged or incomplete; str() says why."""


def damages(error):
    """What is wrong with a file, as text, if `error` means that the file is damaged; otherwise None."""
    if isinstance(error, (Damaged, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)):
        return str(error)
    if isinstance(error, (NotImplementedError, RuntimeError, MemoryError)):
        return f"packed in an unknown way: {error}"
    if isinstance(error, OSError) and error.errno is None:  # gzip and bz2 raise these
        return str(error)
    return None


class Budget:
    """How many more bytes a file may unpack to, at all depths together: some archives unpack without end."""

    def __init__(self, size, ratio=_RATIO):
        """size: bytes of the file itself."""
        self.ratio, self.left = ratio, ratio * size + _FREE

    def spend(self, n):
        """Subtract n bytes. Raises Damaged if so many are not left."""
        self.left -= n
        if self.left < 0:
            raise Damaged(f"it unpacks to more than {self.ratio} times its size; the rest was skipped")


class Stream:
    """Bytes that are read once, in order. `head`: the first of them, which stay to be read."""

    def __init__(self, f, budget=None):
        """f: anything with `read`; budget: the bytes that are read are subtracted from it."""
        self._f, self._budget, self._rest = f, budget, b""
        self._rest = self.head = self.read(HEAD)

    def read(self, n=-1):
        """n bytes, fewer only at the end. Raises OSError, and the errors that `damages` knows."""
        if n is None or n < 0:
            raise ValueError("a stream can only be read in pieces")
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
