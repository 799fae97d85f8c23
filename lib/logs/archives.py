"""Zips and tars as streams of their members: any number of members, in little memory, without writing to disk.

Python's own zipfile and tarfile keep an object for each member and trust the lengths in headers. Here a member is
forgotten when the next one is read.
"""

import functools
import io
import os
import re
import stat
import struct
import tarfile
import zipfile

from .streams import Damaged

_END = struct.Struct("<4s4H2IH")  # the end of a zip's table of contents
_END64 = struct.Struct("<4sQ2H2I4Q")
_ENTRY = struct.Struct("<4s6H3I5H2I")
_LOCAL = struct.Struct("<4s5H3I2H")
_METHODS = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED  # for other methods ZipExtFile does not limit what it unpacks
_NAME_LIMIT = 1 << 16  # bytes that a header of a tar with a long name may have
_BLOCK = tarfile.BLOCKSIZE


class _Section(io.RawIOBase):
    """A part of a file that keeps its own position, whatever else reads from the descriptor."""

    def __init__(self, fd, start, size):
        self._fd, self._at, self._end = fd, start, start + size

    def readable(self):
        return True

    def readinto(self, buffer):
        data = os.pread(self._fd, min(len(buffer), self._end - self._at), self._at)
        buffer[:len(data)] = data
        self._at += len(data)
        return len(data)

    def read(self, n=-1):
        data = os.pread(self._fd, max(0, min(n, self._end - self._at)) if n >= 0 else self._end - self._at, self._at)
        self._at += len(data)
        return data


def zip_members(fd):
    """Yield (name, size, function that opens it for reading) for each file in the zip of a descriptor.

    Raises Damaged, OSError; reading an opened file raises the errors that streams.damages knows.
    """
    entries = _zip_entries(fd)
    for flags, method, crc, packed, size, mode, at, raw in entries:
        name = raw.decode("utf-8" if flags & 0x800 else "cp437", "replace")
        if name.endswith("/") or stat.S_ISLNK(mode >> 16):
            continue
        yield name, size, functools.partial(_open_zipped, fd, name, flags, method, crc, packed, size, at)


def _open_zipped(fd, name, *values):
    info = zipfile.ZipInfo(name)
    (info.flag_bits, info.compress_type, info.CRC, info.compress_size, info.file_size, info.header_offset) = values
    if info.flag_bits & 1:
        raise Damaged("it is encrypted; unpack it yourself, then import the result")
    if info.compress_type not in _METHODS:
        raise Damaged("it is packed with an uncommon method; unpack it yourself, then import the result")
    inside = 0 <= info.header_offset < os.fstat(fd).st_size
    head = os.pread(fd, _LOCAL.size, info.header_offset) if inside else b""
    if len(head) < _LOCAL.size or head[:4] != b"PK\3\4":
        raise Damaged("its table of contents is wrong")
    start = info.header_offset + _LOCAL.size + sum(_LOCAL.unpack(head)[-2:])
    return zipfile.ZipExtFile(_Section(fd, start, info.compress_size), "r", info)


def _zip_entries(fd):
    """Yield the entries of a zip's table of contents; only a part of it is in memory."""
    at, end, shift = _table_of_contents(fd)
    rest = b""
    while at < end or rest:
        while len(rest) < min(end - at + len(rest), _ENTRY.size + 3 * 0xFFFF):
            block = os.pread(fd, min(1 << 20, end - at), at)
            if not block:
                raise Damaged("its table of contents ends too early")
            at += len(block)
            rest += block
        position = 0
        while len(rest) - position >= _ENTRY.size + 3 * 0xFFFF or (at >= end and position < len(rest)):
            entry, position = _zip_entry(rest, position, shift)
            yield entry
        rest = rest[position:]


def _table_of_contents(fd):
    """(where it begins, where it ends, what to add to all its offsets)."""
    size = os.fstat(fd).st_size
    tail = os.pread(fd, _END.size + 0xFFFF, max(0, size - _END.size - 0xFFFF))
    found = tail.rfind(b"PK\5\6", 0, len(tail) - _END.size + 4)
    if found < 0:
        raise Damaged("the end of the zip is missing")
    end = size - len(tail) + found
    length, start = _END.unpack_from(tail, found)[5:7]
    if os.pread(fd, 4, max(0, end - 20)) == b"PK\6\7":  # there is a longer form of it
        end -= 20 + _END64.size
        long = os.pread(fd, _END64.size, max(0, end))
        if len(long) < _END64.size or long[:4] != b"PK\6\6":
            raise Damaged("its table of contents is missing")
        length, start = _END64.unpack(long)[8:10]
    if length > end or start + length > end:
        raise Damaged("its table of contents is missing")
    return end - length, end, end - length - start


