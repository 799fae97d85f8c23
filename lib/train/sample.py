"""What the rows of a cache are like: actions, tokens, places and points, counted over all rows or an even sample."""

import numpy as np

from ..rows import schema
from .epoch import PIECE_ROWS
from .gametable import CacheError

ROWS = 1 << 17  # rows that are looked at in a larger cache
FINAL_EDGES = np.arange(-20_000, 80_001, 2_500)  # points at the end of a game; the outer bins also count what is beyond
DELTA_EDGES = np.arange(-24_500, 24_501, 1_000)  # points won or lost in a hand; one bin is around 0


def sample(cache, most=ROWS):
    """Counts over about `most` rows of a lib.train.reader.Cache, in pieces that are spread evenly. A dict:

    rows, of: rows looked at, and rows in the cache; damaged: pieces that could not be read, as text
    actions, legal: (54,) how often each action was taken, and was legal; tokens: (361,) rows by their number of tokens
    places: (4,) rows by the final place of their player; deltas: rows in the bins of DELTA_EDGES, by the points that
    their player won or lost in the hand; won: rows of players who won points in it
    finals: (4, bins of FINAL_EDGES) final points by place, of players who have a row in the sample
    """
    n = len(cache)
    starts = range(0, n, PIECE_ROWS)
    if n > most:
        pieces = max(1, most // PIECE_ROWS)
        starts = [(n - PIECE_ROWS) * i // max(1, pieces - 1) for i in range(pieces)]
    found = {
        "rows": 0, "of": n, "damaged": [], "won": 0, "actions": np.zeros(schema.ACTION_DIM, int),
        "legal": np.zeros(schema.ACTION_DIM, int), "tokens": np.zeros(schema.MAX_SEQ_LEN + 1, int),
        "places": np.zeros(4, int), "deltas": np.zeros(len(DELTA_EDGES) - 1, int),
        "finals": np.zeros((4, len(FINAL_EDGES) - 1), int),
    }
    before = set()
    for start in starts:
        try:
            rows = cache[start:start + PIECE_ROWS]
        except CacheError as e:
            found["damaged"].append(str(e))
            continue
        before = _count(found, rows, before)
    return found


def _count(found, rows, before):
    """Add the counts of some rows. Players of `before`, the piece before, are not counted again. Returns the players of
    this piece."""
    origin, outcome = rows["origin"], rows["outcome"]
    found["rows"] += len(rows["labels"])
    found["actions"] += np.bincount(rows["labels"], minlength=schema.ACTION_DIM)
    found["legal"] += rows["action_mask"].sum(axis=0, dtype=int)
    found["tokens"] += np.bincount(rows["attention_mask"].sum(axis=1, dtype=int), minlength=schema.MAX_SEQ_LEN + 1)
    found["places"] += np.bincount(outcome["final_rank"], minlength=5)[1:]
    found["won"] += int((outcome["hand_delta"] > 0).sum())
    found["deltas"] += _histogram(outcome["hand_delta"], DELTA_EDGES)
    players = set(zip(*(column.tolist() for column in (
        origin["game"], origin["seat"], outcome["final_score"], outcome["final_rank"])), strict=True))
    for place in range(4):
        scores = [score for _, _, score, rank in players - before if rank == place + 1]
        found["finals"][place] += _histogram(np.array(scores, int), FINAL_EDGES)
    return players


def _histogram(values, edges):
    return np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0]
