"""The facts of one cache row, schema version 3: array shapes and dtypes, segments, action numbers.

Every module that writes or reads rows takes them from here. The meaning of each is in the README's table and in the
schema page of the cache that the project was founded on: one row is one decision of one player.
"""

import numpy as np

SCHEMA_VERSION = 3
MAX_SEQ_LEN = 360
TOKEN_FEATURES = 5  # segment, tile, count, who, extra
SCALAR_DIM = 4
ACTION_DIM = 54

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
}

FIELD_VOCAB = {"segment": 30, "tile": 35, "count": 96, "who": 5, "extra": 256}

# what index.json says of it, for readers to check
DESCRIPTION = {
    "schema_version": SCHEMA_VERSION, "max_seq_len": MAX_SEQ_LEN, "token_features": TOKEN_FEATURES,
    "scalar_dim": SCALAR_DIM, "action_dim": ACTION_DIM, "field_vocab": FIELD_VOCAB,
    "dtypes": {name: dtype.name for name, (_, dtype) in ARRAYS.items() if not dtype.names},
}

NO_TILE = 34
TABLE = 4  # the value of `who` that means nobody in particular

# action numbers of pymahjong.MahjongEnv: 0-33 discard, then
DISCARD_RED = 34  # 34, 35, 36: red 5m, 5p, 5s
CHI = 37  # 37, 38, 39: called tile lowest, middle, highest; 40, 41, 42 the same with a red five from the hand
CHI_RED = 40
PON, PON_RED = 43, 44
ANKAN, MINKAN, KAKAN = 45, 46, 47
RIICHI, RON, TSUMO, NINE_TERMINALS, NO_RIICHI, PASS = 48, 49, 50, 51, 52, 53
