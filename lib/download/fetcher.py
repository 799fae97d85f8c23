"""Downloading games: what counts as a log, what a failure means, when to stop."""

import collections
import hashlib
import os
import time

from ..logs import logfile
from ..store import clock, files, identity, trash, workdir
from ..store.claims import kept
from . import stops, wanted
from .faults import Fault, ProxyFault, Refused

_DAY, _WEEK = 86400, 7 * 86400  # seconds


class Fetcher:
    """Downloads games one after another. tally: how many games had which outcome."""

    def __init__(self, session, work, manifest, max_new=None, retry=False, failed=lambda error: None):
        """max_new: stop after so many downloads, None for no limit; retry: all failed downloads are due; failed(error)
        is called for each failed game."""
        self.session, self.work, self.manifest = session, work, manifest
        self.max_new, self.retry, self._failed = max_new, retry, failed
        self.tally = collections.Counter()
        self._refused = []  # (gid, Fault) since the server last gave another answer

    def is_wanted(self, game):
        """True if this run is to download the game."""
        return wanted.is_wanted(self.work, game, self.manifest.latest.get(game), self.retry)

    def queued(self):
        """(first, last): the ids that wait for their download, before and after the new ones.

        They come from the manifest and from imported links. Those whose download failed before come last, so that games
        which the server always refuses do not hold up the others; and that which was tried last comes last of them, so
        that a run which the server refuses in the end does not begin with the same games as the one before.
        """
        latest = self.manifest.latest
        due = [game for game in latest if self.is_wanted(game)]
        return ([*(game for game in due if not self._failed_before(game)), *wanted.linked(self.work, latest)],
                sorted(filter(self._failed_before, due), key=lambda game: str(latest[game].get("ts"))))

    def run(self, ids):
        """Download those of `ids` that are wanted; yields each id as soon as its file is there.

        Raises Problem when the server refuses everything; the games that it refused last then stay as they were, unless
        they were refused before. Raises OSError, Busy, Interrupted.
        """
        for game in ids:
            if not self.is_wanted(game):
                self.tally["settled before"] += 1
                continue
            if self.max_new is not None and self.tally["downloaded"] + self.tally["duplicate"] >= self.max_new:
                self.tally["left for later"] += 1
                continue
            self.tally["asked for"] += 1
            try:
                data = self.session.persist(game, lambda game=game: self._ask(game))
            except Refused as e:
                self._refused.append((game, e.fault))
                self._put_off_refused()
                raise
            except Fault as e:
                self._refused.append((game, e))
                if e.kind == "passing":
                    self._settle_refused()
                continue
            self._settle_refused()
            if self._keep(game, data) == "downloaded":
                yield game
        self._settle_refused()

    def _ask(self, game):
        body = bytearray()
        self.session.get(f"/0/log/?{game}", lambda response: body.extend, logfile.LIMIT)
        if not body:
            raise Fault("passing", "empty body")
        if not logfile.is_whole(body):
            head = bytes(body[:200]).lstrip(b"\xef\xbb\xbf \t\r\n").lower()
            if head.startswith((b"<html", b"<!doctype")):
                raise Fault("passing", "HTML page instead of a log")
            raise Fault("passing", f"not a whole log: {len(body)} bytes without its beginning or its end")
        return bytes(body)

    def _settle_refused(self):
        """The server has answered, so it refused single games only: they have failed."""
        for game, fault in self._refused:
            if isinstance(fault, ProxyFault):
                self.tally["left for later"] += 1
                self.session.say(f"{game}: {fault}; left for the next run")
            else:
                self._fail(game, fault)
        self._refused.clear()

    def _put_off_refused(self):
        """The server refuses everything. Of the games that it refused last, put off those that had failed before, and
        those that it does not have and at which an earlier run stopped too; otherwise every later run would begin with
        them, be refused, and never get to the others. So a server that refuses all has only as many games put off, in
        every second run, as it may refuse in a row."""
        before, first = stops.games(self.work), set()
        for game, fault in self._refused:
            is_missing = fault.kind == "refused" and fault.status in (403, 404)
            if fault.kind == "refused" and (self._failed_before(game) or (is_missing and game in before)):
                self._fail(game, fault)
            elif is_missing:
                first.add(game)
        if first:  # the runs in between may have had other lists, or no network
            stops.note(self.work, first | set(filter(self.is_wanted, before)))
        self._refused.clear()

    def _failed_before(self, game):
        return wanted.has_failed(self.manifest.latest.get(game, {}))

    def _fail(self, game, fault):
        # a 404 will last, for weeks or for good; anything else may work in the next run, or else the next day
        due = time.time()
        if fault.kind == "refused":
            due += _WEEK if fault.status in (403, 404) else _DAY * self._failed_before(game)
        self._append(game, {"status": "failed", "error": str(fault), "stage": "download",
                            "retry_at": clock.utc(due)})
        self.session.say(f"{game}: {fault}")
        self._failed(str(fault))

    def _append(self, game, event):
        with self.manifest.locked() as append:
            append([{"gid": game, **event, **kept(self.manifest.latest.get(game))}])
        self.tally[event["status"]] += 1

    def _keep(self, game, data):
        """Put a log in its place and append its event; returns the status. A different file there goes to the trash."""
        sha256 = hashlib.sha256(data).hexdigest()
        path = workdir.xml(self.work, game)
        with self.manifest.locked() as append:
            identity.must_be_here(self.work, "xml")
            record, there = self.manifest.latest.get(game) or {}, os.path.lexists(path)
            same = there and self._has(game, sha256)
            if same and record.get("sha256") == sha256 and record.get("status") in ("downloaded", "encoded"):
                self.tally["settled before"] += 1  # somebody put it there in the meantime
                return "settled before"
            twin = logfile.find_twin(self.work, self.manifest, game, sha256)
            if twin:
                event = {"gid": game, "status": "duplicate", "sha256": sha256, "alias_of": twin}
            else:
                if there and not same:
                    trash.put(self.work, path)
                files.write(path, data)
                event = {"gid": game, "status": "downloaded", "sha256": sha256, "size": len(data),
                         **kept(record)}
            append([event])
            if twin and there:
                trash.put(self.work, path)
        self.tally[event["status"]] += 1
        return event["status"]

    def _has(self, game, sha256):
        try:
            return logfile.read(self.work, game)[1] == sha256
        except (FileNotFoundError, files.Unreadable):
            return False
