"""What a batch is made of: its columns, padded or not, from rows without padding."""

import numpy as np

from ..rows import folded
from ..rows.schema import MAX_SEQ_LEN, ORIGIN, OUTCOME, TOKEN_FEATURES, UNKNOWN

# the default: numbers alone, of types that every library has, where tokens are not padded
DENSE = ("tokens", "scalars", "attention_mask", "action_mask", "labels", "origin", "outcome", "row", "game")
RAGGED = ("tokens", "scalars", "action_mask", "labels", "hand", "seat", "step", *OUTCOME.names, "row", "game")
ALL = tuple(dict.fromkeys((*DENSE, *RAGGED, "points", "deltas", "next", "done")))
_FIELDS = {name: (array, kind) for array, kind in (("origin", ORIGIN), ("outcome", OUTCOME)) for name in kind.names}
_FIELDS.pop("game")  # of origin it is the number in the shard


def chosen(columns, ragged):
    """The columns asked for, None meaning the default. Raises ValueError for one that there is not."""
    names = tuple(columns) if columns is not None else RAGGED if ragged else DENSE
    known = [name for name in ALL if not (ragged and name == "attention_mask")]
    if not set(names) <= set(known):
        raise ValueError(f"columns={columns!r}: some of {', '.join(known)}")
    return names


def build(rows, names, ragged=False, cut=False):
    """A batch of placed rows, which have `row` and `game` too: a dict of the columns `names`.

    ragged: tokens (t, 5) and scalars (t, 4) of all rows one after the other, and in cu_seqlens where each begins;
    cut: padded no further than the longest row. Raises ValueError where deltas are not known.
    """
    width = int(rows["lengths"].max(initial=0)) // TOKEN_FEATURES if cut else MAX_SEQ_LEN
    found = folded.ragged(rows, [name for name in ("tokens", "scalars") if name in names]) if ragged else {}
    for name in names:
        if name in found:
            continue
        if name in ("tokens", "scalars", "attention_mask"):
            found[name] = getattr(folded, name)(rows, width)
        elif name in _FIELDS:
            array, kind = _FIELDS[name]
            found[name] = rows[array][name].astype("i4" if kind[name] == "u2" else kind[name])
        elif name == "done":
            found[name] = rows["next"] < 0
        elif name == "deltas" and (rows[name] == UNKNOWN).any():
            raise ValueError("shards of an old version do not tell the deltas: encode their games again")
        else:
            found[name] = rows[name]
    return {name: found[name] for name in (*names, *(["cu_seqlens"] if ragged else []))}


def next_rows(rows):
    """For each of these rows of whole games, in order, the row of the same seat's next decision in its hand, or -1."""
    origin, number = rows["origin"], rows["row"]
    key = rows["game"].astype(np.int64) << 16 | origin["hand"].astype(np.int64) << 8 | origin["seat"]
    order = np.argsort(key, kind="stable")
    out = np.full(len(key), -1)
    same = np.flatnonzero(np.diff(key[order]) == 0)
    out[order[same]] = number[order[same + 1]]
    return out
