"""Which games are to be encoded: those that wait for it, those that have lost their rows and, if asked for, those whose
rows an older encoder made."""

from ..store import wording, workdir
from ..store.claims import held, kept
from ..store.errors import Problem
from . import fate, policy, reading, verify


class Due:
    """What a look at the shards says about the games of a Manifest.

    gone: shard -> verify.Finding, of the shards that do not have the rows that the manifest claims; outdated: the games
    to encode again because an older encoder made their rows; unreadable: how many shards cannot be read
    """

    def __init__(self, work, manifest, encoder, deep=False, only=None, outdated=False, say=print):
        """Look at the shards, at every byte if `deep`. only: the games that matter, None for all; outdated: if rows of
        an older encoder than `encoder` are to be made again; say(text): tells what cannot be read.

        Raises Problem for a shard of another version, or a cache that is not mounted; OSError.
        """
        self._work, self._manifest, self.encoder, self._say, self._deep = work, manifest, encoder, say, deep
        self.gone, self.unreadable, self._again = {}, 0, {}
        for found in verify.check(work, reading.names(work), manifest, deep, of=only):
            if found.verdict == "foreign":
                raise Problem(f"{found.shard}: {found.why}")
            if found.verdict == "unreadable":
                self.unreadable += 1
                say(f"{found.shard} {found.why}: its games stay as they are")
            if found.is_lost:
                self.gone[found.shard] = found
        self.outdated = set(self._outdated()) if outdated else set()

    def _outdated(self):
        for name in reading.names(self._work):
            try:
                meta = reading.read_meta(self._work, name)
            except (OSError, ValueError):
                continue  # told already
            yield from (g["gid"] for g in verify.outdated(meta, name, self._manifest.latest, self.encoder))

    def is_due(self, record):
        """True if a game with this current record (None: it has none) is to be encoded."""
        asked = self._again.get(record.get("gid")) if record else None
        if asked and asked == record:
            return True
        return policy.needs_encoding(record, self.encoder, self.gone, self.outdated)

    def ask_again(self, record):
        """Have a game encoded again, as long as this is its current record: once, whoever does it. Returns False if it
        cannot be, or was asked for before."""
        if not fate.may_be_tried_again(record) or record["gid"] in self._again:
            return False
        self._again[record["gid"]] = record
        return True

    def queued(self):
        """The ids that the manifest has waiting for encoding, in its order, without those that have lost their log as
        well as their rows. Tells of each lost shard what becomes of its games."""
        lost = {game for found in self.gone.values() for game in self._lost(found)}
        return [game for game, r in self._manifest.latest.items() if self.is_due(r) and game not in lost]

    def _lost(self, found):
        games = claimed(self._manifest, found)
        lost = [game for game in games if workdir.log_is_gone(self._work, game)]
        again = sum(self.is_due(self._manifest.latest[game]) for game in games if game not in lost)
        what = f"{found.shard} is gone" if found.verdict == "absent" else f"{found.shard} is damaged ({found.why})"
        if again:
            self._say(f"{what}: encoding {wording.count(again, 'game')} again")
        if lost:
            self._say(f"{what}, and the logs of {wording.count(len(lost), 'game')} in it are gone too; to queue their "
                      f"downloads: {wording.make(self._work, 'check REPAIR=1' + ' DEEP=1' * self._deep)}")
        return lost

    def kept(self, record):
        """What an event must have to keep the claim of the record before it, unless its rows are damaged."""
        found = self.gone.get(record.get("shard"))
        return {} if found and found.verdict == "damaged" else kept(record)


def claimed(manifest, found):
    """The games that are encoded and have their rows in the shard of a verify.Finding. If it is damaged, also those
    that keep old rows there until their log is back: these rows are no better."""
    records = map(manifest.latest.get, manifest.claims.get(found.shard, ()))
    return [r["gid"] for r in records if (found.verdict == "damaged" or r.get("status") == "encoded")
            and (held(r) or {}).get("shard") == found.shard]
