"""Where tokens are made: what each seat sees of the table, kept as the tokens of its next row.

What the tokens mean is written at the top of lib/rows/schema.py. The numbers in `token(1, …)` and so on are its
segments. Each seat has a list of slots, in the order of that table. A slot holds the bytes of no token, of one or of
several. An event of the game rewrites only the few slots that it changes; a row is all slots of its seat joined, see
`Board.row`.
"""

from functools import cache

from ..mahjong import tile as tiles
from ..mahjong.tile import AKA, FACE, KIND, ORDER, PLACES
from .schema import NO_TILE, TABLE

RESPONSE, ROB_ADDED, ROB_CLOSED = 4, 8, 12  # the phases (segment 21) in which seat 0 answers; seat 1 has one more

# the first slot of each kind of token, in the order of the table of lib.rows.schema
HAND = 0
TSUMO = HAND + len(PLACES)
MELDS = TSUMO + 1
RIVER = MELDS + 4
INDICATORS = RIVER + 4
DORA = INDICATORS + 1
STANDING = DORA + 1  # of seat 0: riichi, ippatsu and menzen in one slot, then the score; seat 1; ...
ROUND = STANDING + 8
STICKS, LEFT, TURN, LAST, PHASE, VISIBLE = range(ROUND + 1, ROUND + 7)
AREA = VISIBLE + 34  # 34 for each seat
SLOTS = AREA + 4 * 34


def token(segment, tile=NO_TILE, count=1, who=TABLE, extra=0):
    """The five bytes of one token, as lib.rows.schema has them."""
    return bytes((segment, tile, count, who, extra))


