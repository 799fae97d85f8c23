"""Which rows an epoch has: by their game, and by the kind of decision."""

import numpy as np

from ..mahjong.action import ANKAN, CHI, KAKAN, NO_RIICHI, PASS, PON, RON, TSUMO

# kind -> actions of which one at least must be legal. A row is of one of the first three kinds: the player's own turn,
# the answer to what another plays, riichi or not with a tile chosen. The others say what could be done.
KINDS = {
    "turn": None, "call": [PASS], "riichi": [NO_RIICHI],
    "chi": range(CHI, PON), "pon": range(PON, ANKAN), "kan": range(ANKAN, KAKAN + 1), "win": [RON, TSUMO],
}


def parse(select):
    """(function of the games table or None, tuple of kinds or None) of what `select=` may be: None, a function that
    gets the table and returns which of its games are wanted, or a dict with some of

        type   a table type like "00a9", or several     dates   (first, last), like ("2024-01-01", "2024-06-30"); either
        gids   ids of games                                     may be None
        games  such a function                          kinds   one of KINDS, or several: rows of any of them

    of which all have to hold. Raises ValueError for anything else.
    """
    if select is None or callable(select):
        return select, None
    tests = {"type": _type, "dates": _dates, "gids": lambda table, gids: np.isin(table["gid"], list(gids)),
             "games": lambda table, function: np.asarray(function(table))}
    if not isinstance(select, dict) or not set(select) <= {*tests, "kinds"}:
        raise ValueError(f"select={select!r}: a function, or a dict with {', '.join(tests)}, kinds")
    kinds = select.get("kinds")
    kinds = tuple(sorted({kinds} if isinstance(kinds, str) else set(kinds))) if kinds is not None else None
    if kinds is not None and not set(kinds) <= set(KINDS):
        raise ValueError(f"kinds={kinds!r}: some of {', '.join(KINDS)}")
    chosen = {name: value for name, value in select.items() if name in tests}

    def wanted(table):
        masks = [tests[name](table, value) for name, value in chosen.items()]
        return np.logical_and.reduce([np.ones(len(table), bool), *masks])

    return (wanted if chosen else None), kinds


def _type(table, types):
    return np.isin(table["type"], [types] if isinstance(types, str) else list(types))


def _dates(table, dates):
    first, last = dates
    days = table["date"].astype("datetime64[D]")
    return ((days >= np.datetime64(first or "0001-01-01")) & (days <= np.datetime64(last or "9999-12-31")))


def of_kinds(action_mask, kinds):
    """Which rows, by their action masks (n, 54), are of one of these kinds."""
    found = np.zeros(len(action_mask), bool)
    for kind in kinds:
        if KINDS[kind] is None:
            found |= (action_mask[:, PASS] | action_mask[:, NO_RIICHI]) == 0
        else:
            found |= action_mask[:, list(KINDS[kind])].any(axis=1)
    return found
