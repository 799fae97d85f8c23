"""Drive pymahjong's engine through a hand, and gather the decisions that its log proves.

Every action is checked against the engine, and so are the points in the end. `PaipuReplayer` asks all four seats after
each discard and each added or closed kan, in seat order; selection 0 is always the pass.
"""

import MahjongPyWrapper as pm
import numpy as np

from ..mahjong import points, tile, wall
from ..mahjong.game import BYE, DRAW
from ..mahjong.meld import ANKAN, KAKAN, MINKAN, PON
from ..mahjong.mjlog import Unencodable
from ..mahjong.tile import AKA, KIND
from . import schema
from .answers import ACTS, KEEP_OPEN, NAMES, RESPONSE, ROB_ADDED, ROB_CLOSED, chi_label, chosen, has_red, takers_of
from .board import Board, token

Act = pm.BaseAction
encode_action = pm.encv1_encode_action
new_engine = pm.PaipuReplayer
OVER = 16  # the engine's phase when a hand has ended
SEATS = (0, 1, 2, 3)
RED_PLACE = [tile.ORDER[red] for red in tile.RED]
DISCARD_OF = ["discard of " + tile.name(t) for t in range(136)]
RIICHI_WITH = ["riichi with " + tile.name(t) for t in range(136)]

NOTHING = bytes(schema.ACTION_DIM)
STEP2, ONLY_PASS = (
    bytes(int(action in actions) for action in range(schema.ACTION_DIM))
    for actions in ((schema.RIICHI, schema.NO_RIICHI), (schema.PASS,))
)


