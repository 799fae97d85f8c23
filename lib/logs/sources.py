"""The files in the folders, archives and databases that a user names, with their bytes.

The kind of a file is known from its content, never from its suffix. Links are not followed, and nothing is changed.
"""

import contextlib
import io
import os
import shutil
import stat
import typing

from ..store import files, wording, workdir
from . import archives, databases, logfile
from .streams import Budget, Damaged, Stream, damages, unpacked

_ZIP = b"PK\3\4", b"PK\5\6"
_DEPTH = 5  # archives in archives
_SPOOL_RATIO = 4  # smaller, because a zip or database inside an archive is packed already
_BLOCK = 1 << 20


class Found(typing.NamedTuple):
    """A file, or a part of one that is too long for a log. where: a text for people; name: its path in the archive."""

    where: str
    name: str
    data: bytes


class Reader:
    """Reads everything below some paths. tell(kind, where, why) is called for what is skipped: kind is "damaged" if it
    should have been read but could not be, "other" if it is nothing that we import."""

    def __init__(self, work, tell):
        """work: the work directory, for temporary files; it is not read itself."""
        self._work, self._tell, self._scratch = work, tell, files.temporary_path(workdir.path(work, "unpacked"))

    def read(self, paths):
        """Yield a Found for each file. Raises OSError for errors that are not the fault of one file."""
        os.mkdir(self._scratch)
        try:
            for path in paths:
                yield from self._walk(path) if os.path.isdir(path) else self._file(path)
        finally:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _walk(self, top):
        folders = [top]
        while folders:
            folder = folders.pop()
            try:
                if os.path.samefile(folder, self._work):
                    self._tell("other", folder, "the work directory itself")
                    continue
                with os.scandir(folder) as entries:
                    entries = sorted(entries, key=lambda entry: entry.name)
            except OSError as e:
                self._tell("damaged", folder, e.strerror)
                continue
            ours = any(entry.name == workdir.MANIFEST for entry in entries)  # of another work directory only its logs
            entries = [entry for entry in entries if entry.name[:1] != "." and (not ours or entry.name == "xml")]
            folders += [entry.path for entry in reversed(entries) if entry.is_dir(follow_symlinks=False)]
            for entry in entries:
                if entry.is_file(follow_symlinks=False):
                    yield from self._file(entry.path)
                elif not entry.is_dir(follow_symlinks=False):
                    self._tell("other", entry.path, "a link or a special file, not a regular one")

    def _file(self, path):
        try:
            with files.reading(path), open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0) as f:
                info = os.fstat(f.fileno())
                if not stat.S_ISREG(info.st_mode):
                    self._tell("other", path, "not a regular file")
                    return
                self._budget = Budget(info.st_size)
                self._to_spool = Budget(info.st_size, _SPOOL_RATIO)
                yield from self._thing(path, os.path.basename(path), Stream(f), 0, path)
        except (files.Unreadable, FileNotFoundError) as e:
            if e.filename != path:
                raise
            self._tell("damaged", path, e.strerror)

    def _thing(self, where, name, stream, depth, path=None):
        """Yield what is in a stream. path: that of its file, if it is a file of its own."""
        try:
            if depth > _DEPTH:
                raise Damaged(f"archives nested more than {_DEPTH} deep; unpack it yourself, then import the result")
            if stream.head.startswith(_ZIP):
                with self._as_file(stream, path) as path, open(path, "rb") as f:
                    yield from self._members(archives.zip_members(f.fileno()), where, depth, self._budget)
            elif stream.head.startswith(databases.MAGIC):
                yield from self._rows(where, stream, depth, path)
            elif packed := unpacked(stream):
                yield from self._thing(where, name, Stream(packed, self._budget), depth + 1)
            elif archives.is_tar(stream.head):
                yield from self._members(archives.tar_members(stream), where, depth)
            else:
                yield from self._plain(where, name, stream)
        except Exception as e:
            if damages(e) is None:
                raise
            self._tell("damaged", where, f"damaged or incomplete: {damages(e)}")

    def _members(self, members, where, depth, budget=None):
        for name, size, opened in members:
            inside = f"{where}: {name}"
            if not size:
                self._tell("other", inside, "empty")
                continue
            try:
                stream = Stream(opened(), budget)
            except Exception as e:
                if damages(e) is None or (budget and budget.left < 0):
                    raise
                self._tell("damaged", inside, f"damaged or incomplete: {damages(e)}")
                continue
            yield from self._thing(inside, name, stream, depth + 1)

    def _rows(self, where, stream, depth, path):
        beside = databases.has_news_beside(path) if path else []
        with self._as_file(stream, None if beside else path) as path:
            for other in beside:
                shutil.copyfile(other, f"{path}{other[other.rindex('-'):]}")
            empty = 0
            for raw, data in databases.logs(path, logfile.LIMIT, write=bool(beside)):
                self._budget.spend(64)  # even an empty row takes time
                if data is None:
                    empty += 1
                    continue
                name = raw.decode("utf-8", "replace")
                yield from self._thing(f"{where}: {name}", name, Stream(io.BytesIO(data)), depth + 1)
        if empty:
            self._tell("empty", where, f"{wording.count(empty, 'row')} without a log")

    @contextlib.contextmanager
    def _as_file(self, stream, path):
        """The path of a file with the bytes of the stream, for the block: `path`, or a copy if that is None."""
        if path:
            yield path
            return
        with contextlib.ExitStack() as after:
            path = os.path.join(self._scratch, str(len(os.listdir(self._scratch))))
            for name in (path, f"{path}-wal", f"{path}-shm", f"{path}-journal"):
                after.callback(lambda name=name: os.path.exists(name) and os.unlink(name))
            with files.naming(path), open(path, "wb") as f:
                while block := stream.read(_BLOCK):
                    self._to_spool.spend(len(block))
                    f.write(block)
            yield path

    def _plain(self, where, name, stream):
        data = stream.read(logfile.LIMIT + 1)
        if len(data) <= logfile.LIMIT:
            yield Found(where, name, data)
        elif b"\0" in data:
            self._tell("other", where, "too long to be a log")
        else:  # a long list
            while block := stream.read(_BLOCK):
                end = data.rfind(b"\n") + 1 or len(data)
                yield Found(where, name, data[:end])
                data = data[end:] + block
            yield Found(where, name, data)
