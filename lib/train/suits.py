"""Exchanging manzu, pinzu and souzu. This makes six rows of one, each of them just as legal.

Winds and dragons stay as they are. The only thing in the rules that depends on a suit is the all-green yakuman.
"""

import itertools

import numpy as np

from ..mahjong.action import DISCARD_RED
from ..rows import folded
from ..rows.schema import ACTION_DIM, TOKEN_FEATURES

PERMUTATIONS = np.array(list(itertools.permutations(range(3))))  # [which, suit]: what the suit becomes
_TILE = np.tile(np.arange(256, dtype=np.uint8), (6, 1))
_ACTION = np.tile(np.arange(ACTION_DIM), (6, 1))
for _which, _become in enumerate(PERMUTATIONS):
    _TILE[_which, :27] = _ACTION[_which, :27] = (9 * _become[:, None] + np.arange(9)).reshape(-1)
    _ACTION[_which, DISCARD_RED:DISCARD_RED + 3] = DISCARD_RED + _become
_SOURCE = np.argsort(_ACTION, axis=1)
_BITS, _BYTE = np.arange(64, dtype=np.uint64), np.uint64(255)

_SORTED = np.isin(np.arange(256), (1, 23, 24))  # segments whose tokens stand in the order of their tiles


def permute(rows, which):
    """A placed folded (see lib.rows.folded) with the suits of each row exchanged. which: a number for each row; its
    suits become PERMUTATIONS[number % 6]. The result is just what the same game dealt in those suits would give. The
    given arrays are not changed."""
    which = (np.asarray(which) % 6).astype(np.intp)
    lengths = rows["lengths"] // TOKEN_FEATURES
    tokens = folded.text(rows).reshape(-1, TOKEN_FEATURES)
    tokens[:, 1] = _TILE.reshape(-1)[tokens[:, 1] + np.repeat(which * 256, lengths)]
    # tokens that are sorted by tile (and aka, in the hand) are sorted again within their group; the others stay
    at = np.flatnonzero(_SORTED[tokens[:, 0]])
    some = tokens[at].astype(np.uint64)
    row = np.repeat(np.arange(len(lengths), dtype=np.uint64), lengths)[at]
    groups = row << _BITS[16] | some[:, 0] << _BITS[8] | some[:, 3]
    group = np.cumsum(np.diff(groups, prepend=groups[:1]) != 0).astype(np.uint64)
    # one number for each token: it sorts the token, and has its tile, count and extra in it
    keys = group << _BITS[32] | some[:, 1] << _BITS[24] | some[:, 4] << _BITS[8] | some[:, 2]
    keys.sort()
    tokens[at, 1], tokens[at, 4], tokens[at, 2] = keys >> _BITS[24] & _BYTE, keys >> _BITS[8] & _BYTE, keys & _BYTE
    starts = np.cumsum(rows["lengths"], dtype=np.int64) - rows["lengths"]
    return rows | {
        "text": tokens.reshape(-1), "starts": starts,
        "action_mask": np.take_along_axis(rows["action_mask"], _SOURCE[which], axis=1),
        "labels": _ACTION[which, rows["labels"]].astype(rows["labels"].dtype),
    }
