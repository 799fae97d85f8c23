"""Importing: logs from anywhere, with their ids, become files in xml/ and events of the manifest, many at a time.

A log is synced to disk before its event is written. Threads sync the logs of one batch while the next batch is read, so
that the script waits for the disk once a batch and not once a log.
"""

import collections
import concurrent.futures
import contextlib
import hashlib
import os
import re
import typing

from ..store import files, gid, wording, workdir
from . import logfile, place

_MANY = 1000  # logs in a batch
_MUCH = 1 << 25  # bytes in a batch
_SYNCERS = 4  # threads
_SOURCE_LIMIT = 500  # characters
_NO_DATE = "00010101"  # readers of the cache can still take it for a date
_LINKS_LIMIT = 1_000_000  # ids that are kept in memory
_INDEX = re.compile(r"sc[a-f][0-9]{8,10}\.[a-z.]+")  # Tenhou's own lists
_HTML = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype\s+html|html)\b", re.I)
_TILE = re.compile(rb"<[D-GT-W][0-9]{1,3}\b")
_GO = re.compile(rb'<GO\b[^>]*?\btype="([0-9]{1,5})"(?:[^>]*?\blobby="([0-9]{1,5})")?')


class _Log(typing.NamedTuple):
    """A log to be imported. written: a Future; its result is the name of the file with the log, synced to disk."""

    game: str
    data: bytes
    sha256: str
    where: str
    written: concurrent.futures.Future


