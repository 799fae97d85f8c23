"""Encoding a stream of games into shards: each game all or nothing, each id reported once its rows are durable."""

import collections
import contextlib
import math

from ..logs import adopt
from ..rows import encoder
from ..rows.workers import Workers
from ..store import identity
from ..store.errors import Interrupted
from . import commit, index, layouts, pace, writing
from .due import Due


class Batch:
    """What one encoding process does. tally: how many games went which way, for the closing line."""

    def __init__(self, work, manifest, shard_rows, jobs=1, deep=False, layout="dense",
                 waiting=contextlib.nullcontext, say=None, only=None, judge=1, outdated=False):
        """For the work directory and its Manifest; a shard is closed before it would exceed `shard_rows` rows.

        jobs, judge: as of lib.rows.workers; layout: of new shards, a key of LAYOUTS; waiting(): a context in which a
        signal may raise Interrupted; say(text): tells the user of each game that fails; only: the ids that may come, if
        that is known, so that no other game's shard need be looked at.

        What a killed run left unclaimed is claimed at once, and so is what a game still has rows of. Games whose shard
        is gone or damaged are due again; deep: damage is looked for in every byte; outdated: so are those whose rows
        an older encoder made. Raises OSError, Problem for a shard of another version.
        """
        self.work, self.manifest, self.shard_rows, self.layout = work, manifest, shard_rows, layout
        self._waiting, self._say = waiting, say
        layouts.require(layout)
        self.tally = collections.Counter()
        self._writer, self._spent = None, pace.Spent()
        self._workers, self._in_hand = Workers(work, jobs, judge), set()
        self._due = Due(work, manifest, encoder.ENCODER, deep, only, outdated, say or (lambda text: None))
        if self._due.unreadable:
            self.tally["unreadable"] = self._due.unreadable
        self._rescued = commit.finish_interrupted(work, manifest, encoder.ENCODER)
        self._renewed = self._renew([game for game, record in manifest.latest.items() if "claim" in record])
        self.queued = self._due.queued

    def _renew(self, games):
        return commit.renew(self.work, self.manifest, games, self._due.gone, self._due.outdated) if games else []

    def due(self, ids):
        """Yield those of `ids` that `run` would encode; encodes nothing."""
        self._count(self._rescued)
        self._count_renewed(self._renewed)
        for game in ids:
            if self._is_ours(game):
                self._in_hand.add(game)
                self.tally["listed"] += 1
                yield game

    def run(self, ids, source=None):
        """Encode `ids` as they come; yields each id once its shard is in place and its event is appended.

        An id of None means that none is there just now: the file `source` can be read when there is. A game that cannot
        be encoded is `failed`, one whose bytes are not the recorded ones is `corrupt` unless it was still being copied
        when it was adopted, one whose file cannot be read is counted as unreadable and stays as it is. Raises OSError,
        Problem; what was encoded but not yet in place is dropped then, and is encoded again by the next run.
        """
        index.keep_up(self.work, self.manifest, math.inf)  # a killed run may have left none
        try:
            yield from self._count(self._rescued)
            yield from self._count_renewed(self._renewed)
            try:
                for game in ids:
                    if game is None:
                        self._workers.wait([source], self._waiting)
                    elif self._is_ours(game):
                        if "claim" in self.manifest.latest[game] and self._renew([game]):
                            yield from self._count_renewed([game])
                            continue
                        self._in_hand.add(game)
                        self._workers.put(game, self.manifest.latest[game].get("sha256"))
                    yield from self._store_done()
                    while self._workers.is_full() and self._workers.is_working():
                        self._workers.wait()
                        yield from self._store_done()
            except Interrupted:
                pass  # nothing is half done while waiting: finish what is in hand
            while self._workers.is_working():
                self._workers.wait()
                yield from self._store_done()
            yield from self.close()
        finally:
            self._workers.close()
            if self._writer:
                self._writer.discard()
                self._writer = None

    def _is_ours(self, game):
        """True if a game is still to be encoded, and not in hand already."""
        if game in self._in_hand:
            return False  # queued, and now on stdin too: its event comes with the shard's
        if not self._due.is_due(self.manifest.latest.get(game)):
            with self.manifest.locked():  # others may have appended it since we read
                pass
        record = self.manifest.latest.get(game)
        if self._due.is_due(record):
            return True
        self.tally["not in the manifest" if record is None else "settled before"] += 1
        return False

    def _store_done(self):
        """Put away what the workers have answered; yields the ids of shards that were closed."""
        for game, sha256, kind, what in self._workers.done():
            if kind == "encoded":
                yield from self._store(game, sha256, what)
                continue
            self._in_hand.discard(game)
            if kind == "error":
                raise what
            record = self.manifest.latest.get(game, {})
            if kind == "unreadable":
                self.tally[kind] += 1
                if self._say:
                    self._say(f"{game}: its file cannot be read ({what}): left as it is")
            elif kind in ("failed", "died"):
                # who died may have been killed for another's fault: the next run tries it once more
                again = kind == "died" and not record.get("error", "").startswith("the encoder died")
                self._settle({"gid": game, "status": "failed", "error": what, "stage": "encode",
                              "encoder": "" if again else encoder.ENCODER["version"], "sha256": sha256}, sha256)
            elif kind == "corrupt":
                if not self._take_again(game):
                    self._settle({"gid": game, "status": "corrupt", "found": what}, sha256)
            else:
                identity.must_be_here(self.work, "xml")  # or nothing is known of the file
                self.tally["file missing"] += 1

    def _take_again(self, game):
        """Take in a log that was still being copied when it was adopted, and encode it if it is whole by now; returns
        False if it was not, and so is damaged."""
        if adopt.take_in(self.work, self.manifest, game) == "left":
            return False
        record = self.manifest.latest[game]
        if record.get("status") == "downloaded" and record.get("whole", True):
            self._in_hand.add(game)
            self._workers.put(game, record["sha256"])
        else:
            self.tally["still being copied"] += 1
        return True

    def _settle(self, event, sha256):
        """Append `event` if its game is still due, with the bytes that the event is about."""
        with self.manifest.locked() as append:
            record = self.manifest.latest.get(event["gid"])
            if self._due.is_due(record) and record.get("sha256") == sha256:
                append([{**event, **self._due.kept(record)}])
                self.tally[event["status"]] += 1
                if self._say:
                    self._say(f"{event['gid']}: {event.get('error', 'its file is not what was downloaded: left out')}")

    def _store(self, game, sha256, folded):
        n = len(folded["labels"])
        if self._writer and self._writer.n_rows + n > self.shard_rows:
            yield from self.close()
        if not self._writer:
            self._writer = writing.Writer(self.work, self.layout)
        self._spent.encode += folded.pop("seconds", 0)
        with self._spent.writing():
            self._writer.add(game, sha256, folded, folded.pop("final", None))
        if self._writer.n_rows >= self.shard_rows:
            yield from self.close()

    def close(self):
        """Put the shard in the making in its place; yields the ids that it holds."""
        if self._writer:
            self._in_hand.difference_update(g["gid"] for g in self._writer.games)
            self._spent.games += len(self._writer.games)
            with self._spent.writing():
                done = commit.publish(self._writer, self.manifest, self.work, encoder.ENCODER, self._due.gone,
                                      self._due.outdated)
            self._writer = None
            self._spent.note(self.work)
            index.keep_up(self.work, self.manifest)
            yield from self._count(done)

    def _count(self, ids):
        self.tally["encoded"] += len(ids)
        self.tally["rows"] += sum(self.manifest.latest[game]["n_samples"] for game in ids)
        return ids

    def _count_renewed(self, ids):
        if ids:
            self.tally["renewed"] += len(ids)
        return ids
