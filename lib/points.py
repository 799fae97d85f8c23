"""What a hand paid: the engine's word against the log's."""

from lib.game import WIN
from lib.mjlog import Unencodable


def check(hand, scores):
    """Raises Unencodable unless the engine's `scores` after `hand` are the log's.

    The engine does not know liability (pao): there, the log may differ by what the liable seat pays for others, and by
    nothing else.
    """
    if tuple(scores) == hand.after or any(op == WIN and liable(hand, what, scores) for op, _, what in hand.events):
        return
    raise Unencodable(f"engine and log disagree on points ({list(scores)}, log {list(hand.after)})")


def liable(hand, win, scores):
    """Whether a payment of `win.pao` explains the difference: for one or two yakuman, the whole share of each other
    payer (tsumo) or half of the loser's (ron), with or without the honba."""
    difference = [log - engine for log, engine in zip(hand.after, scores, strict=True)]
    tsumo = win.loser == win.who
    payers = [seat for seat in range(4) if seat != win.who] if tsumo else [win.loser]
    for yakuman in (1, 2):
        for honba in (0, hand.honba):
            moved = [0] * 4
            for seat in payers:
                if tsumo:
                    share = 100 * honba + yakuman * (16000 if hand.dealer in (seat, win.who) else 8000)
                else:
                    share = 300 * honba + yakuman * (24000 if hand.dealer == win.who else 16000)
                moved[seat] += share
                moved[win.pao] -= share
            if win.pao >= 0 and moved == difference:
                return True
    return False