def _zip_entry(data, position, shift):
    if data[position:position + 4] != b"PK\1\2" or len(data) - position < _ENTRY.size:
        raise Damaged("its table of contents is damaged")
    (_, _, _, flags, method, _, _, crc, packed, size, n_name, n_extra, n_comment, _, _, mode, at) = _ENTRY.unpack_from(
        data, position)
    position += _ENTRY.size
    if position + n_name + n_extra + n_comment > len(data):
        raise Damaged("its table of contents ends too early")
    name, extra = data[position:position + n_name], data[position + n_name:position + n_name + n_extra]
    if 0xFFFFFFFF in (packed, size, at):
        size, packed, at = _long_values(extra, size, packed, at)
    return (flags, method, crc, packed, size, mode, at + shift, name), position + n_name + n_extra + n_comment


def _long_values(extra, *values):
    """The values of an entry; those that do not fit into 32 bits come from its extra field."""
    while len(extra) >= 4:
        kind, length = struct.unpack_from("<2H", extra)
        if kind == 1:
            longs = iter(struct.unpack_from(f"<{min(length, len(extra) - 4) // 8}Q", extra, 4))
            return [next(longs, value) if value == 0xFFFFFFFF else value for value in values]
        extra = extra[4 + length:]
    return values


class _Member:
    """The bytes of one member of a tar."""

    def __init__(self, stream, size):
        self._stream, self.left = stream, size

    def read(self, n):
        data = self._stream.read(min(n, self.left))
        if len(data) < min(n, self.left):
            raise Damaged("the tar ends too early")
        self.left -= len(data)
        return data


def is_tar(head):
    """True if a file that begins with `head` is a tar."""
    if len(head) < _BLOCK:
        return False
    try:
        tarfile.TarInfo.frombuf(head[:_BLOCK], "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


def tar_members(stream):
    """Yield (name, size, function that opens it for reading) for each file in a tar. Raises Damaged, OSError."""
    name, size = None, None  # from the headers before a member
    while True:
        head = stream.read(_BLOCK)
        if not head.strip(b"\0"):
            if len(head) < _BLOCK:
                raise Damaged("the end of the tar is missing")
            return
        try:
            info = tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape")
        except tarfile.HeaderError as e:
            raise Damaged(f"the tar is damaged: {e}") from None
        member = _Member(stream, info.size)
        if info.type in (tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE):
            if info.size > _NAME_LIMIT:
                raise Damaged("a file name in the tar is too long")
            text = member.read(info.size)
            if info.type == tarfile.GNUTYPE_LONGNAME:
                name = text.rstrip(b"\0").decode("utf-8", "surrogateescape")
            else:
                name, size = _extended(text, name, size)
        elif info.type == tarfile.GNUTYPE_SPARSE:
            raise Damaged("the tar has sparse files; unpack it yourself, then import the result")
        else:
            member.left = info.size if size is None else size
            length = member.left
            if info.isreg():
                yield name or info.name, length, lambda member=member: member
            name = size = None
            _skip(member, member.left)
            _skip(stream, -length % _BLOCK)
            continue
        _skip(member, member.left)
        _skip(stream, -info.size % _BLOCK)


def _extended(text, name, size):
    """(name, size) of the next member from a pax header; the given ones where the header does not have them."""
    found = re.search(rb"(?:^|\n)[0-9]+ path=([^\n]*)\n", text)
    name = found[1].decode("utf-8", "surrogateescape") if found else name
    found = re.search(rb"(?:^|\n)[0-9]+ size=([0-9]{1,18})\n", text)
    return name, int(found[1]) if found else size


def _skip(f, n):
    while n:
        block = f.read(min(n, 1 << 16))
        if not block:
            raise Damaged("the tar ends too early")
        n -= len(block)
