"""Exchanging manzu, pinzu and souzu: six views of one row, all of them legal.

Winds and dragons stay. The one thing in the rules that is tied to a suit is the yaku of the all-green hand.
"""

import itertools

import numpy as np

from ..mahjong.action import DISCARD_RED
from ..rows.schema import ACTION_DIM, TOKEN_FEATURES

PERMUTATIONS = np.array(list(itertools.permutations(range(3))))  # [which, suit]: what the suit becomes
_TILE = np.tile(np.arange(256, dtype=np.uint8), (6, 1))
_ACTION = np.tile(np.arange(ACTION_DIM), (6, 1))
for _which, _become in enumerate(PERMUTATIONS):
    _TILE[_which, :27] = _ACTION[_which, :27] = (9 * _become[:, None] + np.arange(9)).reshape(-1)
    _ACTION[_which, DISCARD_RED:DISCARD_RED + 3] = DISCARD_RED + _become
_SOURCE = np.argsort(_ACTION, axis=1)

_SORTED = np.isin(np.arange(256), (1, 23, 24))  # segments whose tokens stand in the order of their tiles


def permute(rows, which):
    """Dense rows with the suits of each exchanged as PERMUTATIONS[which % 6] says, `which` having a number for each
    row: just what the same game dealt in those suits would have given. The given arrays are left as they are.
    """
    which = (np.asarray(which) % 6).astype(np.intp)
    width = int(np.count_nonzero(rows["attention_mask"], axis=1).max(initial=0))
    part = rows["tokens"][:, :width].copy()
    stands = rows["attention_mask"][:, :width]
    part[..., 1] = _TILE[which[:, None], part[..., 1]] * stands  # where no token stands, 0 is not 1m
    # tokens sorted by tile (and aka, in the hand) are sorted anew, each within its group; the others keep their place
    flat = part.reshape(-1, TOKEN_FEATURES)
    at = np.flatnonzero(_SORTED[part[..., 0]])
    segment, tile, _, who, extra = flat[at].T.astype(np.int64)
    group = np.cumsum(np.diff((at // max(width, 1) << 8 | segment) << 8 | who, prepend=-1) != 0)
    order = np.argsort(group << 16 | tile << 1 | (segment == 1) & (extra & 1), kind="stable")
    flat[at] = flat[at[order]]
    tokens = rows["tokens"].copy()
    tokens[:, :width] = part
    return rows | {
        "tokens": tokens,
        "action_mask": np.take_along_axis(rows["action_mask"], _SOURCE[which], axis=1),
        "labels": _ACTION[which, rows["labels"]].astype(rows["labels"].dtype),
    }
