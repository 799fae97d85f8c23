"""The manifest: one append-only log of JSON lines, the only state that decides anything.

The most recent line of each gid wins. A record without `sha256` keeps the last one known for its id. Lines that are not
records are counted and skipped. All appends, and all decisions that depend on the manifest, are made under its flock.
"""

import contextlib
import fcntl
import json
import os

from .store import clock, files, gid, identity, snapshot

FILE = "manifest.jsonl"
_BLOCK = 1 << 24  # bytes read at a time
_TOGETHER = 500  # lines parsed at a time
_TAIL = 64  # the last bytes that were read; they must still be there before we read on
TEXT = (str, type(None))


def _parse(line):
    """The JSON object in a line of bytes, None if there is none."""
    try:
        thing = json.loads(line.decode())
    except (ValueError, RecursionError):
        return None
    return thing if isinstance(thing, dict) else None


def _parse_many(lines):
    """`_parse` of each of the lines, several at once: that takes half the time."""
    try:
        # each line must begin and end an object, and no object may end inside a line: otherwise two torn lines could
        # join to one object while another line holds two, and the number of objects would still be right
        text, n = b",\n".join(lines), len(lines)
        if text[:1] == b"{" and text[-1:] == b"}" and text.count(b"},\n{") == n - 1 and text.count(b"}") == n:
            things = json.loads((b"[" + text + b"]").decode())
            if len(things) == n:
                return things
    except (ValueError, RecursionError):
        pass
    return map(_parse, lines)


def _own(owners, record):
    status, sha256 = record.get("status"), record.get("sha256")
    if status == "downloaded" or (status != "duplicate" and sha256 not in owners):
        owners[sha256] = record["gid"]


def encode(records):
    """The bytes of `records` as lines; `ts` is added where it is missing."""
    return b"".join(  # JSON can escape half of a surrogate pair, for which UTF-8 has no bytes
        json.dumps({"ts": clock.now(), **record}, ensure_ascii=False).encode(errors="backslashreplace") + b"\n"
        for record in records)


