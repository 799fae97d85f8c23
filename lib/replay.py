"""Drive pymahjong's engine through a hand, and gather the decisions that its log proves.

Every action is checked against the engine, and so are the points in the end. `PaipuReplayer` asks all four seats after
each discard and each added or closed kan, in seat order; selection 0 is always the pass.
"""

from typing import NamedTuple

import MahjongPyWrapper as pm
import numpy as np

from lib import points, schema, tile, wall
from lib.board import Board, token
from lib.game import ABORT, BYE, CALL, DECLARE, DISCARD, DORA, DRAW, RIICHI, UN, WIN
from lib.meld import ANKAN, CHI, KAKAN, MINKAN, PON
from lib.mjlog import Unencodable
from lib.tile import AKA, KIND

Act = pm.BaseAction
ACTS = {CHI: Act.Chi, PON: Act.Pon, MINKAN: Act.Kan, KAKAN: Act.KaKan, ANKAN: Act.AnKan}
NAMES = ("chi", "pon", "open kan", "added kan", "closed kan")
RESPONSE, ROB_ADDED, ROB_CLOSED, OVER = 4, 8, 12, 16
RONS = {RESPONSE: Act.Ron, ROB_ADDED: Act.ChanKan, ROB_CLOSED: Act.ChanAnKan}
STEP2 = bytes(int(action in (schema.RIICHI, schema.NO_RIICHI)) for action in range(schema.ACTION_DIM))
KEEP_OPEN = (RIICHI, DORA, BYE, UN)  # events that do not close the answers to a discard


class Decision(NamedTuple):
    seat: int
    label: int
    mask: bytes
    row: bytes
    points: tuple


