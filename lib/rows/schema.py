"""The facts of one cache row, schema version 3: one decision of one player. Whoever writes or reads rows takes them
here.

TOKENS  five numbers: segment, tile, count, who, extra. Tiles: 0-8 = 1m-9m, 9-17 = 1p-9p, 18-26 = 1s-9s, 27-33 = east
south west north haku hatsu chun, 34 none; a red five has its five's number and bit 0 of `extra`, aka. who: 0 the
player, 1 the next (shimocha), 2 across (toimen), 3 the previous (kamicha), 4 the table. Where nothing is said count is
1, extra 0, tile 34, and the scalars are 0. In the order in which they stand in a row, "seats" being the absolute ones,
0 to 3:

     1  hand, without the tile just drawn: each kind, plain before red; count how many; extra aka
     2  the tile just drawn; extra aka
    27  for each seat, for each of its melds: count 0 chi, 1 pon, 2 open kan, 3 added kan, 4 closed kan; extra whom it
        was taken from, relative to its owner, 4 for a closed kan; then
     3  (own) or 4 (others') each tile of that meld; extra aka | type << 1
     5  (own) or 6 (others') for each seat, its discards in order; count the number of the discard in the hand, at most
        95; extra aka | riichi << 1 (from the declaring discard on) | from the hand << 2
     7  dora indicators that are open; extra aka          9  the dora that each shows
    10  for each seat: count 1 in riichi, extra 1 if double; then 11: count 1 if ippatsu is alive; then 12: count 1 if
        the hand is closed; then 13: count (score, held within -10000 and 70000, + 10000) // 5000, scalars (score -
        25000) / 25000 and, for oneself, (score - best other) / 25000
    14  count the round's wind, 0 east        15  count the own wind        25, 26  count the dealer's seat, 26 with
        extra the dealer relative to oneself        28  count 4 * wind + dealer
    16  count honba, scalar / 8        17  count riichi sticks, scalar / 4        18  count tiles left, scalar / 70
    29  count own discards, scalar / 18
    20  the tile to be answered, who played it; or in the second step of riichi the tile about to be discarded
    21  count the engine's phase (0-3 turn of a seat, 4-7 answer, 8-11 robbing an added kan, 12-15 a closed one); extra
        1 in the second step of riichi          22  count 0 own turn, 1 answer, 2 robbing a kan
    23  each kind the player sees: count how many        24  for each seat, each kind in its river

MASK AND LABEL  A row has at least two legal actions, and the label is one of them. Riichi takes two rows: the discard
(without 48 and 52), then 48 or 52. A pass is a row only where the log proves that it was a choice. While a player is
away the server plays, and there is no row.

ORIGIN  game: index into `games` of the shard's meta.json; hand: from 0; seat: absolute; step: of the decision in its
hand. OUTCOME  hand_delta: points after the hand minus at its start; final_score; final_rank 1-4, ties to the lower
seat. DELTAS  hand_delta of the four seats.
"""

import numpy as np

from ..mahjong import action

SCHEMA_VERSION = 3
MAX_SEQ_LEN = 360
TOKEN_FEATURES = 5  # segment, tile, count, who, extra
SCALAR_DIM = 4
ACTION_DIM = action.COUNT

ORIGIN = np.dtype([("game", "<i4"), ("hand", "u1"), ("seat", "u1"), ("step", "<u2")])
OUTCOME = np.dtype([("hand_delta", "<i4"), ("final_score", "<i4"), ("final_rank", "u1")])

# name -> (shape of one row, dtype), in the order in which a shard lists them
ARRAYS = {
    "tokens": ((MAX_SEQ_LEN, TOKEN_FEATURES), np.dtype("u1")),
    "scalars": ((MAX_SEQ_LEN, SCALAR_DIM), np.dtype("<f4")),
    "attention_mask": ((MAX_SEQ_LEN,), np.dtype("u1")),
    "action_mask": ((ACTION_DIM,), np.dtype("u1")),
    "labels": ((), np.dtype("<i2")),
    "origin": ((), ORIGIN),
    "outcome": ((), OUTCOME),
    "deltas": ((4,), np.dtype("<i4")),
}
UNKNOWN = np.iinfo("i4").min  # deltas of rows that come from a dense shard of before there were any

FIELD_VOCAB = {"segment": 30, "tile": 35, "count": 96, "who": 5, "extra": 256}

# what index.json says of it, for readers to check
DESCRIPTION = {
    "schema_version": SCHEMA_VERSION, "max_seq_len": MAX_SEQ_LEN, "token_features": TOKEN_FEATURES,
    "scalar_dim": SCALAR_DIM, "action_dim": ACTION_DIM, "field_vocab": FIELD_VOCAB,
    "dtypes": {name: dtype.name for name, (_, dtype) in ARRAYS.items() if not dtype.names and name != "deltas"},
}

NO_TILE = 34
TABLE = 4  # the value of `who` that means nobody in particular
