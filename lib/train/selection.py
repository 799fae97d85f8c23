"""Which rows an epoch has: chosen by their game, and by the kind of decision."""

import re

import numpy as np

from ..mahjong.action import ANKAN, CHI, KAKAN, NO_RIICHI, PASS, PON, RON, TSUMO
from ..store import gid

# kind -> actions of which at least one is legal. Each row is of exactly one of the first three kinds: the player's own
# turn, the answer to another player's tile, riichi or not after the tile is chosen. The others say what was possible.
KINDS = {
    "turn": None, "call": [PASS], "riichi": [NO_RIICHI],
    "chi": range(CHI, PON), "pon": range(PON, ANKAN), "kan": range(ANKAN, KAKAN + 1), "win": [RON, TSUMO],
}


def parse(select):
    """(function of the table of games or None, tuple of kinds or None), made of what `select=` may be.

    That is None; or a function that gets the array of Cache.games() and returns which games are wanted, as booleans; or
    a dict with some of these keys, all of which must be true of a row:

        type    a table type like "00a9", or several
        dates   (first day, last day), both included, like ("2024-01-01", "2024-06-30"); either may be None
        gids    the id of a game, or several
        games   a function as above
        kinds   one or several of turn, call, riichi, chi, pon, kan, win; a row must be of at least one of them

    Raises ValueError for anything else.
    """
    if select is None or callable(select):
        return select, None
    tests = {"type": _of_types, "dates": _within, "gids": _of_ids,
             "games": lambda table, function: np.asarray(function(table))}
    if not isinstance(select, dict) or not set(select) <= {*tests, "kinds"}:
        raise ValueError(f"select={select!r}: must be a function, or a dict with some of {', '.join(tests)}, kinds")
    kinds = select.get("kinds")
    kinds = tuple(sorted({kinds} if isinstance(kinds, str) else set(kinds))) if kinds is not None else None
    if kinds is not None and not set(kinds) <= set(KINDS):
        raise ValueError(f"kinds={kinds!r}: must be some of {', '.join(KINDS)}")
    chosen = {name: value for name, value in select.items() if name in tests}

    def wanted(table):
        masks = [tests[name](table, value) for name, value in chosen.items()]
        return np.logical_and.reduce([np.ones(len(table), bool), *masks])

    return (wanted if chosen else None), kinds


def _texts(name, given, may_be):
    """One text or several as a list. Raises ValueError if no game can have one of them."""
    texts = [given] if isinstance(given, str) else list(given)
    for text in texts:
        if not (isinstance(text, str) and may_be(text)):
            raise ValueError(f"{name}: no game has {text!r}")
    return texts


def _of_types(table, types):
    return np.isin(table["type"], _texts("type", types, re.compile("[0-9a-f]{4}").fullmatch))


def _of_ids(table, gids):
    return np.isin(table["gid"], _texts("gids", gids, gid.is_gid))


def _within(table, dates):
    if isinstance(dates, str) or len(dates) != 2:
        raise ValueError(f'dates={dates!r}: must be (first day, last day), like ("2024-01-01", "2024-06-30")')
    first, last = dates
    first, last = np.datetime64(first or "0001-01-01"), np.datetime64(last or "9999-12-31")
    if first > last:
        raise ValueError(f"dates={dates!r}: the first day is after the last")
    days = table["date"].astype("datetime64[D]")
    return (days >= first) & (days <= last)


def of_kinds(action_mask, kinds):
    """Which rows, by their action masks (n, 54), are of one of these kinds."""
    found = np.zeros(len(action_mask), bool)
    for kind in kinds:
        if KINDS[kind] is None:
            found |= (action_mask[:, PASS] | action_mask[:, NO_RIICHI]) == 0
        else:
            found |= action_mask[:, list(KINDS[kind])].any(axis=1)
    return found
