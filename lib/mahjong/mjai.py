"""A game as mjai events, one JSON object a line, as Mortal reads them.

Actors are seats 0..3. Points are full points, as players count them. `deltas` are what a win or a draw moved; the
1000 points that a riichi costs are not in them, because `reach_accepted` stands for those. A double ron is two `hora`,
whose deltas add up. Every `hora` has `ura_markers`, empty without riichi. If the tile of a riichi is ronned, there is
no `reach_accepted`. `dora` stands where the log has it: right after a closed kan, but before the discard after an open
or added one. `uri`, which mjai's first logs had, says which game it is; Mortal skips fields that it does not know.

tests/second.py has another engine, riichienv, play the events again: it must draw, decide and pay the same.

The log alone is read, no engine. Turns, tiles and points are checked: a log that contradicts itself is refused.
"""

import functools
import itertools
import json

from ..store.gid import viewer
from . import game, mjlog, table_type
from .game import ABORT, CALL, DECLARE, DISCARD, DORA, DRAW, RIICHI, WIN
from .meld import ANKAN, CHI, KAKAN, MINKAN, PON
from .mjlog import Unencodable
from .points import difference
from .tile import KIND, RED
from .tile import name as tile_name

# bits of GO type that mjai events cannot express; a game without red fives is no problem: it just has none
UNSUPPORTED = {bit: what for bit, what in table_type.UNSUPPORTED.items() if bit != table_type.NO_RED_FIVES}
HONOURS = "ESWNPFC"
NAMES = {CHI: "chi", PON: "pon", MINKAN: "daiminkan", KAKAN: "kakan", ANKAN: "ankan"}
NOBODY = "NoName"  # what Tenhou calls a guest; Mortal refuses an empty name

PLAIN = tuple(f"{kind % 9 + 1}{'mps'[kind // 9]}" if kind < 27 else HONOURS[kind - 27] for kind in KIND)
PAI = tuple(name + "r" * (tile in RED) for tile, name in enumerate(PLAIN))
_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def text(gid, data):
    """The events of a log (bytes), each a line of JSON. Raises Unencodable if the game is not complete, contradicts
    itself, or was played by rules that mjai events cannot express."""
    tags = mjlog.tags(mjlog.text(data))
    hands, final, _ = game.read_tags(tags, UNSUPPORTED)
    pai = PLAIN if game.rules(tags)[0] & table_type.NO_RED_FIVES else PAI
    first = hands[0]
    if first.wind or first.dealer or first.honba or first.sticks:
        raise Unencodable("incomplete: the log does not begin with east 1")
    names = [name or NOBODY for name in game.names(tags)]
    lines = [_json({"type": "start_game", "names": names, "uri": viewer(gid)})]
    for hand, following in zip(hands, [*hands[1:], final], strict=True):
        try:
            lines += _Table(hand, pai).lines()
            check_points(hand, following)
        except Unencodable as error:
            raise Unencodable(f"{hand.name}: {error}") from None
    return "\n".join([*lines, '{"type":"end_game"}', ""])


@functools.cache
def _tsumo(actor, pai):
    return _json({"type": "tsumo", "actor": actor, "pai": pai})


@functools.cache
def _dahai(actor, pai, tsumogiri):
    return _json({"type": "dahai", "actor": actor, "pai": pai, "tsumogiri": tsumogiri})


