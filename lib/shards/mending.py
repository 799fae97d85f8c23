"""What mends the shards that `verify` found something wrong with: one make command at a time."""

import contextlib

from . import due, policy, reading


def next_step(work, manifest, findings, lost=False, deep=False):
    """(what for, words after `make`) of the command that does most about the findings; None if no command does.

    After it `make check` says what is next. findings: those of verify.check that are not ok; lost: there are games that
    have lost both their rows and their log.
    """
    wrong = [found for found in findings if found.kind in ("mismatch", "orphan")]
    found = _forgotten(work, manifest, wrong) if wrong else 0
    if found:
        games, have = ("1 game", "has") if found == 1 else (f"{found} games", "have")
        return f"{games} {have} sound rows that the manifest has lost track of; to record them again", "recover"
    if lost:
        return "to queue the downloads of the lost games", f"check REPAIR=1{' DEEP=1' * deep}"
    if any(each.is_lost and due.claimed(manifest, each) for each in wrong):
        return "to encode the games of the mismatched shards again", f"run{' DEEP=1' * deep}"
    if any(_is_awaited(work, manifest, each.shard) for each in wrong):
        return "to record rows that no event names yet", "run"
    return ("to remove the shards that hold no current rows", "compact") if wrong else None


def _forgotten(work, manifest, wrong):
    """How many games there are of which `make recover` knows more than the manifest."""
    gone = {each.shard for each in wrong if each.verdict in ("damaged", "absent")}
    damaged = {each.shard for each in wrong if each.verdict == "damaged"}
    return len({g["gid"] for name in set(reading.names(work)) - damaged for g in _games(work, name)
                if policy.is_forgotten(g, name, manifest, gone)})


def _is_awaited(work, manifest, name):
    return any(policy.awaits(g, manifest.latest.get(g["gid"], {})) for g in _games(work, name))


def _games(work, name):
    with contextlib.suppress(OSError, ValueError):
        return reading.read_meta(work, name)["games"]
    return ()
