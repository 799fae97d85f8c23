"""From the log of a game to its rows."""

import numpy as np

from lib import game
from lib.mjlog import Unencodable
from lib.replay import replay
from lib.schema import ARRAYS, MAX_SEQ_LEN, TOKEN_FEATURES

ENCODER = {"name": "pipeline", "version": "1"}
ROW_BYTES = MAX_SEQ_LEN * TOKEN_FEATURES


def encode_game(data):
    """The rows of a game log (bytes) as {name: array of n rows}, shapes and dtypes as in schema.ARRAYS, origin.game 0.

    All or nothing: raises Unencodable, and nothing else, whatever the bytes.
    """
    hands, final = game.read(data)
    decisions, origin, outcome = [], [], []
    rank = [1 + sum((-points, seat) < (-final[me], me) for seat, points in enumerate(final)) for me in range(4)]
    for k, hand in enumerate(hands):
        try:
            found = replay(hand)
        except Unencodable as error:
            raise Unencodable(f"hand {k}: {error}") from None
        decisions += found
        for step, decision in enumerate(found):
            seat = decision.seat
            origin.append((0, k, seat, step))
            outcome.append((hand.after[seat] - hand.points[seat], final[seat], rank[seat]))
    n = len(decisions)
    lengths = np.array([len(d.row) for d in decisions]) // TOKEN_FEATURES
    tokens = np.frombuffer(bytearray().join(d.row.ljust(ROW_BYTES, b"\0") for d in decisions), np.uint8)
    tokens = tokens.reshape(n, MAX_SEQ_LEN, TOKEN_FEATURES)
    points = np.array([d.points for d in decisions], np.float64)
    return {
        "tokens": tokens,
        "scalars": scalars(tokens, points, np.array([d.seat for d in decisions])),
        "attention_mask": (np.arange(MAX_SEQ_LEN) < lengths[:, None]).astype(np.uint8),
        "action_mask": np.frombuffer(bytearray().join(d.mask for d in decisions), np.uint8).reshape(n, -1),
        "labels": np.array([d.label for d in decisions], np.int16),
        "origin": np.array(origin, ARRAYS["origin"][1]),
        "outcome": np.array(outcome, ARRAYS["outcome"][1]),
    }


def scalars(tokens, points, seats):
    n = len(tokens)
    out = np.zeros((n, MAX_SEQ_LEN, 4), np.float32)
    rows = np.arange(n)
    place = (tokens[:, :, 0] == 13).argmax(1)
    for owner in range(4):
        out[rows, place + 4 * owner, 0] = (points[:, owner] - 25000) / 25000
    others = points.copy()
    others[rows, seats] = -np.inf
    out[rows, place + 4 * seats, 1] = (points[rows, seats] - others.max(1)) / 25000
    for offset, scale in ((6, 8), (7, 4), (8, 70), (9, 18)):
        at = place + 12 + offset
        out[rows, at, 0] = tokens[rows, at, 2] / scale
    return out
