"""The manifest: one append-only log of JSON lines, the only state that decides anything.

The most recent line of each gid wins. A record without `sha256` keeps the last one known for its id. Lines that are no
records are counted, never fatal. All appends and all decisions that depend on the manifest are made under its flock.
"""

import contextlib
import datetime
import fcntl
import json
import os

from lib import files, gid, workdir

_BLOCK = 1 << 24
_TEXTS = "status", "sha256", "shard"  # decisions are made by these: a line where they are no text is no record


def now():
    """This moment as the manifest writes it: UTC, whole seconds, Z."""
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse(line):
    """The record in a line of bytes, None if the line is none."""
    try:
        record = json.loads(line.decode())
        if gid.is_gid(record["gid"]) and all(isinstance(record.get(key), str | None) for key in _TEXTS):
            return record
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    return None


def encode(records):
    """The bytes of `records` as lines; `ts` is added where it is missing."""
    return b"".join(  # what UTF-8 has no bytes for, half of a surrogate pair, JSON can still escape
        json.dumps({"ts": now(), **record}, ensure_ascii=False).encode(errors="backslashreplace") + b"\n"
        for record in records)


class Manifest:
    """The manifest of a work directory, as far as it has been read.

    latest: gid -> its current record, in the order in which the ids first appeared
    bad_lines: how many lines are no records; first_bad: the number of the first of them, from 1
    claims: shard -> {gid: rows} of all `encoded` events that ever named the shard
    owners: sha256 -> gid of the game that was downloaded last, or first recorded, with these bytes
    """

    def __init__(self, work):
        """Read the manifest of `work`. Raises OSError."""
        self.path = workdir.path(work, workdir.MANIFEST)
        self._forget()
        self.refresh()

    def refresh(self):
        """Read what others have appended. Raises OSError."""
        with contextlib.suppress(FileNotFoundError), open(self.path, "rb") as f:
            fcntl.flock(f, fcntl.LOCK_SH)
            info = os.fstat(f.fileno())
            fcntl.flock(f, fcntl.LOCK_UN)  # what is before its end never changes: no need to keep writers waiting
            self._catch_up(f, info)

    def _catch_up(self, f, info):
        if self._inode is not None and (info.st_ino != self._inode or info.st_size < self._offset):
            self._forget()  # another file stands here now: nothing that was read holds
        self._read(f, info.st_size)

    def _forget(self):
        self.latest, self.claims, self.owners = {}, {}, {}
        self.bad_lines, self.first_bad, self._lines = 0, None, 0
        self._offset, self._inode, self._torn = 0, None, False

    def _read(self, f, end):
        """Take in what stands between the last read and `end`, whole lines or a tail without a newline."""
        self._inode = os.fstat(f.fileno()).st_ino
        f.seek(self._offset)
        rest = b""
        while self._offset < end and (block := f.read(min(_BLOCK, end - self._offset))):
            self._offset += len(block)
            *lines, rest = (rest + block).split(b"\n")
            if self._torn and lines:
                del lines[0]  # what ends here was taken when it was the tail
            self._torn = False
            for line in lines:
                self._take(line)
        if rest:
            self._take(rest)
            self._torn = True

    def _take(self, line):
        self._lines += 1
        if not line:
            return
        record = parse(line)
        if record is None:
            self.bad_lines += 1
            self.first_bad = self.first_bad or self._lines
            return
        game = record["gid"]
        before = self.latest.get(game)
        if before and before.get("sha256") and record.get("sha256") in (None, before["sha256"]):
            record["sha256"] = before["sha256"]
            if "size" in before:
                record.setdefault("size", before["size"])
        status, sha256 = record.get("status"), record.get("sha256")
        if status == "encoded" and record.get("shard"):
            self.claims.setdefault(record["shard"], {})[game] = record.get("n_samples")
        for name in record.get("dropped") or ():
            self.claims.setdefault(name, {})  # its number stays used
        if status == "downloaded":
            self.owners[sha256] = game
        elif status != "duplicate":
            self.owners.setdefault(sha256, game)
        self.latest[game] = record

    @contextlib.contextmanager
    def locked(self):
        """Hold the manifest's lock, up to date with what others appended; yields a function that appends records.

        Raises OSError, with the manifest as it was, when an append cannot be written in full.
        """
        fd = self._open_locked()
        try:
            with open(fd, "rb", closefd=False) as f:
                self._catch_up(f, os.fstat(fd))
            yield lambda records: self._append(fd, records)
        finally:
            os.close(fd)

    def _open_locked(self):
        while True:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                if os.path.samestat(os.fstat(fd), os.stat(self.path)):
                    return fd
            except FileNotFoundError:
                pass  # replaced while we waited for the lock: open what stands there now
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)

    def _append(self, fd, records):
        if not records:
            return
        size = os.fstat(fd).st_size
        torn = size and os.pread(fd, 1, size - 1) != b"\n"
        data = b"\n" * bool(torn) + encode(records)
        try:
            with files.naming(self.path):
                written = 0
                while written < len(data):
                    written += os.write(fd, data[written:])
                os.fsync(fd)
        except BaseException:
            os.ftruncate(fd, size)
            raise
        if not size:
            files.sync_dir(os.path.dirname(self.path))
        with open(fd, "rb", closefd=False) as f:
            self._read(f, size + len(data))

    def append(self, records):
        """Append `records` in one write; `ts` is added. Raises OSError with the manifest as it was."""
        with self.locked() as append:
            append(records)
