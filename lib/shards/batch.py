"""Encoding a stream of games into shards. A game gets all its rows or none; its id is given out once they are on disk.
"""

import collections
import contextlib
import math

from ..logs import adopt
from ..rows import encoder
from ..rows.workers import Workers
from ..store import identity, wording, workdir
from ..store.errors import Interrupted
from . import commit, fate, index, layouts, pace, writing
from .due import Due

_NAMED = 20  # games that fail and are named; all others are counted
_SETTLED = 5  # ids with nothing to do that are told why


class Batch:
    """What one encoding process does. tally: how many games were encoded, failed and so on, for the closing line."""

    def __init__(self, work, manifest, shard_rows, jobs=1, deep=False, layout="dense",
                 waiting=contextlib.nullcontext, say=None, only=None, judge=1, outdated=False, again=False,
                 tell_settled=False, failed=None):
        """For the work directory and its Manifest. A shard is closed before it would have more than `shard_rows` rows.

        jobs, judge: as in lib.rows.workers; layout: of new shards, a key of LAYOUTS; waiting(): a context in which a
        signal may raise Interrupted; say(text): tells the user of games that fail; only: the ids that may come, if
        that is known, so that no other shards need to be looked at.

        At once, rows are claimed that a killed run did not come to claim, and those of games whose log is back. Games
        whose shard is gone or damaged are due again. deep: damage is looked for in every byte. outdated: games are due
        whose rows an older encoder made. again: so are all ids that come and were encoded or failed before.
        tell_settled: tell why nothing is done about an id. failed(error): called with the reason of each game that
        fails. Raises OSError, and Problem for a shard of another version.
        """
        self.work, self.manifest, self.shard_rows, self.layout = work, manifest, shard_rows, layout
        self._waiting, self._say = waiting, say or (lambda text: None)
        self._again, self._tell_settled, self._failed = again, tell_settled, failed or (lambda error: None)
        layouts.require(layout)
        self.tally = collections.Counter()
        self._writer, self._spent = None, pace.Spent()
        self._workers, self._in_hand = Workers(work, jobs, judge), set()
        self._due = Due(work, manifest, encoder.ENCODER, deep, only, outdated, self._say)
        if self._due.unreadable:
            self.tally["unreadable"] = self._due.unreadable
        self._rescued = commit.finish_interrupted(work, manifest, encoder.ENCODER)
        self._renewed = self._renew([game for game, record in manifest.latest.items() if "claim" in record])
        self.queued = self._due.queued

    def _renew(self, games):
        return commit.renew(self.work, self.manifest, games, self._due.gone, self._due.outdated) if games else []

    def due(self, ids):
        """Yield those of `ids` that `run` would encode, and encode nothing."""
        self._count(self._rescued)
        self._count_renewed(self._renewed)
        for game in ids:
            if self._is_ours(game):
                self._in_hand.add(game)
                self.tally["listed"] += 1
                yield game

    def run(self, ids, source=None):
        """Encode `ids` as they come; yields each id once its shard is in place and its event is appended.

        None among the ids means that there is none just now; once there is, the file `source` can be read. A game that
        cannot be encoded becomes `failed`. A game whose log has other bytes than recorded becomes `corrupt`, unless the
        log was still being copied when it was adopted. A game whose log cannot be read stays as it is, and is counted.
        Raises OSError, Problem. Then what is not yet in a finished shard is dropped, and the next run encodes it again.
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
                        if "claim" in self.manifest.latest[game] and not self._again and self._renew([game]):
                            yield from self._count_renewed([game])
                            continue
                        self._in_hand.add(game)
                        self._workers.put(game, self.manifest.latest[game].get("sha256"))
                    yield from self._store_done()
                    while self._workers.is_full() and self._workers.is_working():
                        self._workers.wait()
                        yield from self._store_done()
            except Interrupted:
                pass  # it was only waiting: finish what is in hand
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
            return False  # it came before, and its event comes with its shard's
        if not self._due.is_due(self.manifest.latest.get(game)):
            with self.manifest.locked():  # this reads what others have appended since
                pass
        record = self.manifest.latest.get(game)
        if self._due.is_due(record) or (self._again and self._due.ask_again(record)):
            return True
        self.tally["not in the manifest" if record is None else "settled before"] += 1
        if self._tell_settled and self.tally["not in the manifest"] + self.tally["settled before"] <= _SETTLED:
            self._say(f"{game} {fate.of(record)}{self._hint(game, record)}")
            self.tally["unknown and named"] += record is None
        return False

    def _hint(self, game, record):
        if record and record.get("status") in ("duplicate", "corrupt") and not workdir.log_is_gone(self.work, game):
            return f"; to take in the log that is in xml/ now: {wording.make(self.work, 'run')}"
        if self._again or not fate.may_be_tried_again(record):
            return ""
        return f"; to encode it again: {wording.script(self.work, f'encode-batch --again {game}')}"

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
                self._say(f"{game}: its log cannot be read ({what}), so the game stays as it is")
            elif kind in ("failed", "died"):
                # perhaps the process was killed for some other reason, so the next run tries the game once more
                again = kind == "died" and not record.get("error", "").startswith("the encoder died")
                self._settle({"gid": game, "status": "failed", "error": what, "stage": "encode",
                              "encoder": "" if again else encoder.ENCODER["version"], "sha256": sha256}, sha256)
            elif kind == "corrupt":
                if not self._take_again(game):
                    self._settle({"gid": game, "status": "corrupt", "found": what}, sha256)
            else:
                identity.must_be_here(self.work, "xml")  # if xml/ is not mounted, the log may well be there
                self.tally["file missing"] += 1

    def _take_again(self, game):
        """Take in again a log that was still being copied when it was adopted, and encode it if it is whole by now.
        Returns False if it was not being copied, which means that it is damaged."""
        if adopt.take_in(self.work, self.manifest, game) == "left":
            return False
        record = self.manifest.latest[game]
        if record.get("status") == "downloaded" and record.get("whole", True):
            self._in_hand.add(game)
            self._workers.put(game, record["sha256"])
        elif record.get("status") == "duplicate":
            self._say(f"{game} {fate.of(record)}")
        else:
            self.tally["still being copied"] += 1
        return True

    def _settle(self, event, sha256):
        """Append `event` if its game is still due, and still has the log that the event is about."""
        with self.manifest.locked() as append:
            record = self.manifest.latest.get(event["gid"])
            if self._due.is_due(record) and record.get("sha256") == sha256:
                append([{**event, **self._due.kept(record)}])
                self._count_bad(event)

    def _count_bad(self, event):
        """Count a game that failed or whose log is damaged, and name it unless there were very many."""
        self.tally[event["status"]] += 1
        if event["status"] == "failed":
            self._failed(event["error"])
        n = self.tally["failed"] + self.tally["corrupt"]
        if n <= _NAMED:
            self._say(f"{event['gid']}: {event.get('error', 'SHA-256 differs from the manifest; skipped')}")
        elif n == _NAMED + 1:
            self._say("more games fail: from here on they are only counted; to see the reason of each: "
                      f"{wording.script(self.work, 'manifest-latest')} | grep '\"failed\"'")

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
        """Finish the open shard and put it in its place; yields the ids whose rows it now has."""
        if self._writer:
            self._in_hand.difference_update(g["gid"] for g in self._writer.games)
            self._spent.games += len(self._writer.games)
            with self._spent.writing():
                done = commit.publish(self._writer, self.manifest, self.work, encoder.ENCODER, self._due.is_due)
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
