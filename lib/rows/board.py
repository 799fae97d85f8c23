"""What each seat sees of a hand, kept as the tokens of its next row.

A row is the join of its seat's slots, in order; a slot holds the bytes of no token, one or several. An event rewrites
the few slots that it touches, so that a row costs one join however long the hand.
"""

from functools import cache

from ..mahjong import tile as tiles
from ..mahjong.meld import ANKAN, KAKAN, PON
from ..mahjong.tile import AKA, KIND, ORDER, PLACES
from .schema import NO_TILE, TABLE

# slots, in the order of the schema's token table
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
    """The five bytes of one token."""
    return bytes((segment, tile, count, who, extra))


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
    first = token(10, count=riichi, who=who, extra=double)
    return first + token(11, count=ippatsu, who=who) + token(12, count=menzen, who=who)


def meld_tokens(meld, who):
    parts = [token(27, count=meld.type, who=who, extra=meld.source)]
    for tile in sorted(meld.tiles, key=ORDER.__getitem__):
        parts.append(token(4 if who else 3, KIND[tile], 1, who, AKA[tile] | meld.type << 1))
    return b"".join(parts)


class Board:
    """The state of one hand for all four seats; the methods are the log's events. Tiles are 0..135, seats 0..3.

    Nothing is checked here: the replay asks the engine first.
    """

    def __init__(self, hand):
        self.points = hand.points
        self.sticks = hand.sticks
        self.left = 70
        self.discards = 0
        self.indicators = 0
        self.turns = [0] * 4
        self.drawn = [None] * 4
        self.melds = [[], [], [], []]
        self.declared, self.riichi, self.double, self.ippatsu = ([0] * 4 for _ in range(4))
        self.menzen = [1] * 4
        self.quiet = True  # nobody has called yet
        self.held = [[0] * len(PLACES) for _ in range(4)]
        self.seen = [[0] * 34 for _ in range(4)]
        self.views = [[b""] * SLOTS for _ in range(4)]
        dealer = hand.dealer
        for seat, view in enumerate(self.views):
            for tile in hand.dealt[seat]:
                self.hold(seat, tile, 1)
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
        """The tokens of a decision of `seat`, as bytes. `phase` is the engine's; `last` is the token of segment 20."""
        view = self.views[seat]
        view[LEFT] = LEFT_TOKEN[self.left]
        view[TURN] = TURN_TOKEN[self.turns[seat]]
        view[LAST] = last
        view[PHASE] = PHASE_TOKENS[step2][phase]
        return b"".join(view)

    def draw(self, seat, tile):
        self.drawn[seat] = tile
        self.left -= 1
        self.views[seat][TSUMO] = TSUMO_TOKEN[tile]
        self.see(seat, KIND[tile])

    def discard(self, seat, tile):
        kind = KIND[tile]
        from_hand = tile != self.drawn[seat]
        if from_hand:
            self.keep(seat)
            self.hold(seat, tile, -1)
        else:
            self.drawn[seat] = None
            self.views[seat][TSUMO] = b""
        self.discards = number = self.discards + 1
        self.turns[seat] += 1
        extra = AKA[tile] | self.declared[seat] << 1 | from_hand << 2
        for observer, view in enumerate(self.views):
            who = (seat - observer) & 3
            view[AREA + 34 * seat + kind] = AREA_TOKEN[who][kind]
            if who:
                view[RIVER + seat] += bytes((6, kind, number, who, extra))
                self.seen[observer][kind] = n = self.seen[observer][kind] + 1
                view[VISIBLE + kind] = VISIBLE_TOKEN[kind][n]
            else:
                view[RIVER + seat] += bytes((5, kind, number, 0, extra))
        if self.ippatsu[seat]:
            self.ippatsu[seat] = 0
            self.stand(seat)

    def call(self, seat, meld):
        """A call, but for ippatsu, which a kan ends only when nobody robs it."""
        self.keep(seat)
        for tile in meld.own:
            self.hold(seat, tile, -1)
            for observer in range(4):
                if observer != seat:
                    self.see(observer, KIND[tile])
        melds = self.melds[seat]
        if meld.type == KAKAN:
            kinds = [other.tiles[0] // 4 if other.type == PON else None for other in melds]
            melds[kinds.index(meld.tiles[0] // 4)] = meld
        else:
            melds.append(meld)
        for observer, view in enumerate(self.views):
            view[MELDS + seat] = b"".join(meld_tokens(meld, (seat - observer) & 3) for meld in melds)
        self.quiet = False
        if meld.type != ANKAN and self.menzen[seat]:
            self.menzen[seat] = 0
            self.stand(seat)

    def end_ippatsu(self):
        for seat in range(4):
            if self.ippatsu[seat]:
                self.ippatsu[seat] = 0
                self.stand(seat)

    def declare(self, seat):
        self.declared[seat] = 1

    def accept(self, seat):
        """The declaring discard has passed, and the stick is paid."""
        self.riichi[seat] = self.ippatsu[seat] = 1
        self.double[seat] = int(self.quiet and self.turns[seat] == 1)
        self.points = tuple(points - 1000 * (owner == seat) for owner, points in enumerate(self.points))
        self.sticks += 1
        self.stand(seat)
        self.score(seat)

    def dora(self, indicator):
        self.indicators += 1
        for seat, view in enumerate(self.views):
            view[INDICATORS] += token(7, KIND[indicator], extra=AKA[indicator])
            view[DORA] += token(9, tiles.dora(indicator))
            self.see(seat, KIND[indicator])

    def hold(self, seat, tile, n):
        """`n` more of the tile in the hand, the drawn one not counted."""
        place = ORDER[tile]
        self.held[seat][place] = n = self.held[seat][place] + n
        self.views[seat][HAND + place] = HAND_TOKEN[place][n]

    def keep(self, seat):
        """Put the drawn tile, if any, among the others."""
        tile = self.drawn[seat]
        if tile is not None:
            self.hold(seat, tile, 1)
            self.drawn[seat] = None
            self.views[seat][TSUMO] = b""

    def see(self, seat, kind):
        self.seen[seat][kind] = n = self.seen[seat][kind] + 1
        self.views[seat][VISIBLE + kind] = VISIBLE_TOKEN[kind][n]

    def stand(self, owner):
        state = self.riichi[owner], self.double[owner], self.ippatsu[owner], self.menzen[owner]
        for observer, view in enumerate(self.views):
            view[STANDING + 2 * owner] = standing((owner - observer) & 3, *state)

    def score(self, owner):
        count = (min(max(self.points[owner], -10_000), 70_000) + 10_000) // 5000
        for observer, view in enumerate(self.views):
            view[STANDING + 2 * owner + 1] = token(13, count=count, who=(owner - observer) & 3)
            view[STICKS] = token(17, count=self.sticks)
