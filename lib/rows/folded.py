"""Rows without their padding, as the encoder, the shards and the reader pass them on. A folded is a dict:

    text     bytes or uint8   the tokens of all rows, one row after the other, five bytes each
    lengths  (n,) int32       how many of these bytes belong to each row
    points   (n, 4) int32     points of the four seats at the decision; the scalars of the schema follow from them
    deltas   (n, 4) int32     points of the four seats after the hand minus at its start
    action_mask, labels, origin, outcome: as in lib.rows.schema

`placed` adds where each row begins; then rows can be taken out in any order without copying their text.
"""

import numpy as np

from .schema import ARRAYS, MAX_SEQ_LEN, SCALAR_DIM, TOKEN_FEATURES

PLAIN = ("action_mask", "labels", "origin", "outcome", "deltas")
PIECE_ROWS = 64  # 500 kB unfolded, which is still in the processor's cache when it is written
SCORE = 13  # the segment of scores: one token for each seat, four tokens apart
# tokens whose scalar is their count divided by a number: how far they stand behind the last score, and that number
COUNTED = ((6, 8), (7, 4), (8, 70), (9, 18))  # honba, sticks, tiles left, own discards
_BEHIND = COUNTED[-1][0]
_PLACES = np.arange(MAX_SEQ_LEN, dtype=np.uint16)
_TOKEN = np.dtype(f"V{TOKEN_FEATURES}")


def placed(folded):
    """The same rows with `starts`, the byte of the text at which each begins, and `scores`, the number of its first
    token of segment SCORE. Raises ValueError for rows without the tokens to which lib.rows.schema gives scalars."""
    lengths = np.asarray(folded["lengths"])
    starts = np.cumsum(lengths, dtype=np.int64) - lengths
    first = starts // TOKEN_FEATURES
    scores = np.flatnonzero(np.frombuffer(folded["text"], np.uint8)[::TOKEN_FEATURES] == SCORE)
    if len(scores) != 4 * len(lengths):
        raise ValueError("a row does not have one score token for each seat")
    scores = scores.reshape(-1, 4) - first[:, None]
    ends = scores[:, 3] + _BEHIND < lengths // TOKEN_FEATURES
    if not (ends & (scores[:, 0] >= 0)).all() or (scores - scores[:, :1] != [0, 4, 8, 12]).any():
        raise ValueError("the score tokens of a row are not where they should be")
    if (folded["origin"]["seat"] > 3).any():
        raise ValueError("a row has a seat other than 0 to 3")
    return folded | {"starts": starts, "scores": scores[:, 0].copy()}


def take(folded, rows):
    """Rows of a placed folded, by a slice or an array of their numbers, in that order."""
    if isinstance(rows, slice):
        return {name: array if name == "text" else array[rows] for name, array in folded.items()}
    return {name: array if name == "text" else array.take(rows, axis=0) for name, array in folded.items()}


def join(parts):
    """Several folded, none of them placed, as one."""
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([np.frombuffer(part[name], np.uint8) if name == "text" else part[name]
                                  for part in parts]) for name in parts[0]}


def compact(folded):
    """A placed folded as one that is not placed, with the text of its own rows only."""
    return {name: text(folded) if name == "text" else array for name, array in folded.items()
            if name not in ("starts", "scores")}


def spots(folded):
    """Yield (places, column, values) for the scalars of a placed folded that may not be 0. places and values have a
    number for each row: which of its tokens it is, and the value of the scalar in that column."""
    points, scores = folded["points"].astype(np.float64), folded["scores"]
    rows, seats = np.arange(len(points)), folded["origin"]["seat"].astype(np.intp)
    for seat in range(4):
        yield scores + 4 * seat, 0, (points[:, seat] - 25000) / 25000
    own = points[rows, seats]
    points[rows, seats] = -np.inf
    yield scores + 4 * seats, 1, (own - points.max(axis=1, initial=-np.inf)) / 25000
    counts, at = np.frombuffer(folded["text"], np.uint8), folded["starts"] + 2
    for behind, unit in COUNTED:
        places = scores + 12 + behind
        yield places, 0, counts[at + TOKEN_FEATURES * places] / unit


def tokens(folded, width=MAX_SEQ_LEN):
    """(n, width, 5): the tokens of a placed folded, then zeros. No row may be longer than `width`."""
    n, size = len(folded["lengths"]), width * TOKEN_FEATURES
    out = np.zeros((n, width, TOKEN_FEATURES), np.uint8)
    into, view = memoryview(out.reshape(-1)), memoryview(folded["text"])
    runs = zip(range(0, n * size, size), folded["starts"].tolist(), folded["lengths"].tolist(), strict=True)
    for row, start, length in runs:  # faster than one numpy index
        into[row:row + length] = view[start:start + length]
    return out


def scalars(folded, width=MAX_SEQ_LEN):
    """(n, width, 4): the scalars of these tokens."""
    first = np.arange(len(folded["lengths"])) * width
    return _scalars(folded, first, len(first) * width).reshape(-1, width, SCALAR_DIM)


