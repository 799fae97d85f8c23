"""Which decisions of a hand become rows: its events are played on a Table, and each choice that the log proves is a
row.

lib.mahjong.legality says what the rules allow; a move that they do not allow is an error with its reason. Whether the
points are right is for lib.mahjong.judge. The tokens of a row come from lib.rows.board.
"""

from ..mahjong import action, answers, legality, tile, wall
from ..mahjong.game import DRAW
from ..mahjong.meld import ANKAN, KAKAN, MINKAN, NAMES
from ..mahjong.mjlog import Unencodable
from ..mahjong.table import Table
from ..mahjong.tile import AKA, FACE, KIND
from .board import RESPONSE, ROB_ADDED, ROB_CLOSED, Board, token

STEP2 = bytes(int(number in (action.RIICHI, action.NO_RIICHI)) for number in range(action.COUNT))


class Decisions:
    """One hand. `rows` collects (seat, label, mask, tokens, points of the four seats)."""

    def __init__(self, hand, board=Board):
        self.events = hand.events
        self.table = Table(hand)
        self.board = board(hand, self.table)
        self.away = set(hand.away)
        self.rows = []
        self.next = hand.dealer  # the seat that draws next, None while it is somebody's own turn
        self.turn = None  # the seat to move, while it is somebody's own turn
        self.mask = None  # what it may do,
        self.pending = None  # the tokens of that decision, if it is one,
        self.turn_away = False  # and whether the server played for it
        self.declared = None  # the seat that said riichi and has not paid yet
        self.answer = -1  # the event that answers the last discard or kan,
        self.takers = {}  # and who takes the tile by it: {seat: Meld, or None for ron}

    def run(self):
        """Fill `rows`; returns self. Raises Unencodable for a move that is impossible, or that the rules do not allow.
        """
        play = (self.draw, self.discard, self.call, self.declare, self.accept, self.dora, self.bye, self.un)
        play += (self.win, self.abort)  # by event number
        i = None
        try:
            for i, (op, seat, what) in enumerate(self.events):
                play[op](i, seat, what)
        except Unencodable as error:
            error.event = i
            raise
        return self

    def open_turn(self, seat, mask):
        """It is the turn of `seat`, who has drawn or called. `mask`: what it may do."""
        if self.declared is not None:
            raise Unencodable(f"riichi by seat {self.declared} is never paid")
        self.turn, self.next, self.mask = seat, None, mask
        self.turn_away = seat in self.away
        self.pending = self.board.row(seat, seat) if mask.count(1) > 1 else None

    def close_turn(self, seat, label, what):
        """The seat whose turn it is takes action `label`."""
        if self.turn != seat:
            raise Unencodable(f"{what} by seat {seat} out of turn")
        if not self.mask[label]:
            raise Unencodable(f"the rules do not allow {what} by seat {seat}")
        self.turn = None
        if self.pending and not self.turn_away:
            self.rows.append((seat, label, self.mask, self.pending, self.table.points))

    def own(self, seat, tiles):
        """Raises Unencodable unless just these tiles are in the hand of `seat`."""
        if not self.table.tiles[seat].issuperset(tiles):
            raise Unencodable(f"seat {seat} does not have the {tile.name(tiles[0])} that leaves its hand")

    def riichi_step(self, seat, thrown):
        """Riichi or not, after the tile is chosen. It is a decision only if riichi is possible with that tile."""
        said = self.declared == seat
        if self.table.drawn[seat] is not None and legality.may_say_riichi(self.table, seat, thrown):
            if not self.turn_away:
                row = self.board.row(seat, seat, token(20, KIND[thrown], 1, 0, AKA[thrown]), 1)
                label = action.RIICHI if said else action.NO_RIICHI
                self.rows.append((seat, label, STEP2, row, self.table.points))
        elif said:
            raise Unencodable(f"the rules do not allow riichi with {tile.name(thrown)} by seat {seat}")

    def respond(self, i, actor, offered, choices, phase):
        """The others answer event `i`, a discard or kan of `actor`. choices: who may do what; phase: that of seat 0."""
        events = self.events
        self.answer = j = answers.answer_to(events, i)
        self.takers = {} if events[j][0] == DRAW else answers.takers(events, j, actor, offered)
        for seat, mask in choices:
            self.decide(i, seat, mask, actor, offered, phase + seat)
        if self.takers:
            for seat in self.takers.keys() - {seat for seat, _ in choices}:
                self.refuse_taking(seat)
        self.table.pass_up(actor, KIND[offered])

    def refuse_taking(self, seat):
        meld = self.takers[seat]
        what = NAMES[meld.type] if meld else "ron"
        raise Unencodable(f"the rules do not allow {what} by seat {seat}")

    def decide(self, i, seat, mask, actor, offered, phase):
        """What `seat`, who has a choice, answers to event `i`."""
        taken = seat in self.takers
        label = answers.label(self.takers[seat]) if taken else action.PASS
        if not mask[label]:
            self.refuse_taking(seat)
        away = seat in self.away or answers.was_away(self.events, i, self.answer, seat)
        if not away and (taken or answers.chosen(mask, self.events[self.answer])):
            last = token(20, KIND[offered], 1, (actor - seat) & 3, AKA[offered])
            self.rows.append((seat, label, mask, self.board.row(seat, phase, last), self.table.points))

    # the events

    def draw(self, _, seat, drawn):
        if self.next != seat:
            raise Unencodable(f"draw by seat {seat} out of turn")
        self.table.draw(seat, drawn)
        self.board.draw(seat, drawn)
        self.open_turn(seat, legality.own_turn(self.table, seat))

    def discard(self, i, seat, thrown):
        table = self.table
        self.close_turn(seat, FACE[thrown], tile.DISCARD_OF[thrown])
        self.own(seat, (thrown,))
        self.riichi_step(seat, thrown)
        self.board.discard(seat, thrown, table.discard(seat, thrown))
        self.end_ippatsu([seat])
        if table.indicators != 1 + table.kans:
            raise Unencodable(f"{table.indicators} dora indicators after {table.kans} kans")
        self.next = (seat + 1) & 3
        self.respond(i, seat, thrown, legality.answers(table, seat, thrown), RESPONSE)

    def call(self, i, seat, meld):
        table, name = self.table, NAMES[meld.type]
        self.own(seat, meld.own)
        if meld.type in (KAKAN, ANKAN):
            added = meld.type == KAKAN
            if added and table.pon_of(seat, meld) is None:
                raise Unencodable(f"added kan by seat {seat} without its pon")
            self.close_turn(seat, action.KAKAN if added else action.ANKAN, name)
            table.call(seat, meld)
            self.board.call(seat, meld)
            choices = legality.robbers(table, seat, meld.own[0], not added)
            self.respond(i, seat, meld.own[0], choices, ROB_ADDED if added else ROB_CLOSED)
            self.end_ippatsu()
            self.next = seat
        elif i != self.answer:
            raise Unencodable(f"{name} by seat {seat} out of turn")
        else:
            table.call(seat, meld)
            self.board.call(seat, meld)
            self.end_ippatsu()
            if meld.type == MINKAN:
                self.next = seat
            else:
                self.open_turn(seat, legality.after_call(table, seat, meld))

    def end_ippatsu(self, seats=range(4)):
        for seat in seats:
            if self.table.ippatsu[seat]:
                self.table.end_ippatsu(seat)
                self.board.stand(seat)

    def declare(self, _, seat, __):
        if self.turn != seat or self.declared is not None:
            raise Unencodable(f"riichi by seat {seat} out of turn")
        self.declared = seat
        self.table.declare(seat)

    def accept(self, _, seat, __):
        if self.turn is not None or self.declared != seat:
            raise Unencodable(f"riichi stick by seat {seat} out of turn")
        self.declared = None
        self.table.accept(seat)
        self.board.stand(seat)
        self.board.score(seat)

    def dora(self, _, __, indicator):
        self.table.dora()
        self.board.dora(indicator)

    def bye(self, _, seat, __):
        self.away.add(seat)
        self.turn_away |= seat == self.turn

    def un(self, _, seat, __):
        self.away.discard(seat)

    def win(self, _, seat, win):
        if win.loser == seat:
            self.close_turn(seat, action.TSUMO, "tsumo")
        elif self.turn is not None or seat not in self.takers:
            raise Unencodable(f"ron by seat {seat} out of turn")

    def abort(self, i, _, kind):
        if kind == "yao9" and self.turn is not None:
            self.close_turn(self.turn, action.NINE_TERMINALS, "nine terminals")
        elif self.turn is not None or i != self.answer or not legality.hand_is_drawn(self.table, kind):
            raise Unencodable("the hand is drawn out of turn")


def decisions(hand):
    """The rows of one Hand, in order, as in Decisions. Raises Unencodable."""
    wall.build(hand)  # refuses a hand in which a tile shows twice
    return Decisions(hand).run().rows
