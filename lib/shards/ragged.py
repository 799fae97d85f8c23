"""Rows without their padding: what stands between the dense arrays and the packed layout.

A ragged is a dict of arrays that hold n rows:

    items    (T,) uint64     the tokens of all rows, one row after the other. Lowest byte first: segment, tile, count,
                             who, extra; the upper 24 bits number the token's scalars from 1, 0 if they are all zeros
    lengths  (n,) int64      how many tokens each row has
    scalars  (k, 4) float32  what the items number; `bases` (n,) int64 is where the numbers of a row begin to count
    action_mask, labels, origin, outcome: as in lib.rows.schema
"""

import numpy as np

from ..rows.schema import ARRAYS, MAX_SEQ_LEN, SCALAR_DIM, TOKEN_FEATURES

PLAIN = ("action_mask", "labels", "origin", "outcome")
SHIFT = np.uint64(8 * TOKEN_FEATURES)  # of the number of the scalars in an item
_TOKEN = np.dtype({"names": ["token"], "formats": [f"V{TOKEN_FEATURES}"], "itemsize": 8})
_WIDE = np.dtype("c16")  # moves the four scalars of a token at once: nothing else that wide is copied as quickly
_PLACES = np.arange(MAX_SEQ_LEN, dtype=np.uint16)


def empty(n):
    """Dense arrays for `n` rows, all zeros."""
    return {name: np.zeros((n, *shape), dtype) for name, (shape, dtype) in ARRAYS.items()}


def from_dense(rows):
    """The ragged of dense arrays. Raises ValueError for rows that the schema has not: an attention mask other than ones
    and then zeros, or something where no token stands."""
    mask = rows["attention_mask"]
    tokens = np.ascontiguousarray(rows["tokens"], np.uint8)
    scalars = np.ascontiguousarray(rows["scalars"], "<f4").reshape(-1, SCALAR_DIM)
    lengths = np.count_nonzero(mask, axis=1)
    stands = _stands(lengths)
    halves = np.flatnonzero(scalars.view(np.uint64).reshape(-1) != 0) // 2
    used = halves[np.diff(halves, prepend=-1) > 0]
    if not np.array_equal(mask, stands):
        raise ValueError("an attention mask is not ones, then zeros")
    if tokens[~stands].any() or not stands.reshape(-1)[used].all():
        raise ValueError("something stands where the attention mask is 0")
    items = np.zeros(lengths.sum(), np.uint64)
    items.view(_TOKEN)["token"] = tokens.view(_TOKEN["token"])[..., 0][stands]
    row, place = np.divmod(used, MAX_SEQ_LEN)
    counts = np.bincount(row, minlength=len(lengths))
    bases = np.cumsum(counts) - counts
    numbers = np.arange(1, len(used) + 1) - bases[row]
    items[(np.cumsum(lengths) - lengths)[row] + place] |= numbers.astype(np.uint64) << SHIFT
    return {"items": items, "lengths": lengths, "scalars": scalars[used], "bases": bases,
            **{name: rows[name] for name in PLAIN}}


def to_dense(ragged, rows=None, out=None):
    """The dense arrays of `rows` (an index array; None: of all), written into `out`, arrays of zeros, when given."""
    items, lengths, bases = ragged["items"], ragged["lengths"], ragged["bases"]
    if rows is not None:
        ends = np.cumsum(lengths)[rows]
        lengths, bases, view = lengths[rows], bases[rows], memoryview(items)
        runs = zip((ends - lengths).tolist(), ends.tolist(), strict=True)
        items = np.frombuffer(b"".join([view[start:end] for start, end in runs]), np.uint64)  # quicker than by index
    out = out or empty(len(lengths))
    stands = _stands(lengths)
    out["attention_mask"][...] = stands
    out["tokens"].view(_TOKEN["token"])[..., 0][stands] = items.view(_TOKEN)["token"]
    used = np.flatnonzero(items >= np.uint64(1) << SHIFT)
    row = np.repeat(np.arange(len(lengths)), lengths)[used]
    places = used + (np.arange(len(lengths)) * MAX_SEQ_LEN - (np.cumsum(lengths) - lengths))[row]
    numbers = bases[row] + (items[used] >> SHIFT).astype(np.int64) - 1
    out["scalars"].view(_WIDE).reshape(-1)[places] = ragged["scalars"].view(_WIDE)[:, 0][numbers]
    for name in PLAIN:
        out[name][...] = ragged[name] if rows is None else ragged[name][rows]
    return out


def concatenate(raggeds, space=None):
    """One ragged of several, in order. space: an array in which the items are put, if there are not too many."""
    if len(raggeds) < 2:
        return raggeds[0] if raggeds else from_dense(empty(0))
    out = {name: np.concatenate([r[name] for r in raggeds]) for name in raggeds[0] if name != "items"}
    total = out["lengths"].sum()
    out["items"] = np.concatenate([r["items"] for r in raggeds],
                                  out=space[:total] if space is not None and total <= len(space) else None)
    sizes = [len(r["scalars"]) for r in raggeds]
    out["bases"] += np.repeat(np.cumsum(sizes) - sizes, [len(r["lengths"]) for r in raggeds])
    return out


def spread(starts, lengths):
    """The numbers start, start + 1, … of each of several runs, one run after the other."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - lengths), lengths)


def _stands(lengths):
    """(n, MAX_SEQ_LEN) bool: where a token stands."""
    return lengths.astype(np.uint16)[:, None] > _PLACES