class Manifest:
    """The manifest of a work directory, as far as it has been read.

    latest: gid -> its current record, in the order in which the ids first appeared
    bad: the numbers, from 1, of the lines that are not records
    claims: shard -> {gid: rows} of all `encoded` events that ever named the shard
    """

    def __init__(self, work):
        """Read the manifest of `work`. Raises OSError, Problem if there is no such work directory."""
        identity.must_exist(work)
        self.path = os.path.join(work, FILE)
        self._forget()
        self.refresh()

    @property
    def owners(self):
        """sha256 -> gid of the game with these bytes: the one downloaded last, or else the one recorded first."""
        if self._owners is None:
            self._owners = {}
            for record in self.latest.values():
                _own(self._owners, record)
        return self._owners

    def refresh(self):
        """Read what others have appended. Raises OSError."""
        with contextlib.suppress(FileNotFoundError), open(self.path, "rb") as f:
            fcntl.flock(f, fcntl.LOCK_SH)
            info = os.fstat(f.fileno())
            fcntl.flock(f, fcntl.LOCK_UN)  # the part before its end never changes, so writers need not wait for us
            self._catch_up(f, info)

    def _catch_up(self, f, info):
        tail = os.pread(f.fileno(), len(self._tail), self._offset - len(self._tail))
        if (info.st_dev, info.st_ino) != self._file or info.st_size < self._offset or tail != self._tail:
            self._forget()  # there is another file now: forget what was read
        self._read(f, info.st_size)

    def _forget(self):
        self.latest, self.claims, self._owners = {}, {}, None
        self.bad, self._lines = [], 0
        self._offset, self._torn = 0, False
        self._file, self._tail = None, b""  # which file was read, and the last bytes that were read
        self._proof, self._kept = None, 0  # a hash of all bytes read, None if there is none; how many a snapshot covers

    def _read(self, f, end):
        """Read from where the last read stopped to `end`: whole lines, and perhaps a last one without a newline."""
        info = os.fstat(f.fileno())
        self._file = info.st_dev, info.st_ino
        if not self._offset and end >= snapshot.LARGE:
            self._resume(f, end)
        f.seek(self._offset)
        rest = b""
        while self._offset < end and (block := f.read(min(_BLOCK, end - self._offset))):
            self._offset += len(block)
            if self._proof:
                self._proof.update(block)
            *lines, rest = (rest + block).split(b"\n")
            if self._torn and lines:
                del lines[0]  # this is the end of a line that was taken before, as the tail
            self._torn = False
            self._take(lines)
        if rest:
            self._take([rest])
            self._torn, self._proof = True, None  # another program may still change this line: no snapshot of it
        length = min(_TAIL, self._offset)
        self._tail = os.pread(f.fileno(), length, self._offset - length)

    def _resume(self, f, end):
        """Begin where a snapshot ends, if there is one of this very file."""
        self._proof, self._offset, state = snapshot.load(self.path, f, end)
        if state:
            self._lines, self.bad, self.latest, self.claims = state
            self._kept, self._owners = self._offset, None

    def save_snapshot(self):
        """Save what was read for the next script, if reading it was much work. Raises OSError."""
        if self._proof and self._offset - self._kept >= snapshot.NEWS:
            with contextlib.suppress(ValueError):  # nested too deep for marshal
                snapshot.save(self.path, self._proof, self._offset,
                              (self._lines, self.bad, self.latest, self.claims))
                self._kept = self._offset

    def _take(self, lines):
        put, bad, number = self._put, self.bad, self._lines
        for start in range(0, len(lines), _TOGETHER):
            some = lines[start:start + _TOGETHER]
            for line, record in zip(some, _parse_many(some), strict=True):
                number += 1
                if not (record and put(record, line)) and line:
                    bad.append(number)
        self._lines = number

    def _put(self, record, line):
        """Make a record the current one of its game; returns False if it is not a record. Called for each line, so
        fast."""
        get = record.get
        game, status, sha256, shard = get("gid"), get("status"), get("sha256"), get("shard")
        if not (type(game) is str and type(status) in TEXT and type(sha256) in TEXT and type(shard) in TEXT):
            return False  # decisions depend on these fields
        claim = record.get("claim")
        if claim is not None:
            if type(claim) is not dict or type(claim.get("shard")) is not str:
                return False
            self.claims.setdefault(claim["shard"], {}).setdefault(game, claim.get("n_samples"))
        before = self.latest.get(game)
        if before is None:
            if not gid.is_gid(game):
                return False
        else:
            known = before.get("sha256")
            if known is not None:
                if sha256 is None:
                    record["sha256"] = sha256 = known
                if sha256 == known and "size" in before and "size" not in record:
                    record["size"] = before["size"]
        if status == "encoded" and shard:
            if shard not in self.claims:
                self.claims[shard] = {}
            self.claims[shard][game] = get("n_samples")
        if self._owners is not None:
            _own(self._owners, record)
        if "dropped" in record and type(record["dropped"]) is list:  # shards without an event: their numbers stay used
            self.claims |= {str(name): {} for name in record["dropped"] if str(name) not in self.claims}
        self.latest[game] = record
        return True

    @contextlib.contextmanager
    def locked(self):
        """Hold the manifest's lock, after reading what others appended; yields a function that appends records.

        Raises OSError if an append cannot be written in full; the manifest is then as it was.
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
                pass  # another file took its place while we waited for the lock: open that
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
                files.sync(fd)
        except BaseException:
            os.ftruncate(fd, size)
            raise
        if not size:
            files.sync_dir(os.path.dirname(self.path))
        with open(fd, "rb", closefd=False) as f:
            self._read(f, size + len(data))

    def append(self, records):
        """Append `records` in one write; `ts` is added. Raises OSError; the manifest is then as it was."""
        with self.locked() as append:
            append(records)