def _scalars(folded, first, size):
    """(size, 4): the scalars of all tokens; those of each row begin at its `first`."""
    out = np.zeros(size * SCALAR_DIM, np.float32)
    for places, column, values in spots(folded):
        out[SCALAR_DIM * (first + places) + column] = values
    return out.reshape(-1, SCALAR_DIM)


def attention_mask(folded, width=MAX_SEQ_LEN):
    """(n, width): 1 where these tokens stand."""
    lengths = (folded["lengths"] // TOKEN_FEATURES).astype(np.uint16)
    return (lengths[:, None] > _PLACES[:width]).view(np.uint8)


def text(folded):
    """The tokens of a placed folded, in the order of its rows, as bytes of their own."""
    view, starts = memoryview(folded["text"]), folded["starts"]
    runs = zip(starts.tolist(), (starts + folded["lengths"]).tolist(), strict=True)
    return np.frombuffer(bytearray().join([view[start:end] for start, end in runs]), np.uint8)


def ragged(folded, names=("tokens", "scalars")):
    """Tokens (t, 5) and scalars (t, 4) of the rows of a placed folded, one row after the other, and cu_seqlens (n + 1,)
    int32: row i has the tokens from cu_seqlens[i] to cu_seqlens[i + 1]. names: those of the two that are wanted."""
    ends = np.zeros(len(folded["lengths"]) + 1, np.int32)
    np.cumsum(folded["lengths"] // TOKEN_FEATURES, out=ends[1:])
    found = {"cu_seqlens": ends}
    if "tokens" in names:
        found["tokens"] = text(folded).reshape(-1, TOKEN_FEATURES)
    if "scalars" in names:
        found["scalars"] = _scalars(folded, ends[:-1].astype(np.int64), int(ends[-1]))
    return found


def unfold(folded):
    """The arrays of lib.rows.schema of a folded, placed or not. Raises ValueError as `placed` does."""
    folded = folded if "starts" in folded else placed(folded)
    return {"tokens": tokens(folded), "scalars": scalars(folded), "attention_mask": attention_mask(folded),
            **{name: folded[name] for name in PLAIN}}


def pieces(folded):
    """Yield the same as `unfold`, in several dicts of a few rows each, in order."""
    folded = placed(folded)
    for first in range(0, len(folded["lengths"]), PIECE_ROWS):
        yield unfold(take(folded, slice(first, first + PIECE_ROWS)))


def fold(rows):
    """Dense arrays as a folded. Raises ValueError for rows that do not fit lib.rows.schema: if an attention mask is not
    ones and then zeros, if something stands where there is no token, or if the scalars do not follow from the tokens.
    """
    mask, dense = rows["attention_mask"], np.ascontiguousarray(rows["tokens"])
    lengths = np.count_nonzero(mask, axis=1)
    stands = lengths.astype(np.uint16)[:, None] > _PLACES
    if not np.array_equal(mask, stands):
        raise ValueError("an attention mask is not ones, then zeros")
    if dense[~stands].any():
        raise ValueError("a token stands where the attention mask is 0")
    if (rows["action_mask"] > 1).any():
        raise ValueError("an action mask has a number other than 0 and 1")
    found = {
        "text": dense.view(_TOKEN)[..., 0][stands].view(np.uint8),
        "lengths": (TOKEN_FEATURES * lengths).astype(np.int32),
        **{name: np.array(rows[name]) for name in PLAIN},
    }
    bits = np.ascontiguousarray(rows["scalars"]).view(np.uint32).reshape(-1)
    at = placed(found)
    first = np.arange(len(lengths)) * MAX_SEQ_LEN
    scores = [bits[SCALAR_DIM * (first + at["scores"] + 4 * seat)].view(np.float32) for seat in range(4)]
    with np.errstate(all="ignore"):  # these bits may be anything; they are compared below
        points = np.rint(np.stack(scores, axis=1).astype(np.float64) * 25000 + 25000)
        at["points"] = found["points"] = np.where(np.abs(points) < 2**31, points, 0).astype(np.int32)
    used = 0
    for places, column, values in spots(at):
        values = values.astype(np.float32).view(np.uint32)
        used += np.count_nonzero(values)
        if (bits[SCALAR_DIM * (first + places) + column] != values).any():
            raise ValueError("scalars do not follow from the tokens")
    if used != np.count_nonzero(bits):
        raise ValueError("scalars stand where there should be none")
    return found


def places(finals):
    """The places, 1 to 4, of the four seats with these final points (…, 4). If points are equal, the lower seat is
    ahead."""
    order = np.argsort(-np.asarray(finals, np.int64), axis=-1, kind="stable")
    return np.argsort(order, axis=-1).astype(np.uint8) + np.uint8(1)


def empty(n, names=tuple(ARRAYS)):
    """Arrays of lib.rows.schema for `n` rows, all zeros."""
    return {name: np.zeros((n, *ARRAYS[name][0]), ARRAYS[name][1]) for name in names}
