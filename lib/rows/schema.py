"""What a row of the cache means, schema version 3. A row is one decision of one player.

Tokens are made in lib/rows/board.py, in the order of the table below. lib/rows/decisions.py decides which decisions of
a log become rows, and lib/mahjong/legality.py what is legal. lib/rows/folded.py adds the scalars and the padding. All
other code takes numbers and types from here; yours too, once paipu_cache is installed by pip (see README.md):

    from paipu_cache.rows import schema

ARRAYS of each row:

    tokens           (360, 5) uint8     five numbers a token: segment, tile, count, who, extra; then zeros
    scalars          (360, 4) float32   real numbers that belong to the same token; only the first two columns are used
    attention_mask   (360,) uint8       1 where a token stands
    action_mask      (54,) uint8        1 where the action is legal
    labels           () int16           the action that the player took
    origin           game i4, hand u1, seat u1, step u2: index into `games` of the shard's meta.json; hand of the game,
                     from 0; absolute seat; decision of that hand, from 0, counting all four players
    outcome          hand_delta i4, final_score i4, final_rank u1: the player's points after the hand minus those before
                     it; points at the end of the game; place 1 to 4, where of equal scores the lower seat is ahead
    deltas           (4,) int32         hand_delta of each of the four seats

ACTIONS are those of pymahjong.MahjongEnv: 0-33 discard that tile (not the red five); 34, 35, 36 discard the red 5m, 5p,
5s; 37, 38, 39 chi with the called tile lowest, in the middle, highest, and 40, 41, 42 the same with a red five of the
own hand; 43 pon, 44 pon with a red five of the own hand; 45 closed kan, 46 open kan, 47 added kan; 48 riichi, 49 ron,
50 tsumo, 51 nine terminals, 52 no riichi, 53 pass.

MASK AND LABEL. A row has at least two legal actions, and the label is one of them. The mask is exactly what Tenhou's
rules allow. Riichi takes two rows: first the discard, where 48 and 52 are not legal; then, if riichi is possible with
that tile, 48 or 52. A pass is a row only where the log proves that it was a choice: not if the call of another player
may have come first. While a player is away, the server plays, and there is no row.

TOKENS. Tiles: 0-8 = 1m-9m, 9-17 = 1p-9p, 18-26 = 1s-9s, 27-33 = east south west north haku hatsu chun, 34 no tile. A
red five has the number of its five, and bit 0 of `extra`, called aka, is 1. who: 0 the player, 1 the next player
(shimocha), 2 across (toimen), 3 the previous one (kamicha), 4 the table. If the table says nothing else, count is 1,
extra 0, tile 34, and the scalars are 0. The tokens of a row stand in this order, by segment; "for each seat" means
absolute seats 0 to 3. Rows have 118 tokens on average, and 246 at most in real games:

     1  own hand, without the tile just drawn: each kind, plain before red; count how many; extra aka
     2  the tile just drawn; extra aka
    27  for each seat, for each of its melds: count 0 chi, 1 pon, 2 open kan, 3 added kan, 4 closed kan; extra whom it
        was taken from, relative to its owner (1, 2, 3), 4 for a closed kan; then
     3  (own) or 4 (others') each tile of that meld; extra aka | type << 1, the type as in 27
     5  (own) or 6 (others') for each seat, its discards in order; count the number of the discard among all discards of
        the hand, at most 95; extra aka | riichi << 1 (from the declaring discard on) | from the hand << 2. A tile that
        was called away stays here
     7  each open dora indicator; extra aka          9  the dora that each of them shows
    10  for each seat: count 1 in riichi, extra 1 if double; then 11: count 1 if ippatsu is alive; then 12: count 1 if
        the hand is closed; then 13: count (score, held within -10000 and 70000, + 10000) // 5000, scalars (score -
        25000) / 25000 and, for the player only, (score - best other score) / 25000
    14  count the round's wind, 0 east        15  count the player's own wind        25, 26  count the dealer's seat; 26
        has in extra the dealer relative to the player        28  count 4 * wind + dealer
    16  count honba, scalar honba / 8        17  count riichi sticks, scalar sticks / 4
    18  count tiles left to draw, scalar left / 70        29  count own discards, scalar discards / 18
    20  when answering: the tile that can be taken, who played it; in the second row of riichi: the tile about to be
        discarded, who 0; extra aka
    21  count the engine's phase (0-3 turn of that seat, 4-7 answer to a discard, 8-11 to an added kan, 12-15 to a
        closed kan); extra 1 in the second row of riichi        22  count 0 own turn, 1 answer, 2 robbing a kan
    23  each kind that the player sees: count how many        24  for each seat, each kind in its river

Segments 0 (padding), 8 and 19 do not occur. What the player could not see is in no token. If a row would have more than
360 tokens, the game fails to encode.
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
UNKNOWN = np.iinfo("i4").min  # deltas of rows from an old dense shard, which has none

FIELD_VOCAB = {"segment": 30, "tile": 35, "count": 96, "who": 5, "extra": 256}

# what index.json says about the rows, for readers to check
DESCRIPTION = {
    "schema_version": SCHEMA_VERSION, "max_seq_len": MAX_SEQ_LEN, "token_features": TOKEN_FEATURES,
    "scalar_dim": SCALAR_DIM, "action_dim": ACTION_DIM, "field_vocab": FIELD_VOCAB,
    "dtypes": {name: dtype.name for name, (_, dtype) in ARRAYS.items() if not dtype.names and name != "deltas"},
}

NO_TILE = 34
TABLE = 4  # the value of `who` for tokens that belong to no player
