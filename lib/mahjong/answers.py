"""The answers to a discard or a kan: who takes the tile, and which passes were choices, as the log proves."""

from . import action
from .game import ABORT, BYE, CALL, DORA, DRAW, RIICHI, UN, WIN
from .meld import CHI, MINKAN, NAMES, PON
from .mjlog import Unencodable
from .tile import RED

REDS = frozenset(RED)
KEEP_OPEN = (RIICHI, DORA, BYE, UN)  # events that do not answer anything
TAKING = (CHI, PON, MINKAN)


def answer_to(events, i):
    """The number of the event that answers event `i`, a discard or kan."""
    i += 1
    while events[i][0] in KEEP_OPEN:
        i += 1
    return i


def takers(events, j, actor, offered):
    """Who takes the tile that `actor` offers, by event `j`: {seat: its Meld, or None for ron}."""
    op, seat, what = events[j]
    if op == CALL and what.type in TAKING:
        if what.called != offered or (seat + what.source) % 4 != actor:
            raise Unencodable(f"{NAMES[what.type]} by seat {seat} of another tile")
        return {seat: what}
    if op == WIN:
        return {seat: None for op, seat, what in events[j:] if op == WIN and what.loser == actor != seat}
    if op == ABORT and what == "ron3":
        return {seat: None for seat in range(4) if seat != actor}
    return {}


def label(meld):
    """The action number of a call of another seat's discard, or of a ron (None)."""
    if meld is None:
        return action.RON
    if meld.type == CHI:
        place = (meld.own[0] < meld.called) + (meld.own[1] < meld.called)
        return place + (action.CHI_RED if has_red(meld.own) else action.CHI)
    if meld.type == PON:
        return action.PON_RED if has_red(meld.own) else action.PON
    return action.MINKAN


def has_red(own):
    return not REDS.isdisjoint(own)


def chosen(mask, event):
    """Whether a pass was a choice. It was, unless the answer, `event`, goes before what the seat could have done: then
    the seat may have pressed a button in vain."""
    op, _, what = event
    if op == DRAW or not any(mask[action.CHI : action.RON]):
        return True
    return op == CALL and what.type == CHI and 1 not in mask[action.CHI : action.PON]


def was_away(events, i, j, seat):
    """Whether `seat` lost its connection between the events `i` and `j`."""
    return any(op == BYE and who == seat for op, who, _ in events[i + 1 : j])
