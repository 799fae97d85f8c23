"""Encoding a stream of games into shards: each game all or nothing, each id reported once its rows are durable."""

import collections

from lib import claims, encoder, shards, xmls


class Batch:
    """What one encoding process does. tally: how many games went which way, for the closing line."""

    def __init__(self, work, manifest, shard_rows, deep=False, layout="dense"):
        """For the work directory and its Manifest; a shard is closed before it would exceed `shard_rows` rows.
        layout: of new shards, a key of shards.LAYOUTS.

        What a killed run left unclaimed is claimed at once. Games whose shard is gone or damaged are due again; deep:
        damage is looked for in every byte. Raises OSError.
        """
        self.work, self.manifest, self.shard_rows, self.layout = work, manifest, shard_rows, layout
        self.tally = collections.Counter()
        self._writer = None
        self._rescued = claims.finish_interrupted(work, manifest, encoder.ENCODER)
        self._gone = claims.broken(work, manifest, deep)

    def queued(self):
        """The ids that the manifest has for encoding, in its order."""
        return [game for game, r in self.manifest.latest.items() if self._is_due(r)]

    def _is_due(self, record):
        return claims.is_due(record, encoder.ENCODER, self._gone)

    def run(self, ids):
        """Encode `ids` as they come; yields each id once its shard is in place and its event is appended.

        A game that cannot be encoded is `failed`, one whose bytes are not the recorded ones is `corrupt`. Raises
        OSError; what was encoded but not yet in place is dropped then, and is encoded again by the next run.
        """
        try:
            yield from self._count(self._rescued)
            for game in ids:
                if self._writer and any(g["gid"] == game for g in self._writer.games):
                    continue  # queued, and now on stdin too: its event comes with the shard's
                rows = self._encode(game)
                if rows:
                    yield from self._store(game, *rows)
            yield from self.close()
        finally:
            if self._writer:
                self._writer.discard()
                self._writer = None

    def _encode(self, game):
        """(sha256, rows) of a game that is due and sound, else None, with what happened tallied and recorded."""
        if not self._is_due(self.manifest.latest.get(game)):
            with self.manifest.locked():  # others may have appended it since we read
                pass
        record = self.manifest.latest.get(game)
        if not self._is_due(record):
            self.tally["not in the manifest" if record is None else "settled before"] += 1
            return None
        try:
            data, sha256 = xmls.read(self.work, game)
        except FileNotFoundError:
            if record["status"] == "encoded":  # its rows are gone, and so is what they were made from
                self._settle(game, record, {"gid": game, "status": "corrupt"})
            else:
                self.tally["file missing"] += 1
            return None
        if sha256 != record.get("sha256"):
            self._settle(game, record, {"gid": game, "status": "corrupt", "found": sha256})
            return None
        try:
            return sha256, encoder.encode_game(data)
        except encoder.Unencodable as e:
            self._settle(game, record, {"gid": game, "status": "failed", "error": str(e), "stage": "encode",
                                        "encoder": encoder.ENCODER["version"], "sha256": sha256})
        return None

    def _settle(self, game, seen, event):
        """Append `event` if the game's record is still the one that was `seen`."""
        with self.manifest.locked() as append:
            if self.manifest.latest.get(game) == seen:
                append([event])
                self.tally[event["status"]] += 1

    def _store(self, game, sha256, rows):
        n = len(rows["labels"])
        if self._writer and self._writer.n_rows + n > self.shard_rows:
            yield from self.close()
        if not self._writer:
            self._writer = shards.Writer(self.work, self.layout)
        self._writer.add(game, sha256, rows)
        if self._writer.n_rows >= self.shard_rows:
            yield from self.close()

    def close(self):
        """Put the shard in the making in its place; yields the ids that it holds."""
        if self._writer:
            done = claims.commit(self._writer, self.manifest, self.work, encoder.ENCODER, self._gone)
            self._writer = None
            yield from self._count(done)

    def _count(self, ids):
        self.tally["encoded"] += len(ids)
        self.tally["rows"] += sum(self.manifest.latest[game]["n_samples"] for game in ids)
        return ids