class Replay:
    """One hand on its way through the engine. `rows` collects (seat, label, mask, tokens, points of the four seats)."""

    def __init__(self, hand):
        tiles = wall.build(hand)  # first: it refuses a hand with a tile that shows twice
        self.events = hand.events
        self.board = Board(hand)
        self.away = set(hand.away)
        self.rows = []
        self.turn = None  # the seat to move, while it is somebody's own turn
        self.mask = NOTHING  # what it may do,
        self.pending = None  # the tokens of that decision, if it is one,
        self.turn_away = False  # and whether the server played for it
        self.can_riichi = 0
        self.declared = None  # the seat that said riichi and has not paid yet
        self.answer = -1  # the event that answers the last discard or kan,
        self.takers = {}  # and who takes the tile by it: {seat: (label, act, own tiles, name)}
        self.bits = bytearray(schema.ACTION_DIM)
        self.buffer = np.frombuffer(self.bits, np.int8)
        self.engine = new_engine()
        self.engine.init(tiles, list(hand.points), hand.sticks, hand.honba, hand.wind, hand.dealer)
        self.table = self.engine.table

    def run(self):
        play = (self.draw, self.discard, self.call, self.declare, self.accept, self.dora, self.bye, self.un)
        play += (self.win, self.abort)  # by event number
        for i, (op, seat, what) in enumerate(self.events):
            play[op](i, seat, what)
        if self.engine.get_phase() != OVER:
            raise Unencodable("engine and log disagree on the end")

    def open_turn(self, seat, what):
        """It is the turn of `seat`, who has drawn or called."""
        if self.turn is not None or self.engine.get_phase() != seat:
            raise Unencodable(f"{what} by seat {seat} out of turn")
        if self.declared is not None:
            raise Unencodable(f"riichi by seat {self.declared} is never paid")
        bits = self.bits
        bits[:] = NOTHING
        encode_action(self.table, seat, self.buffer)
        self.can_riichi = bits[schema.RIICHI]
        bits[schema.RIICHI] = bits[schema.NO_RIICHI] = 0
        self.mask = bytes(bits)
        self.turn = seat
        self.turn_away = seat in self.away
        self.pending = self.board.row(seat, seat) if bits.count(1) > 1 else None

    def close_turn(self, seat, label, act, own, what):
        """The seat whose turn it is takes action `label`; `act` with the tiles `own`, for the engine."""
        if self.turn != seat:
            raise Unencodable(f"{what} by seat {seat} out of turn")
        if not self.mask[label]:
            raise Unencodable(f"engine refuses {what} by seat {seat}")
        self.turn = None
        if self.pending and not self.turn_away:
            self.rows.append((seat, label, self.mask, self.pending, self.board.points))
        if self.can_riichi and act in (Act.Discard, Act.Riichi):
            self.riichi_step(seat, own[0], act)
        if not self.engine.make_selection_from_action(act, own):
            raise Unencodable(f"engine refuses {what} by seat {seat}")

    def riichi_step(self, seat, thrown, act):
        """Riichi or not, once the tile is chosen: a decision only where that tile allows it."""
        if KIND[thrown] in map(int, pm.encv1_get_riichi_tiles(self.table)) and not self.turn_away:
            row = self.board.row(seat, seat, token(20, KIND[thrown], 1, 0, AKA[thrown]), 1)
            label = schema.RIICHI if act == Act.Riichi else schema.NO_RIICHI
            self.rows.append((seat, label, STEP2, row, self.board.points))

    def respond(self, i, actor, offered, base):
        """All four seats answer event `i`, a discard or kan of `actor`; `base` is the phase of seat 0's answer."""
        events, bits, buffer, table = self.events, self.bits, self.buffer, self.table
        select = self.engine.make_selection
        j = i + 1
        while events[j][0] in KEEP_OPEN:
            j += 1
        self.answer = j
        self.takers = takers = takers_of(events, j, actor, offered, base) if events[j][0] != DRAW else {}
        if self.engine.get_phase() != base:
            raise Unencodable("engine and log disagree on whose turn it is")
        if base == RESPONSE and table.n_active_dora != self.board.indicators:
            raise Unencodable("engine and log disagree on the dora indicators")
        for seat in SEATS:
            if seat != actor:
                bits[:] = NOTHING
                encode_action(table, seat, buffer)
                if bits != ONLY_PASS or seat in takers:
                    self.decide(i, seat, takers.get(seat), actor, offered, base)
            if seat not in takers:
                select(0)
            else:
                _, act, own, what = takers[seat]
                if not self.engine.make_selection_from_action(act, own):
                    raise Unencodable(f"engine refuses {what} by seat {seat}")

    def decide(self, i, seat, taker, actor, offered, base):
        """What `seat`, who has a choice, answers to event `i`."""
        mask = self.exact(seat, offered)
        label = taker[0] if taker else schema.PASS
        if not mask[label]:
            raise Unencodable(f"engine refuses {taker[3]} by seat {seat}")
        away = seat in self.away or any(op == BYE and who == seat for op, who, _ in self.events[i + 1 : self.answer])
        if mask.count(1) > 1 and not away and (taker or chosen(mask, self.events[self.answer])):
            last = token(20, KIND[offered], 1, (actor - seat) & 3, AKA[offered])
            self.rows.append((seat, label, mask, self.board.row(seat, base + seat, last), self.board.points))

    def exact(self, seat, offered):
        """The mask in self.bits, corrected: the engine's encoder does not tell calls with a red five from others."""
        bits = self.bits
        if 1 in bits[schema.CHI_RED : schema.PON_RED + 1]:
            if offered < 108 and self.board.held[seat][RED_PLACE[offered // 36]]:
                bits[schema.CHI : schema.PON_RED + 1] = bytes(8)
                for action in self.engine.get_response_actions():
                    own = [t.id for t in action.correspond_tiles]
                    if action.action == Act.Pon:
                        bits[schema.PON_RED if has_red(own) else schema.PON] = 1
                    elif action.action == Act.Chi:
                        bits[chi_label(own, offered)] = 1
            else:
                bits[schema.CHI_RED : schema.PON] = bytes(3)
                bits[schema.PON_RED] = 0
        return bytes(bits)

    # the events

    def draw(self, _, seat, drawn):
        self.board.draw(seat, drawn)
        self.open_turn(seat, "draw")

    def discard(self, i, seat, thrown):
        kind = KIND[thrown]
        label = schema.DISCARD_RED + kind // 9 if AKA[thrown] else kind
        if self.declared == seat:
            self.close_turn(seat, label, Act.Riichi, [thrown], RIICHI_WITH[thrown])
        else:
            self.close_turn(seat, label, Act.Discard, [thrown], DISCARD_OF[thrown])
        self.board.discard(seat, thrown)
        self.respond(i, seat, thrown, RESPONSE)

    def call(self, i, seat, meld):
        name = NAMES[meld.type]
        if meld.type in (KAKAN, ANKAN):
            if meld.type == KAKAN and (PON, meld.called, meld.source) not in [
                (other.type, other.called, other.source) for other in self.board.melds[seat]
            ]:
                raise Unencodable(f"added kan by seat {seat} without its pon")
            label = schema.KAKAN if meld.type == KAKAN else schema.ANKAN
            self.close_turn(seat, label, ACTS[meld.type], list(meld.own), name)
            self.board.call(seat, meld)
            self.respond(i, seat, meld.own[0], ROB_ADDED if meld.type == KAKAN else ROB_CLOSED)
            self.board.end_ippatsu()
        elif i != self.answer:
            raise Unencodable(f"{name} by seat {seat} out of turn")
        else:
            self.board.call(seat, meld)
            self.board.end_ippatsu()
            if meld.type != MINKAN:
                self.open_turn(seat, name)

    def declare(self, _, seat, __):
        if self.turn != seat or self.declared is not None:
            raise Unencodable(f"riichi by seat {seat} out of turn")
        self.declared = seat
        self.board.declare(seat)

    def accept(self, _, seat, __):
        if self.turn is not None or self.declared != seat:
            raise Unencodable(f"riichi stick by seat {seat} out of turn")
        self.declared = None
        self.board.accept(seat)

    def dora(self, _, __, indicator):
        self.board.dora(indicator)

    def bye(self, _, seat, __):
        self.away.add(seat)
        self.turn_away |= seat == self.turn

    def un(self, _, seat, __):
        self.away.discard(seat)

    def win(self, _, seat, win):
        if win.loser == seat:
            self.close_turn(seat, schema.TSUMO, Act.Tsumo, [], "tsumo")
        elif self.turn is not None or seat not in self.takers:
            raise Unencodable(f"ron by seat {seat} out of turn")

    def abort(self, i, _, kind):
        if kind == "yao9" and self.turn is not None:
            self.close_turn(self.turn, schema.NINE_TERMINALS, Act.Kyushukyuhai, [], "nine terminals")
        elif self.turn is not None or i != self.answer:
            raise Unencodable("the hand is drawn out of turn")


def replay(hand, following):
    """The decisions of one Hand in order, as in Replay.rows. Raises Unencodable where engine and log disagree.

    `following` is the next Hand of the game, or the final points if there is none.
    """
    try:
        run = Replay(hand)
        run.run()
    except RuntimeError as error:  # the C++ of the engine throws nothing else
        raise Unencodable(f"engine fails: {' '.join(str(error).split())[:100]}") from None
    points.check(hand, following, run.engine.get_result())
    return run.rows
