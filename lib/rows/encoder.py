"""From the log of a game to its rows: read it, play each hand by the rules, have the engine judge it, put rows
together."""

import numpy as np

from ..mahjong import game, points
from ..mahjong.judge import judge
from ..mahjong.mjlog import Unencodable
from .decisions import decisions
from .folded import places, unfold
from .schema import ARRAYS, MAX_SEQ_LEN, TOKEN_FEATURES

ENCODER = {"name": "paipu", "version": "2"}

ROW_BYTES = MAX_SEQ_LEN * TOKEN_FEATURES


def encode_game(data, judged=True):
    """The rows of a game log (bytes) as {name: array of n rows}, shapes and dtypes as in schema.ARRAYS, origin.game 0.

    judged: whether the engine must play the game too, and come to the points of the log. It must in any case if there
    is a reason to doubt, see lib.mahjong.game. Raises Unencodable, and nothing else, whatever the bytes are.
    """
    return unfold(encode_folded(data, judged))


def encode_folded(data, judged=True):
    """The same rows without padding, as a folded of lib.rows.folded; with `final`, the points of the four seats at the
    end of the game."""
    hands, final, doubtful = game.read(data)
    first = hands[0]
    if first.wind or first.dealer or first.honba or first.sticks:
        raise Unencodable("incomplete: the log does not begin with east 1")
    rows, sizes = [], []
    judged = judged or doubtful
    for hand, following in zip(hands, [*hands[1:], final], strict=True):
        try:
            found = decisions(hand)
            (judge if judged else points.follow)(hand, following)
        except Unencodable as error:
            raise Unencodable(f"{hand.name}: {error}") from None
        rows += found
        sizes.append(len(found))
    n = len(rows)
    seats, labels, masks, texts, scores = zip(*rows, strict=True) if rows else ((),) * 5
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
        "points": np.array(scores, np.int32).reshape(n, 4),
        "deltas": deltas,
        "action_mask": np.frombuffer(bytearray().join(masks), np.uint8).reshape(n, *ARRAYS["action_mask"][0]),
        "labels": np.array(labels, ARRAYS["labels"][1]),
        "origin": origin,
        "outcome": outcome,
        "final": [int(score) for score in final],
    }
