"""Comparing the shards with what the manifest's events claim."""

import typing

from ..store import identity
from ..store.claims import held
from . import policy, reading

_UNNAMED = "no event names it"


class Finding(typing.NamedTuple):
    """What was found out about a shard.

    kind: 'ok', 'mismatch' (the manifest's events claim other rows than it has), 'orphan' (no event names it),
    'unreadable' or 'foreign' (of another version); why: text, None if all is well; stale: how many of its rows have
    been encoded again elsewhere; outdated: how many were made by an older encoder. verdict: what was read of the shard
    alone: 'sound', 'damaged', 'absent', 'unreadable' or 'foreign', or 'contradicted' if it is sound, but does not have
    the rows that a current event claims.
    """

    kind: str
    shard: str
    why: str | None = None
    stale: int = 0
    outdated: int = 0
    verdict: str = "sound"

    @property
    def is_lost(self):
        """True if the shard was seen not to have the rows that current events claim."""
        return self.verdict in ("damaged", "absent", "contradicted")


def check(work, present, manifest, deep=False, encoder=None, of=None):
    """Yield a Finding for each shard that is there or that a current record claims.

    present: the shards' names, read before the manifest was, so that a shard that appears meanwhile is not called an
    orphan; deep: hash the arrays too; encoder: rows of older ones than this are outdated; of: the only games that
    matter, None for all. Before anything is called wrong, the manifest is read again. Raises OSError, and Problem if
    the cache is not mounted.
    """
    identity.must_be_here(work, "cache")
    if of is not None:
        wanted = {claim.get("shard") for claim in map(held, filter(None, map(manifest.latest.get, of))) if claim}
        present = [name for name in present if name in wanted]
    for name in present:
        found = _look_at(work, name, manifest, deep, encoder)
        if found.kind != "ok":  # unless it has been compacted meanwhile
            manifest.refresh()
            found = _look_at(work, name, manifest, deep, encoder)
        if found.verdict != "absent":  # if it is absent and still claimed, that comes below
            yield found
    gone = _claimed(manifest) - set(reading.names(work))
    if gone:
        identity.must_be_here(work, "cache")
        manifest.refresh()
    for name in sorted(gone & _claimed(manifest), key=reading.order):
        yield Finding("mismatch", name, "the directory is gone", verdict="absent")


def _claimed(manifest):
    return {r.get("shard") for r in manifest.latest.values() if r.get("status") == "encoded"}


def _look_at(work, name, manifest, deep, encoder):
    try:
        meta = reading.read_meta(work, name)
        strangers = unknown_games(meta, manifest.latest)
        unknown = f"; the manifest does not know {len(strangers)} of its games" if strangers else ""
        if name not in manifest.claims:
            return Finding("orphan", name, _UNNAMED + unknown)
        problem = reading.damage(work, name, meta, deep)
    except reading.Absent as e:
        return Finding("mismatch", name, str(e), verdict="absent")
    except reading.Foreign as e:
        return Finding("foreign", name, str(e), verdict="foreign")
    except reading.Damaged as e:
        return Finding(*(("mismatch", name, str(e)) if name in manifest.claims else ("orphan", name, _UNNAMED)),
                       verdict="damaged")
    except OSError as e:
        return Finding("unreadable", name, reading.unreadable(e), verdict="unreadable")
    if problem:
        return Finding("mismatch", name, problem, verdict="damaged")
    older = sum(g["n_rows"] for g in outdated(meta, name, manifest.latest, encoder)) if encoder else 0
    problem, stale, missing = _compare(name, meta, manifest)
    if missing:  # that lies in the manifest alone: events are lost
        return Finding("mismatch", name, problem + unknown, stale, older)
    return Finding("mismatch" if problem else "ok", name, problem, stale, older, "contradicted" if problem else "sound")


def outdated(meta, name, latest, encoder):
    """The games of a shard's meta.json whose live rows were made by an older encoder than `encoder`."""
    older = {made for made in {g.get("encoder") for g in meta["games"]}  # few, so this is fast
             if policy.is_older(policy.version(meta, {"encoder": made}), encoder)}
    return [g for g in policy.live(meta, name, latest) if g.get("encoder") in older] if older else []


def unknown_games(meta, latest):
    """The games of a meta.json that have no record, because the manifest has lost some of its lines, or all."""
    return [g["gid"] for g in meta["games"] if g["gid"] not in latest]


def _compare(name, meta, manifest):
    """(what the events of a shard claim wrongly or None, its stale rows, whether they claim too little)."""
    claimed, games = manifest.claims[name], {g["gid"]: g for g in meta["games"]}
    for game in claimed:
        record = manifest.latest[game]
        here = record.get("status") == "encoded" and record.get("shard") == name
        if here and not (game in games and policy.matches(games[game], record)):
            return f"the rows that the event of {game} claims differ from those in meta.json", 0, False
    expected, stale = sum(n if isinstance(n, int) else 0 for n in claimed.values()), 0
    for game, g in games.items():
        record = manifest.latest.get(game)
        # another process encoded it first, or it was thrown out meanwhile: no event will ever claim these rows
        forsaken = game not in claimed and record and not policy.awaits(g, record)
        expected += g["n_rows"] if forsaken else 0
        encoded = record and record.get("status") == "encoded"  # fast: done for each game
        claim = record if encoded else held(record) if record else None
        if forsaken or (claim and claim.get("shard") != name):
            stale += g["n_rows"]
    if expected != meta["n_rows"]:
        return f"meta.json says {meta['n_rows']} rows, but events claim {expected}", stale, expected < meta["n_rows"]
    return None, stale, False
