"""The answers to a discard or a kan: who takes the tile, and which passes the log proves to be choices."""

import MahjongPyWrapper as pm

from ..mahjong.game import ABORT, BYE, CALL, DORA, DRAW, RIICHI, UN, WIN
from ..mahjong.meld import ANKAN, CHI, KAKAN, MINKAN, PON
from ..mahjong.mjlog import Unencodable
from ..mahjong.tile import RED
from . import schema

Act = pm.BaseAction
ACTS = {CHI: Act.Chi, PON: Act.Pon, MINKAN: Act.Kan, KAKAN: Act.KaKan, ANKAN: Act.AnKan}
NAMES = ("chi", "pon", "open kan", "added kan", "closed kan")
RESPONSE, ROB_ADDED, ROB_CLOSED = 4, 8, 12  # the engine's phases in which seat 0 answers
RONS = {RESPONSE: Act.Ron, ROB_ADDED: Act.ChanKan, ROB_CLOSED: Act.ChanAnKan}
REDS = frozenset(RED)
KEEP_OPEN = (RIICHI, DORA, BYE, UN)  # events that are no answer


def takers_of(events, j, actor, offered, base):
    """Who takes the tile that `actor` offers, by event `j`: {seat: (label, engine's act, own tiles, name)}."""
    op, seat, what = events[j]
    if op == CALL and what.type in (CHI, PON, MINKAN):
        if what.called != offered or (seat + what.source) % 4 != actor:
            raise Unencodable(f"{NAMES[what.type]} by seat {seat} of another tile")
        return {seat: (call_label(what), ACTS[what.type], list(what.own), NAMES[what.type])}
    ron = (schema.RON, RONS[base], [], "ron")
    if op == WIN:
        return {seat: ron for op, seat, what in events[j:] if op == WIN and what.loser == actor != seat}
    if op == ABORT and what == "ron3":
        return {seat: ron for seat in range(4) if seat != actor}
    return {}


def call_label(meld):
    """The action number of a call of another seat's discard."""
    if meld.type == CHI:
        return chi_label(meld.own, meld.called)
    if meld.type == PON:
        return schema.PON_RED if has_red(meld.own) else schema.PON
    return schema.MINKAN


def chi_label(own, called):
    """The action number of a chi of `called` with the two tiles `own`."""
    place = (own[0] < called) + (own[1] < called)
    return place + (schema.CHI_RED if has_red(own) else schema.CHI)


def has_red(own):
    return not REDS.isdisjoint(own)


def chosen(mask, event):
    """Whether a pass was a choice: the answer, `event`, did not pre-empt the least that the seat could have done."""
    op, _, what = event
    if op == DRAW or not any(mask[schema.CHI : schema.RON]):
        return True
    return op == CALL and what.type == CHI and 1 not in mask[schema.CHI : schema.PON]
