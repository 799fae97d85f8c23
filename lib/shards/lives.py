"""A hand's tokens as lives: each token once, with the run of rows that have it. `packed` says what a life means.

Lossless for any rows; how few lives it takes depends on which tokens of different rows are taken for one another: those
in the same slot, that is, of one kind and seat and for one tile (or the same number in order, as in a river).
"""

import itertools

import numpy as np

from ..rows.schema import SCALAR_DIM
from . import ragged

CHUNK_ROWS = 128  # keeps turns and spans below 256, and a chunk's scalars below 65,536
FIELDS = ("segment", "tile", "count", "who", "extra")

# OTHER[segment]: SELF_FUURO for OPP_FUURO, SELF_RIVER for OPP_RIVER, and back
# TURNED[seat, who]: the absolute seat of what `seat` calls `who`
OTHER = np.arange(256, dtype=np.uint8)
OTHER[[3, 4, 5, 6]] = 4, 3, 6, 5
TURNED = np.array([[(who + seat) % 4 if who < 4 else who for who in range(256)] for seat in range(4)], np.uint8)

# the parts that tokens play, in the order of a row; the segments of one tuple alternate
_PARTS = ((1,), (2,), (27, 3, 4), (5, 6), (7,), (9,), (10, 11, 12, 13), (14,), (15,), (25,), (26,), (28,), (16,), (17,),
          (18,), (29,), (20,), (21,), (22,), (23,), (24,))
_PART = np.full(256, len(_PARTS))
for _part, _segments in enumerate(_PARTS):
    _PART[list(_segments)] = _part
_BY_TILE = np.isin(np.arange(256), (1, 23, 24))  # at most one token of a part for each tile, in their order


def pack(rows):
    """Yield the chunks of dense rows, each a dict of its columns."""
    if (rows["action_mask"] > 1).any():
        raise ValueError("an action mask has something other than 0 and 1")
    r = ragged.from_dense(rows)
    origin, ends = rows["origin"], np.cumsum(r["lengths"])
    hand = origin["game"].astype(np.int64) << 8 | origin["hand"]
    cuts = [0, *(np.flatnonzero(np.diff(hand)) + 1).tolist(), len(hand)]
    for start, stop in itertools.pairwise(cuts):
        for a in range(start, stop, CHUNK_ROWS):
            b = min(a + CHUNK_ROWS, stop)
            first = ends[a] - r["lengths"][a]
            chunk = _lives(r["items"][first:ends[b - 1]], r["lengths"][a:b], r["bases"][a:b], r["scalars"],
                           origin["seat"][a:b] & 3)
            chunk |= {"chunk_rows": [b - a], "chunk_lives": [len(chunk["gap"])]}
            chunk |= {"chunk_scalars": [len(chunk["scalars"])], "labels": rows["labels"][a:b]}
            chunk["action_mask"] = np.packbits(rows["action_mask"][a:b], axis=1)
            yield chunk | {name: rows[array][name][a:b] for array in ("origin", "outcome")
                           for name in rows[array].dtype.names}


def _lives(items, lengths, bases, scalars, seats):
    """The columns of one chunk's lives and scalars."""
    n, row = len(lengths), np.repeat(np.arange(len(lengths)), lengths)
    place = np.arange(len(items)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    token = {name: (items >> np.uint64(8 * i)).astype(np.uint8) for i, name in enumerate(FIELDS)}
    token["segment"] = np.where(token["who"] == 0, OTHER[token["segment"]], token["segment"])
    token["who"] = TURNED[seats[row], token["who"]]
    number = (items >> ragged.SHIFT).astype(np.int64)
    used = np.flatnonzero(number)
    mine = scalars[bases[row[used]] + number[used] - 1]
    distinct, inverse = np.unique(mine.view("<u8,<u8"), return_inverse=True)
    number[used] = inverse.reshape(-1) + 1

    # one line of the grid for each slot, one column for each row: what stands there, 0 nothing
    whole = number.astype(np.uint64) << ragged.SHIFT | np.uint64(1 << 63)  # the top bit: a token of zeros is a token
    for i, name in enumerate(FIELDS):
        whole |= token[name].astype(np.uint64) << np.uint64(8 * i)
    slots, line = np.unique(_slots(token, row, place), return_inverse=True)
    grid = np.zeros((len(slots), n), np.uint64)
    grid[line, row] = whole
    turned = grid[:, np.argsort(seats, kind="stable")]
    runs, runs_turned = _runs(grid), _runs(turned)
    by_seat = np.count_nonzero(runs_turned[0], axis=1) < np.count_nonzero(runs[0], axis=1)
    starts, ends = (np.where(by_seat[:, None], b, a) for a, b in zip(runs, runs_turned, strict=True))
    line, start = np.nonzero(starts)
    end = np.nonzero(ends)[1] + 1
    whole = np.where(by_seat[:, None], turned, grid)[starts]
    return {
        **{name: (whole >> np.uint64(8 * i)).astype(np.uint8) for i, name in enumerate(FIELDS)},
        "scalar": (whole >> ragged.SHIFT).astype(np.uint16), "by_seat": by_seat[line],
        "gap": (start - np.concatenate([[0], end[:-1]])).astype(np.uint8), "span": (end - start).astype(np.uint8),
        "scalars": distinct.view("<f4").reshape(-1, SCALAR_DIM),
    }


def _slots(token, row, place):
    """A number for each token, growing within a row, that tokens of other rows share if they play the same part."""
    part = _PART[token["segment"]] << 8 | token["who"]
    first = np.flatnonzero(np.diff(row << 16 | part, prepend=-1))
    nth = np.arange(len(part)) - np.repeat(first, np.diff(first, append=len(part)))
    tile = token["tile"].astype(np.int64) << 1 | (token["extra"] & 1) * (token["segment"] == 1)
    slots = part << 10 | np.where(_BY_TILE[token["segment"]], tile, nth)
    grow = (np.diff(slots) > 0) | (np.diff(row) > 0)
    return slots if grow.all() else place


def _runs(grid):
    """Where in the lines of `grid` runs of equal numbers other than 0 start, and where they have their last."""
    starts, ends = grid > 0, grid > 0
    change = grid[:, 1:] != grid[:, :-1]
    starts[:, 1:] &= change
    ends[:, :-1] &= change
    return starts, ends
