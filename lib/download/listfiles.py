"""Zips and pages that list games: reading them, however they are made, in little memory and time."""

import contextlib
import gzip
import io
import os
import re
import zipfile
import zlib

from ..store import gid
from ..store.errors import Problem

MEMBER = re.compile(r"scc[0-9]{8}(?:[0-9]{2})?\.html(?:\.gz)?")
ZIP_LIMIT = 1 << 31  # bytes of a zip, and of what all its members unpack to; they are packed already
_LINK = re.compile(rb'<a href="[^">\n]{0,500}?(?:[?&]log=|/log/\?)([^"&<>\n]{0,500})')
_LINE_LIMIT = 1 << 16  # bytes; a line of a page has 200
_BLOCK = 1 << 20  # bytes of a page that are searched together
_PAGE_LIMIT = 1 << 26  # bytes that one page may unpack to; a day has 300 kB
_YEAR_LIMIT = 1 << 29  # bytes that all pages of a zip may unpack to; a year has 110 MB
_READ_LIMIT = 1 << 24  # bytes that are read at once: the table of contents of a year's zip has at most 6 MB


class _Careful(io.BufferedReader):
    """A file that refuses to be read at once, because zipfile reads a table of contents at once, however long it is."""

    def read(self, size=-1):
        data = super().read(_READ_LIMIT + 1 if size is None or size < 0 else min(size, _READ_LIMIT + 1))
        if len(data) > _READ_LIMIT:
            raise zipfile.BadZipFile("its table of contents is too long")
        return data


@contextlib.contextmanager
def _open_zip(path):
    """A ZipFile, for the block. Raises BadZipFile if it is not a zip, or if reading it would take much memory."""
    with _Careful(io.FileIO(path)) as f, zipfile.ZipFile(f) as z:
        if any(info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for info in z.infolist()):
            raise zipfile.BadZipFile("packed with an uncommon method")
        yield z


def zip_problem(path):
    """Read a whole zip; returns what is wrong with it, as text, or None. Raises OSError."""
    try:
        with _open_zip(path) as z:
            size = sum(info.file_size for info in z.infolist())  # zipfile unpacks no more than that
            bad = f"its members unpack to {size} bytes" if size > ZIP_LIMIT else z.testzip()
        return f"damaged zip: {bad}" if bad else None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as e:
        return f"not a sound zip: {e}"


def ids(path, tell):
    """Yield the id of each game that a zip, a page or another list, plain or gzipped, names; calls tell(text) for each
    bad link or page.

    Memory stays small, whatever the file contains. Raises OSError, and Problem for a damaged zip or a file that is
    called .zip but is not one.
    """
    with open(path, "rb") as f:
        if f.read(4) != b"PK\x03\x04" and not os.fspath(path).endswith(".zip"):
            yield from _page_ids(f, path, tell)
            return
    left = _YEAR_LIMIT
    try:
        with _open_zip(path) as z:
            for info in z.infolist():
                if MEMBER.fullmatch(info.filename.rpartition("/")[2]):
                    with z.open(info) as member:
                        left -= yield from _page_ids(member, f"{path}: {ascii(info.filename)[1:-1]}", tell)
                    if left < 0:
                        raise zipfile.BadZipFile(f"its pages unpack to more than {_YEAR_LIMIT >> 20} MB")
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as e:
        raise Problem(f"{path}: not a sound zip ({e})") from None


def _page_ids(f, name, tell):
    """Yield the ids of a page; returns how many bytes of it were read."""
    f.seek(0)
    head = f.read(2)
    f.seek(0)
    page = gzip.GzipFile(fileobj=f) if head == b"\x1f\x8b" else f
    size, rest = 0, b""
    try:
        while block := page.read(_BLOCK):
            size += len(block)
            if size > _PAGE_LIMIT:
                tell(f"{name}: unpacks to more than {_PAGE_LIMIT >> 20} MB; the rest was skipped")
                return size
            text = rest + block
            end = text.rfind(b"\n") + 1
            if len(text) - end > _LINE_LIMIT:
                end = len(text)  # no page has such lines
            rest = text[end:]
            yield from _block_ids(text[:end], name, tell)
        yield from _block_ids(rest, name, tell)
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile) as e:
        if isinstance(e, OSError) and e.errno:
            raise
        tell(f"{name}: damaged: {e}")
    return size


def _block_ids(text, name, tell):
    """Yield the id of the first link of each line of a page; from another text, all ids in it."""
    line_end = 0
    if not _LINK.search(text):
        yield from gid.find(text.decode("utf-8", "replace"))
    for link in _LINK.finditer(text):
        if link.start() < line_end:
            continue
        line_end = text.find(b"\n", link.end())
        if line_end < 0:
            line_end = len(text)
        game = gid.parse(link[1].decode("ascii", "replace"))
        if game:
            yield game
        else:
            tell(f"{name}: {link[1][:60]!r} is not a game id")
