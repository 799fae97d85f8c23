"""From the log of a game to its rows."""

import numpy as np

from ..mahjong import game
from ..mahjong.mjlog import Unencodable
from .folded import places, unfold
from .replay import replay
from .schema import ARRAYS, MAX_SEQ_LEN, TOKEN_FEATURES

ENCODER = {"name": "paipu", "version": "1"}

ROW_BYTES = MAX_SEQ_LEN * TOKEN_FEATURES


def encode_game(data):
    """The rows of a game log (bytes) as {name: array of n rows}, shapes and dtypes as in schema.ARRAYS, origin.game 0.

    All or nothing: raises Unencodable, and nothing else, whatever the bytes.
    """
    return unfold(encode_folded(data))


def encode_folded(data):
    """As `encode_game`, but as a folded of lib.rows.folded, with `final`, the points of the four seats at the end."""
    hands, final = game.read(data)
    first = hands[0]
    if first.wind or first.dealer or first.honba or first.sticks:
        raise Unencodable("incomplete: the log does not begin with east 1")
    rows, sizes = [], []
    for k, (hand, following) in enumerate(zip(hands, [*hands[1:], final], strict=True)):
        try:
            found = replay(hand, following)
        except Unencodable as error:
            raise Unencodable(f"hand {k}: {error}") from None
        rows += found
        sizes.append(len(found))
    n = len(rows)
    seats, labels, masks, texts, points = zip(*rows, strict=True) if rows else ((),) * 5
    if max(map(len, texts), default=0) > ROW_BYTES:
        raise Unencodable(f"a row of more than {MAX_SEQ_LEN} tokens")
    origin, outcome = (np.zeros(n, ARRAYS[name][1]) for name in ("origin", "outcome"))
    origin["hand"] = hand_of = np.repeat(np.arange(len(hands)), sizes)
    origin["seat"] = seats = np.array(seats, np.intp)
    origin["step"] = np.concatenate([np.arange(size) for size in sizes])
    deltas = np.array([np.subtract(hand.after, hand.points) for hand in hands], np.int32)[hand_of]
    outcome["hand_delta"] = deltas[np.arange(n), seats]
    outcome["final_score"] = np.array(final)[seats]
    outcome["final_rank"] = places(final)[seats]
    return {
        "text": b"".join(texts),
        "lengths": np.array([len(text) for text in texts], np.int32),
        "points": np.array(points, np.int32).reshape(n, 4),
        "deltas": deltas,
        "action_mask": np.frombuffer(bytearray().join(masks), np.uint8).reshape(n, *ARRAYS["action_mask"][0]),
        "labels": np.array(labels, ARRAYS["labels"][1]),
        "origin": origin,
        "outcome": outcome,
        "final": [int(score) for score in final],
    }
