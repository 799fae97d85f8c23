"""What a hand paid: the log against itself, and the engine's word against the log's."""

from .game import WIN, Hand
from .mjlog import Unencodable


def follow(hand, following):
    """Raises Unencodable unless the points after `hand` are those with which the log goes on.

    `following` is the next Hand, or the final points: there, sticks that nobody won go to the first.
    """
    if isinstance(following, Hand):
        if following.points != hand.after:
            raise Unencodable(f"the next INIT does not follow ({following.points}, before {hand.after})")
        return
    gains = [final - after for final, after in zip(following, hand.after, strict=True)]
    if min(gains) < 0 or sum(gains) != max(gains) or sum(gains) % 1000:
        raise Unencodable(f"final points do not follow ({list(following)}, before {list(hand.after)})")


def check(hand, following, scores, renchan, honba, sticks):
    """Raises Unencodable unless `hand` left what the engine says: these scores, whether the dealer stays, and the honba
    and riichi sticks for the next hand.

    `following` as above. The engine does not know liability (pao): there, the log may differ by what the liable seat
    pays for others, and by nothing else.
    """
    if scores != list(hand.after) and not any(op == WIN and liable(hand, win, scores) for op, _, win in hand.events):
        raise Unencodable(f"engine and log disagree on points ({scores}, log {list(hand.after)})")
    follow(hand, following)
    if not isinstance(following, Hand):
        if sum(following) - sum(hand.after) not in (0, 1000 * sticks):
            raise Unencodable(f"final points do not follow ({list(following)}, before {list(hand.after)})")
        return
    expected = (4 * hand.wind + hand.dealer + (not renchan), honba, sticks)
    found = (4 * following.wind + following.dealer, following.honba, following.sticks)
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