class Import:
    """Imports logs. tally: how many had which outcome; links: the ids that lists named."""

    def __init__(self, work, manifest, tell, unnamed=False):
        """tell(kind, where, why) is called for each log that is not imported; unnamed: a log without an id gets one."""
        self._work, self._manifest, self._tell, self._unnamed = work, manifest, tell, unnamed
        self._syncers = concurrent.futures.ThreadPoolExecutor(_SYNCERS)
        self._now, self._before, self._size = [], [], 0  # batches: the one being filled, the one being synced
        self._waiting = {}  # gid -> sha256, sha256 -> gid, of both
        self._nameless, self._held = {}, 0  # sha256 -> thing: the same log may yet come with its id
        self.tally, self.links = collections.Counter(), set()

    def run(self, things):
        """Import each of the `things`, as lib.logs.sources.Reader yields them; yields each id once its log is durable.
        Raises OSError."""
        try:
            for thing in things:
                yield from self._take(thing)
            yield from self._take_nameless()
            yield from self._settle()
        finally:
            self._syncers.shutdown()
            for log in self._before + self._now:
                with contextlib.suppress(OSError):
                    os.unlink(log.written.result())

    def _take(self, thing):
        if not logfile.begins(thing.data):
            self._take_links(thing)
            return
        if not logfile.is_whole(thing.data):
            self._tell("broken", thing.where, "an incomplete log: its beginning or its end is missing")
            return
        sha256 = hashlib.sha256(thing.data).hexdigest()
        game = gid.of_name(thing.name) or self._owner(sha256)
        if game:
            yield from self._take_as(game, thing, sha256)
        elif sha256 not in self._nameless:
            self._nameless[sha256] = thing if self._unnamed else thing._replace(data=b"")
            self._held += len(self._nameless[sha256].data)
            if self._held > _MUCH:
                yield from self._take_nameless()

    def _owner(self, sha256):
        return self._manifest.owners.get(sha256) or self._waiting.get(sha256)

    def _take_nameless(self):
        for sha256, thing in self._nameless.items():
            if self._owner(sha256):
                self.tally["known"] += 1
            elif self._unnamed:
                yield from self._take_as(_made_id(thing.data, sha256), thing, sha256)
            else:
                self._tell("unnamed", thing.where, "a log without a game id in its name; --unnamed gives it one")
        self._nameless, self._held = {}, 0

    def _take_as(self, game, thing, sha256):
        if self._waiting.get(game) == sha256 or self._is_here(game, sha256, len(thing.data)):
            self.tally["known"] += 1
        else:
            if game in self._waiting or sha256 in self._waiting:
                yield from self._settle()  # the decision about this log depends on them
            yield from self._add(game, thing, sha256)

    def _take_links(self, thing):
        if _INDEX.fullmatch(os.path.basename(thing.name)):
            self._tell("other", thing.where, "one of Tenhou's own lists: put the year's zip into raw/ and set YEAR")
            return
        text = thing.data
        if text[:2] in (b"\xff\xfe", b"\xfe\xff"):  # as some editors save it
            text = text.decode("utf-16", "replace").encode()
        found = () if b"\0" in text else set(gid.find(text.decode("utf-8", "replace")))
        if not found and _HTML.match(text):
            self._tell("html", thing.where, "an HTML page, not a log")
        elif not found:
            self._tell("other", thing.where, "not a log, nor a list of game ids" if text else "an empty file")
        elif len(self.links) + len(found) > _LINKS_LIMIT:
            self._tell("other", thing.where, "a list with too many ids to import; use make run IDS= with this file")
        else:
            self._tell("list", thing.where, f"a list that names {wording.count(len(found), 'game')}")
            self.links |= found

    def _is_here(self, game, sha256, size):
        """True if the manifest has a game with these bytes, and its file has the right size."""
        record = self._manifest.latest.get(game) or {}
        if record.get("sha256") != sha256 or record.get("status") == "corrupt":
            return False
        try:
            return record["status"] == "duplicate" or os.stat(workdir.xml(self._work, game)).st_size == size
        except FileNotFoundError:
            return False

    def _add(self, game, thing, sha256):
        written = self._syncers.submit(files.write_aside, workdir.xml(self._work, game), thing.data)
        self._now.append(_Log(game, thing.data, sha256, thing.where, written))
        self._size += len(thing.data)
        self._waiting |= {game: sha256, sha256: game}
        if len(self._now) >= _MANY or self._size >= _MUCH:
            yield from self._commit_before()
            self._before, self._now, self._size = self._now, [], 0

    def _settle(self):
        yield from self._commit_before()
        self._before, self._now, self._size = self._now, [], 0
        yield from self._commit_before()

    def _commit_before(self):
        """Rename the files of the batch that is being synced to their final names, and append its events."""
        for log in self._before:
            log.written.result()
        with self._manifest.locked() as append:
            events = [event for log in self._before if (event := self._place(log))]
            if self._before:
                files.sync_dir(os.path.dirname(workdir.xml(self._work, self._before[0].game)))
            append(events)
        for log in self._before:
            self._waiting.pop(log.game, None)
            self._waiting.pop(log.sha256, None)
        self._before = []
        yield from (event["gid"] for event in events if event["status"] == "downloaded")

    def _place(self, log):
        """Put a log in its place if it belongs there; returns its event, or None. For use under the lock."""
        try:
            outcome, event = place.put(self._work, self._manifest, log.game, log.data, log.sha256,
                                       log.written.result())
        except files.Unreadable as e:
            self._tell("another", log.where, f"{e.filename}: {e.strerror}")
            return None
        if outcome == "another":
            self._tell("another", log.where, f"another log of {log.game} is here already; the old one stays")
        else:
            self.tally[outcome] += 1
        return event and {**event, "source": log.where[-_SOURCE_LIMIT:]}


def note_links(work, manifest, links):
    """Add those ids of `links` that have no record to the work directory's list, which the next run downloads; returns
    how many they are. Raises OSError."""
    with manifest.locked():
        new = {game for game in links if game not in manifest.latest}
        path = workdir.path(work, workdir.LINKS)
        try:
            with open(path, encoding="ascii", errors="replace") as f:
                old = set(filter(gid.is_gid, f.read().split()))
        except FileNotFoundError:
            old = set()
        if not new <= old:
            files.write(path, "".join(f"{game}\n" for game in sorted(old | new)).encode())
    return len(new)


def _made_id(data, sha256):
    """An id for a log that has none: a date that no game has, because a log does not tell when it was played; the log's
    table type and lobby; and the beginning of a hash of all that was drawn and discarded, or of the log if nothing was:
    so copies of one game that differ in line ends, names or the like get the same id."""
    found = _GO.search(data)
    if tiles := _TILE.findall(data):
        sha256 = hashlib.sha256(b"".join(tiles)).hexdigest()
    kind, lobby = (int(found[1]), int(found[2] or 0)) if found else (0, 0)
    return f"{_NO_DATE}gm-{kind & 0xFFFF:04x}-{lobby:04d}-{sha256[:8]}"
