"""The columns of a batch, padded or not. They are made of rows without padding.

Arrays of paipu_cache.rows.schema: tokens, scalars, attention_mask, action_mask, labels, origin, outcome, deltas.
Their fields as columns of their own: hand, seat, step; hand_delta, final_score, final_rank.
row, game: the number of the row in the cache, and that of its game in Cache.games().
points: (4,) points of the four seats at the decision; deltas: (4,) what each seat won or lost in the hand.
next: the row of the next decision of the same seat in the same hand, -1 if there is none; done: whether there is none.
cu_seqlens: only in ragged batches: row i has the tokens from cu_seqlens[i] to cu_seqlens[i + 1].
"""

import numpy as np

from ..rows import folded
from ..rows.schema import MAX_SEQ_LEN, ORIGIN, OUTCOME, TOKEN_FEATURES, UNKNOWN

# the defaults; RAGGED has only numbers of types that every library knows
DENSE = ("tokens", "scalars", "attention_mask", "action_mask", "labels", "origin", "outcome", "row", "game")
RAGGED = ("tokens", "scalars", "action_mask", "labels", "hand", "seat", "step", *OUTCOME.names, "row", "game")
ALL = tuple(dict.fromkeys((*DENSE, *RAGGED, "points", "deltas", "next", "done")))
_FIELDS = {name: (array, kind) for array, kind in (("origin", ORIGIN), ("outcome", OUTCOME)) for name in kind.names}
_FIELDS.pop("game")  # in origin it is the number of the game in its shard, not in the cache


def chosen(columns, ragged):
    """The names of the columns asked for; None means the defaults. Raises ValueError for an unknown one."""
    if isinstance(columns, str):
        raise ValueError(f"columns={columns!r}: must be a list of names")
    names = tuple(columns) if columns is not None else RAGGED if ragged else DENSE
    known = [name for name in ALL if not (ragged and name == "attention_mask")]
    if not set(names) <= set(known):
        raise ValueError(f"columns={columns!r}: must be some of {', '.join(known)}")
    return names


def build(rows, names, ragged=False, cut=False):
    """A batch as a dict of the columns `names`, of placed rows that have `row` and `game` too.

    ragged: tokens (t, 5) and scalars (t, 4) of all rows one after the other, and cu_seqlens; cut: padded only to the
    longest row. Raises ValueError if deltas are asked for and not known.
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
            raise ValueError("some shards are so old that they have no deltas: encode their games again")
        else:
            found[name] = rows[name]
    return {name: found[name] for name in (*names, *(["cu_seqlens"] if ragged else []))}


def next_rows(rows):
    """For each row the row of the same seat's next decision in that hand, or -1. Needs all rows of each game, in order.
    """
    origin, number = rows["origin"], rows["row"]
    key = rows["game"].astype(np.int64) << 16 | origin["hand"].astype(np.int64) << 8 | origin["seat"]
    order = np.argsort(key, kind="stable")
    out = np.full(len(key), -1)
    same = np.flatnonzero(np.diff(key[order]) == 0)
    out[order[same]] = number[order[same + 1]]
    return out
