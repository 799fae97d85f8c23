"""What a hand paid: the engine's word against the log's."""

from .game import WIN, Hand
from .mjlog import Unencodable


def check(hand, following, result):
    """Raises Unencodable unless the engine's `result` of `hand` is what the log says, and fits what follows there.

    `following` is the next Hand, or the final points. The engine does not know liability (pao): there, the log may
    differ by what the liable seat pays for others, and by nothing else.
    """
    scores = list(result.score)
    if scores != list(hand.after) and not any(op == WIN and liable(hand, win, scores) for op, _, win in hand.events):
        raise Unencodable(f"engine and log disagree on points ({scores}, log {list(hand.after)})")
    if not isinstance(following, Hand):
        gains = [final - after for final, after in zip(following, hand.after, strict=True)]
        # sticks nobody won go to the first
        if min(gains) < 0 or sum(gains) not in (0, max(gains)) or max(gains) not in (0, 1000 * result.n_riichibo):
            raise Unencodable(f"final points do not follow ({list(following)}, before {list(hand.after)})")
        return
    turn = 4 * hand.wind + hand.dealer + (not result.renchan)
    expected = (hand.after, turn, result.n_honba, result.n_riichibo)
    found = (following.points, 4 * following.wind + following.dealer, following.honba, following.sticks)
    if expected != found:
        raise Unencodable(f"the next INIT does not follow ({found}, engine {expected})")


def liable(hand, win, scores):
    """Whether a payment of `win.pao` explains the difference: for some or all of the yakuman, the whole share of each
    other payer (tsumo) or half of the loser's (ron), with or without the honba."""
    difference = [log - engine for log, engine in zip(hand.after, scores, strict=True)]
    tsumo = win.loser == win.who
    payers = [seat for seat in range(4) if seat != win.who] if tsumo else [win.loser]
    worth = 48000 if hand.dealer == win.who else 32000
    for yakuman in range(1, 1 + (scores[win.who] - hand.points[win.who]) // worth):
        for honba in (0, hand.honba):
            moved = [0] * 4
            for seat in payers:
                if tsumo:
                    share = 100 * honba + yakuman * (16000 if hand.dealer in (seat, win.who) else 8000)
                else:
                    share = 300 * honba + yakuman * worth // 2
                moved[seat] += share
                moved[win.pao] -= share
            if win.pao >= 0 and moved == difference:
                return True
    return False
