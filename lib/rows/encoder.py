"""From the log of a game to its rows."""

import numpy as np

from ..mahjong import game, points
from ..mahjong.judge import judge
from ..mahjong.mjlog import Unencodable
from .decisions import decisions
from .schema import ARRAYS, MAX_SEQ_LEN, TOKEN_FEATURES

ENCODER = {"name": "paipu", "version": "2"}

PIECE_ROWS = 64  # 500 kB: what is unfolded is still in the processor's cache when it is written
ROW_BYTES = MAX_SEQ_LEN * TOKEN_FEATURES
SCORE = 13  # the segment: one for each seat, four tokens apart
# tokens whose scalar is their count over a number: how far behind the last score they stand, and the number
COUNTED = ((6, 8), (7, 4), (8, 70), (9, 18))  # honba, sticks, tiles left, own discards


def encode_game(data, judged=True):
    """The rows of a game log (bytes) as {name: array of n rows}, shapes and dtypes as in schema.ARRAYS, origin.game 0.

    judged: whether the engine, too, has to play the game through, to the log's points; it does so in any case if there
    is a reason to doubt. All or nothing: raises Unencodable, and nothing else, whatever the bytes.
    """
    return unfold(encode_folded(data, judged))


def encode_folded(data, judged=True):
    """As `encode_game`, but without padding: a fifteenth of the bytes, for another process to `unfold`.

    text: the tokens of all rows, one after the other; lengths (n,): how many bytes each row has of it; points (n, 4):
    of all seats; the rest as in schema.ARRAYS.
    """
    hands, final, doubtful = game.read(data)
    first = hands[0]
    if first.wind or first.dealer or first.honba or first.sticks:
        raise Unencodable("incomplete: the log does not begin with east 1")
    rows, sizes = [], []
    judged = judged or doubtful
    for k, (hand, following) in enumerate(zip(hands, [*hands[1:], final], strict=True)):
        try:
            found = decisions(hand)
            (judge if judged else points.follow)(hand, following)
        except Unencodable as error:
            raise Unencodable(f"hand {k}: {error}") from None
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
    outcome["hand_delta"] = np.array([np.subtract(hand.after, hand.points) for hand in hands])[hand_of, seats]
    outcome["final_score"] = np.array(final)[seats]
    outcome["final_rank"] = places(final)[seats]
    return {
        "text": b"".join(texts),
        "lengths": np.array([len(text) for text in texts], np.int32),
        "points": np.array(scores, np.float64).reshape(n, 4),
        "action_mask": np.frombuffer(bytearray().join(masks), np.uint8).reshape(n, *ARRAYS["action_mask"][0]),
        "labels": np.array(labels, ARRAYS["labels"][1]),
        "origin": origin,
        "outcome": outcome,
    }


def pieces(folded):
    """Yield what `unfold` makes of it as several dicts, in order, each of some whole hands."""
    hands = np.flatnonzero(np.diff(folded["origin"]["hand"], prepend=-1)).tolist()
    ends = np.concatenate([[0], np.cumsum(folded["lengths"])]).tolist()
    first, n = 0, len(folded["lengths"])
    for stop in [*hands[1:], n]:
        if stop - first >= PIECE_ROWS or stop == n:
            rest = {name: array[first:stop] for name, array in folded.items() if name != "text"}
            yield unfold({"text": folded["text"][ends[first] : ends[stop]], **rest})
            first = stop


def unfold(folded):
    """The dense arrays of what `encode_folded` returned."""
    lengths, n = folded["lengths"], len(folded["lengths"])
    tokens = np.zeros((n, MAX_SEQ_LEN, TOKEN_FEATURES), np.uint8)
    flat, text, end = memoryview(tokens.reshape(-1)), memoryview(folded["text"]), 0
    for row, length in zip(range(0, n * ROW_BYTES, ROW_BYTES), lengths.tolist(), strict=True):
        flat[row : row + length] = text[end : end + length]
        end += length
    return {
        "tokens": tokens,
        "scalars": scalars(tokens, folded["points"], folded["origin"]["seat"].astype(np.intp)),
        "attention_mask": (np.arange(MAX_SEQ_LEN) < lengths[:, None] // TOKEN_FEATURES).view(np.uint8),
        **{name: folded[name] for name in ("action_mask", "labels", "origin", "outcome")},
    }


def places(final):
    """The place, 1 to 4, of each seat; of equals the lower seat is ahead."""
    order = sorted(range(4), key=lambda seat: (-final[seat], seat))
    return np.array([1 + order.index(seat) for seat in range(4)])


def scalars(tokens, points, seats):
    """The side channel of the tokens (n, 360, 5); `points` (n, 4) of all seats, `seats` (n,) that decide."""
    n = len(tokens)
    out = np.zeros((n, *ARRAYS["scalars"][0]), ARRAYS["scalars"][1])
    rows = np.arange(n)
    first = (tokens[:, :, 0] == SCORE).argmax(1)
    for owner in range(4):
        out[rows, first + 4 * owner, 0] = (points[:, owner] - 25000) / 25000
    others = points.copy()
    others[rows, seats] = -np.inf
    out[rows, first + 4 * seats, 1] = (points[rows, seats] - others.max(1)) / 25000
    for behind, unit in COUNTED:
        place = first + 12 + behind
        out[rows, place, 0] = tokens[rows, place, 2] / unit
    return out