# the bytes of tokens that are made often
HAND_TOKEN = [[token(1, kind, n, 0, aka) if n else b"" for n in range(5)] for _, kind, aka in PLACES]
VISIBLE_TOKEN = [[token(23, kind, n) if n else b"" for n in range(5)] for kind in range(34)]
AREA_TOKEN = [[token(24, kind, 1, who) for kind in range(34)] for who in range(4)]
TSUMO_TOKEN = [token(2, KIND[tile], 1, 0, AKA[tile]) for tile in range(136)]
LEFT_TOKEN = [token(18, count=n) for n in range(71)]
TURN_TOKEN = [token(29, count=n) for n in range(71)]
PHASE_TOKENS = [
    [token(21, count=phase, extra=step2) + token(22, count=min(phase // 4, 2)) for phase in range(16)]
    for step2 in range(2)
]


@cache
def standing(who, riichi, double, ippatsu, menzen):
    """The tokens 10, 11 and 12 of a player."""
    first = token(10, count=riichi, who=who, extra=double)
    return first + token(11, count=ippatsu, who=who) + token(12, count=menzen, who=who)


def meld_tokens(meld, who):
    """The tokens of a meld: 27, then one for each tile."""
    parts = [token(27, count=meld.type, who=who, extra=meld.source)]
    for tile in sorted(meld.tiles, key=ORDER.__getitem__):
        parts.append(token(4 if who else 3, KIND[tile], 1, who, AKA[tile] | meld.type << 1))
    return b"".join(parts)


class Board:
    """The tokens of one hand for all four seats. lib.rows.decisions calls draw, discard, call, dora, stand and score
    after it has changed the Table in the same way."""

    def __init__(self, hand, table):
        self.table = table
        self.drawn = [None] * 4  # the tile in the slot TSUMO
        self.seen = [[0] * 34 for _ in range(4)]
        self.views = [[b""] * SLOTS for _ in range(4)]
        dealer = hand.dealer
        for seat, view in enumerate(self.views):
            for tile in hand.dealt[seat]:
                self.hold(seat, tile)
                self.see(seat, KIND[tile])
            view[ROUND] = b"".join((
                token(14, count=hand.wind),
                token(15, count=(seat - dealer) % 4, who=0),
                token(25, count=dealer),
                token(26, count=dealer, extra=(dealer - seat) % 4),
                token(28, count=4 * hand.wind + dealer),
                token(16, count=hand.honba),
            ))  # fmt: skip
            self.stand(seat)
            self.score(seat)
        self.dora(hand.indicator)

    def row(self, seat, phase, last=b"", step2=0):
        """The tokens of a decision of `seat`, as bytes. phase: as in segment 21; last: the token of segment 20, if
        there is one; step2: 1 in the second row of riichi."""
        view = self.views[seat]
        view[LEFT] = LEFT_TOKEN[self.table.left]
        view[TURN] = TURN_TOKEN[self.table.turns[seat]]
        view[LAST] = last
        view[PHASE] = PHASE_TOKENS[step2][phase]
        return b"".join(view)

    def draw(self, seat, tile):
        """Segment 2, and 23."""
        self.drawn[seat] = tile
        self.views[seat][TSUMO] = TSUMO_TOKEN[tile]
        self.see(seat, KIND[tile])

    def discard(self, seat, tile, from_hand):
        """Segments 5, 6 and 24, and 23 of the others."""
        kind, table = KIND[tile], self.table
        self.keep(seat)
        if from_hand:
            self.hold(seat, tile)
        number = table.discards
        extra = AKA[tile] | table.declared[seat] << 1 | from_hand << 2
        for observer, view in enumerate(self.views):
            who = (seat - observer) & 3
            view[AREA + 34 * seat + kind] = AREA_TOKEN[who][kind]
            if who:
                view[RIVER + seat] += bytes((6, kind, number, who, extra))
                self.seen[observer][kind] = n = self.seen[observer][kind] + 1
                view[VISIBLE + kind] = VISIBLE_TOKEN[kind][n]
            else:
                view[RIVER + seat] += bytes((5, kind, number, 0, extra))

    def call(self, seat, meld):
        """Segments 27, 3 and 4, and 23 of the others."""
        self.keep(seat)
        for tile in meld.own:
            self.hold(seat, tile)
            for observer in range(4):
                if observer != seat:
                    self.see(observer, KIND[tile])
        melds = self.table.melds[seat]
        for observer, view in enumerate(self.views):
            view[MELDS + seat] = b"".join(meld_tokens(meld, (seat - observer) & 3) for meld in melds)
        self.stand(seat)

    def dora(self, indicator):
        """Segments 7, 9 and 23."""
        for seat, view in enumerate(self.views):
            view[INDICATORS] += token(7, KIND[indicator], extra=AKA[indicator])
            view[DORA] += token(9, tiles.dora(indicator))
            self.see(seat, KIND[indicator])

    def hold(self, seat, tile):
        """Segment 1: the number of these tiles in the hand has changed. The drawn tile does not count."""
        self.views[seat][HAND + ORDER[tile]] = HAND_TOKEN[ORDER[tile]][self.table.held[seat][FACE[tile]]]

    def keep(self, seat):
        """The drawn tile, if there is one, is now among the others, or thrown: segment 2 is empty."""
        tile = self.drawn[seat]
        if tile is not None:
            self.drawn[seat] = None
            self.views[seat][TSUMO] = b""
            self.hold(seat, tile)

    def see(self, seat, kind):
        """Segment 23: a player sees one more tile of a kind."""
        self.seen[seat][kind] = n = self.seen[seat][kind] + 1
        self.views[seat][VISIBLE + kind] = VISIBLE_TOKEN[kind][n]

    def stand(self, owner):
        """Segments 10 to 12: riichi, ippatsu or menzen of a seat has changed."""
        table = self.table
        state = table.riichi[owner], table.double[owner], table.ippatsu[owner], table.menzen[owner]
        for observer, view in enumerate(self.views):
            view[STANDING + 2 * owner] = standing((owner - observer) & 3, *state)

    def score(self, owner):
        """Segments 13 and 17: the points of a seat have changed, and with them the riichi sticks."""
        count = (min(max(self.table.points[owner], -10_000), 70_000) + 10_000) // 5000
        for observer, view in enumerate(self.views):
            view[STANDING + 2 * owner + 1] = token(13, count=count, who=(owner - observer) & 3)
            view[STICKS] = token(17, count=self.table.sticks)
