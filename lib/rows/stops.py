"""Where the encoder stops in a game that it cannot encode: the hand, the event, and what happened around it."""

from ..mahjong import game, tile
from ..mahjong.game import ABORT, BYE, CALL, DECLARE, DISCARD, DORA, DRAW, RIICHI, UN, WIN
from ..mahjong.judge import judge
from ..mahjong.meld import NAMES
from ..mahjong.mjlog import Unencodable
from .decisions import decisions

_BEFORE, _AFTER = 4, 2  # events that are shown beside the one at which it stops


def where(data):
    """Lines about the first event of a log (bytes) that cannot be; none if no single event is at fault."""
    try:
        hands, final, _ = game.read(data)
    except Unencodable:
        return []
    for hand, following in zip(hands, [*hands[1:], final], strict=True):
        try:
            decisions(hand)
            judge(hand, following)
        except Unencodable as error:
            return [] if error.event is None else _around(hand, error.event)
    return []


def _around(hand, event):
    first, last = max(0, event - _BEFORE), event + _AFTER
    shown = [f"{'>' if number == event else ' '} {_text(*hand.events[number])}"
             for number in range(first, min(last + 1, len(hand.events)))]
    return [f"{hand.name}: the encoder stops at event {event + 1} of {len(hand.events)}, marked >", *shown]


def _text(op, seat, what):
    """An event in words."""
    if op in (DRAW, DISCARD):
        return f"seat {seat} {'draws' if op == DRAW else 'discards'} {tile.name(what)}"
    if op == CALL:
        return f"seat {seat}: {NAMES[what.type]} {' '.join(map(tile.name, what.tiles))}"
    if op == WIN:
        return f"seat {seat} wins {'by tsumo' if what.loser == seat else f'on a tile of seat {what.loser}'}"
    if op == ABORT:
        return f"the hand is drawn ({what or 'no tile is left'})"
    if op == DORA:
        return f"new dora indicator {tile.name(what)}"
    return f"seat {seat} {({DECLARE: 'says riichi', RIICHI: 'pays for riichi', BYE: 'leaves', UN: 'is back'})[op]}"
