"""What a hand paid: the points of a log are compared with each other, and with those that the engine comes to."""

from .game import WIN, Hand, hand_name
from .mjlog import Unencodable


def difference(what, points, other, others):
    """Where the points of two sides differ: 'seat 0: log 25,000, engine 26,000; seat 2: …'; empty if nowhere. what,
    other: how the sides are called."""
    return "; ".join(f"seat {seat}: {what} {one:,}, {other} {two:,}"
                     for seat, (one, two) in enumerate(zip(points, others, strict=True)) if one != two)


def follow(hand, following):
    """Raises Unencodable unless the log goes on with the points that `hand` ended with.

    `following` is the next Hand, or the final points of the game. At the end of a game the first also gets the riichi
    sticks that nobody has won.
    """
    if isinstance(following, Hand):
        if following.points != hand.after:
            told = difference("INIT", following.points, "the hand before", hand.after)
            raise Unencodable(f"the next INIT does not follow ({told})")
        return
    gains = [final - after for final, after in zip(following, hand.after, strict=True)]
    if min(gains) < 0 or sum(gains) != max(gains) or sum(gains) % 1000:
        raise Unencodable(f"final points do not follow ({difference('owari', following, 'the last hand', hand.after)})")


def check(hand, following, scores, renchan, honba, sticks):
    """Raises Unencodable unless `hand` ended as the engine says: with these scores, and, if there is a next hand, with
    the dealer who stays or not (`renchan`), and with this number of honba and riichi sticks.

    `following` as above. The engine does not know liability (pao). So where somebody is liable, the log may differ by
    what that seat pays for others, and by nothing else.
    """
    if scores != list(hand.after) and not any(op == WIN and liable(hand, win, scores) for op, _, win in hand.events):
        told = difference("engine", scores, "log", hand.after)
        raise Unencodable(f"engine and log disagree on points ({told})")
    follow(hand, following)
    if not isinstance(following, Hand):
        if sum(following) - sum(hand.after) not in (0, 1000 * sticks):
            told = difference("owari", following, "the last hand", hand.after)
            raise Unencodable(f"final points do not follow ({told}; engine: {sticks} riichi sticks)")
        return
    expected = (4 * hand.wind + hand.dealer + (not renchan), honba, sticks)
    found = (4 * following.wind + following.dealer, following.honba, following.sticks)
    if expected != found:
        log, engine = (f"{hand_name(number, n)}, sticks {left}" for number, n, left in (found, expected))
        raise Unencodable(f"the next INIT does not follow (INIT: {log}; engine: {engine})")


def liable(hand, win, scores):
    """Whether the payment of the liable seat, `win.pao`, explains the difference between log and engine. It pays for
    one or more of the yakuman: after a tsumo what each other payer owes, after a ron half of what the loser owes. With
    or without the honba."""
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