class _Table:
    """Who holds which tiles and whose turn it is, by the log. What contradicts that is refused; whether the rules allow
    a move is not asked."""

    def __init__(self, hand, pai):
        self.hand, self.pai = hand, pai
        self.held = [set(tiles) for tiles in hand.dealt]
        self.seen = set()
        for tile in itertools.chain((hand.indicator,), *hand.dealt):
            self.show(tile)
        self.turn, self.full = hand.dealer, False  # whose turn; has that seat a tile more than it may keep?
        self.drawn, self.offered = None, (None, None)  # the tile drawn; who has just shown which tile
        self.declared = None  # who has said riichi and not yet paid
        self.pons = set()
        self.ends = iter(hand.changes)

    def lines(self):
        """The lines from start_kyoku to end_kyoku."""
        hand, pai = self.hand, self.pai
        yield _json({
            "type": "start_kyoku", "bakaze": HONOURS[hand.wind], "dora_marker": pai[hand.indicator],
            "kyoku": hand.dealer + 1, "honba": hand.honba, "kyotaku": hand.sticks, "oya": hand.dealer,
            "scores": hand.points, "tehais": [[pai[tile] for tile in tiles] for tiles in hand.dealt],
        })  # fmt: skip
        steps = {DRAW: self.draw, DISCARD: self.discard, CALL: self.call, DECLARE: self.declare, RIICHI: self.accept,
                 DORA: self.dora, WIN: self.win, ABORT: self.abort}
        for op, seat, what in hand.events:
            if op in steps:  # those who are gone or back stand in no event
                yield steps[op](seat, what)
        yield '{"type":"end_kyoku"}'

    def show(self, tile):
        if tile in self.seen:
            raise Unencodable(f"tile {tile_name(tile)} shows twice")
        self.seen.add(tile)

    def expect(self, holds, what, seat):
        if not holds:
            raise Unencodable(f"{what} by seat {seat} out of turn")

    def go_on(self):
        """The game goes on after a discard: a riichi that came with it must be paid by now."""
        if self.declared is not None:
            raise Unencodable(f"riichi by seat {self.declared} is never paid")

    def draw(self, seat, tile):
        self.go_on()
        self.expect(seat == self.turn and not self.full, "draw", seat)
        self.show(tile)
        self.held[seat].add(tile)
        self.drawn, self.full, self.offered = tile, True, (None, None)
        return _tsumo(seat, self.pai[tile])

    def discard(self, seat, tile):
        self.expect(seat == self.turn and self.full, "discard", seat)
        if tile not in self.held[seat]:
            raise Unencodable(f"discard by seat {seat} of another tile")
        self.held[seat].remove(tile)
        self.turn, self.full, self.offered = (seat + 1) % 4, False, (seat, tile)
        return _dahai(seat, self.pai[tile], tile == self.drawn)

    def call(self, seat, meld):
        self.go_on()
        what, pai, own = NAMES[meld.type], self.pai, meld.own
        event = {"type": what, "actor": seat}
        if meld.type in (KAKAN, ANKAN):
            self.expect(seat == self.turn and self.full, what, seat)
            if meld.type == KAKAN:
                own = tuple(tile for tile in meld.tiles if tile not in meld.own)
                if (seat, own) not in self.pons:
                    raise Unencodable(f"added kan by seat {seat} without its pon")
                event["pai"] = pai[meld.own[0]]
            self.offered = (seat, meld.own[0])  # somebody may rob it
        else:
            target = (seat + meld.source) % 4
            self.expect(self.offered == (target, meld.called) and not self.full, what, seat)
            event |= {"target": target, "pai": pai[meld.called]}
            self.offered = (None, None)
        if meld.type == PON:
            self.pons.add((seat, meld.tiles))
        if not self.held[seat].issuperset(meld.own):
            raise Unencodable(f"{what} by seat {seat} of another tile")
        self.held[seat].difference_update(meld.own)
        self.turn, self.full, self.drawn = seat, meld.type in (CHI, PON), None
        return _json({**event, "consumed": [pai[tile] for tile in own]})

    def declare(self, seat, _):
        self.expect(seat == self.turn and self.full and self.declared is None, "riichi", seat)
        self.declared = seat
        return _json({"type": "reach", "actor": seat})

    def accept(self, seat, _):
        self.expect(self.declared == seat == self.offered[0], "riichi stick", seat)
        self.declared = None
        return _json({"type": "reach_accepted", "actor": seat})

    def dora(self, _, indicator):
        self.show(indicator)
        return _json({"type": "dora", "dora_marker": self.pai[indicator]})

    def win(self, seat, win):
        tsumo = win.loser == seat
        self.expect(seat == self.turn and self.full if tsumo else win.loser == self.offered[0], "win", seat)
        return _json({"type": "hora", "actor": seat, "target": win.loser, "deltas": next(self.ends),
                      "ura_markers": [self.pai[tile] for tile in win.ura]})

    def abort(self, _, kind):
        return _json({"type": "ryukyoku", "deltas": next(self.ends)})


def check_points(hand, following):
    """Raises Unencodable unless the events of a hand, its payments and riichi sticks, lead to the points and sticks
    that the log has after it. `following` is the next Hand, or the final points of the game."""
    paid = [seat for op, seat, _ in hand.events if op == RIICHI]
    left = 0 if any(op == WIN for op, _, _ in hand.events) else hand.sticks + len(paid)
    after = tuple(points - 1000 * paid.count(seat) + sum(change[seat] for change in hand.changes)
                  for seat, points in enumerate(hand.points))
    if isinstance(following, game.Hand):
        if (after, after, left) != (hand.after, following.points, following.sticks):
            told = (difference("INIT", following.points, "the events", after)
                    or difference("sc", hand.after, "the events", after)
                    or f"sticks: INIT {following.sticks}, the events {left}")
            raise Unencodable(f"the next INIT does not follow ({told})")
        return
    gains = [final - points for final, points in zip(following, after, strict=True)]
    if after != hand.after or sorted(gains)[:3] != [0] * 3 or max(gains) not in (0, 1000 * left):  # the first gets them
        told = difference("owari", following, "the events", after) or difference("sc", hand.after, "the events", after)
        raise Unencodable(f"final points do not follow ({told})")