class Replay:
    """One hand on its way through the engine."""

    def __init__(self, hand):
        self.hand = hand
        self.board = Board(hand)
        self.away = set(hand.away)
        self.decisions = []
        self.turn = None  # the seat to move, while it is somebody's own turn
        self.mask = b""  # what it may do
        self.pending = None  # the row of that decision, if it is one
        self.answer = -1  # index of the event that answers the last discard or kan
        self.declared = None  # the seat that said riichi and has not paid yet
        self.buffer = np.zeros(schema.ACTION_DIM, np.int8)
        self.engine = pm.PaipuReplayer()
        self.engine.init(wall.build(hand), list(hand.points), hand.sticks, hand.honba, hand.wind, hand.dealer)
        self.table = self.engine.table

    def run(self):
        """Play all events. Returns the decisions."""
        play = {
            DRAW: self.draw, DISCARD: self.discard, CALL: self.call, DECLARE: self.declare, RIICHI: self.accept,
            DORA: self.dora, BYE: self.bye, UN: self.un, WIN: self.win, ABORT: self.abort,
        }  # fmt: skip
        for i, (op, seat, what) in enumerate(self.hand.events):
            play[op](i, seat, what)
        if self.engine.get_phase() != OVER:
            raise Unencodable("engine and log disagree on the end")
        return self.decisions

    def options(self, seat):
        self.buffer.fill(0)
        pm.encv1_encode_action(self.table, seat, self.buffer)
        return self.buffer.tobytes()

    def select(self, act, own, what, seat):
        if not self.engine.make_selection_from_action(act, own):
            raise Unencodable(f"engine refuses {what} by seat {seat}")

    def decide(self, seat, label, mask, row):
        self.decisions.append(Decision(seat, label, mask, row, tuple(self.board.points)))

    def open_turn(self, seat):
        mask = self.options(seat)
        self.riichi_possible = mask[schema.RIICHI]
        if self.riichi_possible:
            mask = mask[: schema.RIICHI] + b"\0" + mask[49:52] + b"\0\0"
        self.turn = seat
        self.mask = mask
        self.turn_away = seat in self.away
        self.pending = self.board.row(seat, seat) if mask.count(1) > 1 else None

    def close_turn(self, seat, label, what):
        """The seat whose turn it is takes action `label`."""
        if self.turn != seat:
            raise Unencodable(f"{what} by seat {seat} out of turn")
        if not self.mask[label]:
            raise Unencodable(f"engine refuses {what} by seat {seat}")
        if self.pending and not self.turn_away:
            self.decide(seat, label, self.mask, self.pending)
        self.turn = None

    def draw(self, i, seat, tile_):
        if self.turn is not None or self.engine.get_phase() != seat:
            raise Unencodable(f"draw by seat {seat} out of turn")
        self.pay_check()
        self.board.draw(seat, tile_)
        self.open_turn(seat)

    def discard(self, i, seat, tile_):
        what = f"discard of {tile.name(tile_)}"
        kind = KIND[tile_]
        self.close_turn(seat, schema.DISCARD_RED + kind // 9 if AKA[tile_] else kind, what)
        act = Act.Riichi if self.declared == seat else Act.Discard
        if self.riichi_possible and kind in map(int, pm.encv1_get_riichi_tiles(self.table)) and not self.turn_away:
            row = self.board.row(seat, seat, token(20, kind, 1, 0, AKA[tile_]), 1)
            self.decide(seat, schema.RIICHI if act == Act.Riichi else schema.NO_RIICHI, STEP2, row)
        self.select(act, [tile_], what if act == Act.Discard else f"riichi with {tile.name(tile_)}", seat)
        self.board.discard(seat, tile_)
        self.respond(i, seat, tile_, RESPONSE)

    def respond(self, i, actor, tile_, base):
        """All four seats answer the discard or kan of `actor`, the event `i`."""
        events = self.hand.events
        j = next(j for j in range(i + 1, len(events)) if events[j][0] not in KEEP_OPEN)
        self.answer = j
        op, caller, what = events[j]
        away = self.away.union(seat for op_, seat, _ in events[i + 1 : j] if op_ == BYE)
        winners = ()
        if op == WIN:
            winners = [seat for op_, seat, _ in events[j:] if op_ == WIN]
        elif op == ABORT and what == "ron3":
            winners = [seat for seat in range(4) if seat != actor]
        if op != CALL or what.type not in (CHI, PON, MINKAN):
            caller = None
        if self.engine.get_phase() != base:
            raise Unencodable("engine and log disagree on the phase")
        rank = 3 if winners or op == ABORT else 0 if caller is None else 1 if what.type == CHI else 2
        for seat in range(4):
            if seat == actor:
                self.engine.make_selection(0)
                continue
            mask = self.options(seat)
            if 1 in mask[schema.CHI : schema.PON_RED + 1]:
                mask = self.exact(mask, tile_)
            label = schema.RON if seat in winners else call_label(what) if seat == caller else schema.PASS
            if not mask[label]:
                raise Unencodable(f"engine refuses {'ron' if seat in winners else NAMES[what.type]} by seat {seat}")
            if mask.count(1) > 1 and seat not in away and (label != schema.PASS or lowest(mask) > rank or lowest(mask) == 3):
                last = token(20, KIND[tile_], 1, (actor - seat) % 4, AKA[tile_])
                self.decide(seat, label, mask, self.board.row(seat, base + seat, last))
            if seat in winners:
                self.select(RONS[base], [], "ron", seat)
            elif seat == caller:
                self.select(ACTS[what.type], list(what.own), NAMES[what.type], seat)
            else:
                self.engine.make_selection(0)

    def exact(self, mask, tile_):
        """The engine's encoder does not tell calls with a red five from those without; its list of actions does."""
        bits = bytearray(mask)
        bits[schema.CHI : schema.PON_RED + 1] = bytes(8)
        for action in self.engine.get_response_actions():
            own = action.correspond_tiles
            red = any(t.red_dora for t in own)
            if action.action == Act.Pon:
                bits[schema.PON + red] = 1
            elif action.action == Act.Chi:
                place = sum(int(t.tile) < KIND[tile_] for t in own)
                bits[(schema.CHI_RED if red else schema.CHI) + place] = 1
        return bytes(bits)

    def call(self, i, seat, meld):
        name = NAMES[meld.type]
        if meld.type in (KAKAN, ANKAN):
            self.close_turn(seat, schema.KAKAN if meld.type == KAKAN else schema.ANKAN, name)
            self.select(ACTS[meld.type], list(meld.own), name, seat)
            self.board.call(seat, meld)
            self.respond(i, seat, meld.own[0], ROB_ADDED if meld.type == KAKAN else ROB_CLOSED)
            return
        if self.turn is not None or i != self.answer or self.engine.get_phase() != seat:
            raise Unencodable(f"{name} by seat {seat} out of turn")
        self.pay_check()
        self.board.call(seat, meld)
        if meld.type != MINKAN:
            self.open_turn(seat)

    def declare(self, i, seat, _):
        if self.turn != seat or self.declared is not None:
            raise Unencodable(f"riichi by seat {seat} out of turn")
        self.declared = seat
        self.board.declare(seat)

    def accept(self, i, seat, _):
        if self.turn is not None or self.declared != seat:
            raise Unencodable(f"riichi stick by seat {seat} out of turn")
        self.declared = None
        self.board.accept(seat)

    def pay_check(self):
        if self.declared is not None:
            raise Unencodable(f"riichi by seat {self.declared} is never paid")

    def dora(self, i, _, indicator):
        self.board.dora(indicator)

    def bye(self, i, seat, _):
        self.away.add(seat)
        if seat == self.turn:
            self.turn_away = True

    def un(self, i, seat, _):
        self.away.discard(seat)

    def win(self, i, seat, win):
        if win.loser == seat:
            self.close_turn(seat, schema.TSUMO, "tsumo")
            self.select(Act.Tsumo, [], "tsumo", seat)
        elif self.turn is not None or i < self.answer:
            raise Unencodable(f"ron by seat {seat} out of turn")

    def abort(self, i, _, type_):
        if type_ == "yao9" and self.turn is not None:
            seat = self.turn
            self.close_turn(seat, schema.NINE_TERMINALS, "nine terminals")
            self.select(Act.Kyushukyuhai, [], "nine terminals", seat)
        elif self.turn is not None or i != self.answer:
            raise Unencodable("draw out of turn")


def lowest(mask):
    """The rank of the weakest thing that a seat could do other than pass: 1 chi, 2 pon or kan, 3 ron."""
    if 1 in mask[schema.CHI : schema.PON]:
        return 1
    return 2 if 1 in mask[schema.PON : schema.RON] else 3


def call_label(meld):
    if meld.type == MINKAN:
        return schema.MINKAN
    red = any(AKA[t] for t in meld.own)
    if meld.type == PON:
        return schema.PON + red
    return (schema.CHI_RED if red else schema.CHI) + meld.tiles.index(meld.called)


def replay(hand):
    """The Decisions of one Hand in order. Raises Unencodable where engine and log disagree."""
    run = Replay(hand)
    decisions = run.run()
    points.check(hand, run.engine.get_result().score)
    return decisions
