"""What each seat sees of a hand, kept as the tokens of its rows.

A row is the join of its seat's slots, in order; a slot holds the bytes of no token, one, or several. An event rewrites
the few slots that it touches, so that a row costs one join however long the hand.
"""

from lib import tile as tiles
from lib.meld import ANKAN, KAKAN, PON
from lib.schema import NO_TILE, TABLE
from lib.tile import AKA, KIND, ORDER, PLACES

# slots, in the order of the schema's token table
HAND = 0
TSUMO = HAND + len(PLACES)
MELDS = TSUMO + 1
RIVER = MELDS + 4
INDICATORS = RIVER + 4
DORA = INDICATORS + 1
RIICHI = DORA + 1  # riichi, ippatsu, menzen, score of seat 0, then of seat 1, ...
ROUND = RIICHI + 16
STICKS, LEFT, TURN, LAST, PHASE, VISIBLE = range(ROUND + 1, ROUND + 7)
AREA = VISIBLE + 34  # 34 for each seat
SLOTS = AREA + 4 * 34


def token(segment, tile=NO_TILE, count=1, who=TABLE, extra=0):
    return bytes((segment, tile, count, who, extra))


HAND_TOKEN = [[token(1, kind, n, 0, aka) if n else b"" for n in range(5)] for _, kind, aka in PLACES]
VISIBLE_TOKEN = [[token(23, kind, n) if n else b"" for n in range(5)] for kind in range(34)]
AREA_TOKEN = [[token(24, kind, 1, who) for kind in range(34)] for who in range(4)]


class Board:
    """The state of one hand for all four seats; the methods are the log's events. Tiles are 0..135, seats 0..3.

    Nothing is checked: the replay asks the engine first.
    """

    def __init__(self, hand):
        self.points = list(hand.points)
        self.sticks = hand.sticks
        self.left = 70
        self.number = 0  # discards of the hand so far
        self.turns = [0] * 4
        self.drawn = [None] * 4
        self.melds = [[], [], [], []]
        self.declared, self.riichi, self.double, self.ippatsu = ([0] * 4 for _ in range(4))
        self.menzen = [1] * 4
        self.called = False
        self.held = [[0] * len(PLACES) for _ in range(4)]
        self.seen = [[0] * 34 for _ in range(4)]
        self.views = [[b""] * SLOTS for _ in range(4)]
        for seat, view in enumerate(self.views):
            for tile in hand.dealt[seat]:
                self.hold(seat, tile, 1)
                self.see(seat, KIND[tile])
            dealer = hand.dealer
            view[ROUND] = b"".join((
                token(14, count=hand.wind),
                token(15, count=(seat - dealer) % 4, who=0),
                token(25, count=dealer),
                token(26, count=dealer, extra=(dealer - seat) % 4),
                token(28, count=4 * hand.wind + dealer),
                token(16, count=hand.honba),
            ))
            for owner in range(4):
                self.standing(owner)
                self.score(owner)
        self.put_sticks()
        self.dora(hand.indicator)

    def hold(self, seat, tile, n):
        place = ORDER[tile]
        self.held[seat][place] += n
        self.views[seat][HAND + place] = HAND_TOKEN[place][self.held[seat][place]]

    def see(self, seat, kind):
        self.seen[seat][kind] += 1
        self.views[seat][VISIBLE + kind] = VISIBLE_TOKEN[kind][self.seen[seat][kind]]

    def draw(self, seat, tile):
        self.drawn[seat] = tile
        self.left -= 1
        self.views[seat][TSUMO] = token(2, KIND[tile], 1, 0, AKA[tile])
        self.see(seat, KIND[tile])

    def keep(self, seat):
        """Put the drawn tile, if any, among the others."""
        if self.drawn[seat] is not None:
            self.hold(seat, self.drawn[seat], 1)
            self.drawn[seat] = None
            self.views[seat][TSUMO] = b""

    def discard(self, seat, tile):
        kind = KIND[tile]
        from_hand = tile != self.drawn[seat]
        if from_hand:
            self.keep(seat)
            self.hold(seat, tile, -1)
        else:
            self.drawn[seat] = None
            self.views[seat][TSUMO] = b""
        self.number += 1
        self.turns[seat] += 1
        extra = AKA[tile] | self.declared[seat] << 1 | from_hand << 2
        for observer, view in enumerate(self.views):
            who = (seat - observer) % 4
            view[RIVER + seat] += bytes((6 if who else 5, kind, self.number, who, extra))
            view[AREA + 34 * seat + kind] = AREA_TOKEN[who][kind]
            if who:
                self.see(observer, kind)
        if self.ippatsu[seat]:
            self.ippatsu[seat] = 0
            self.standing(seat)

    def call(self, seat, meld):
        self.keep(seat)
        for tile in meld.own:
            self.hold(seat, tile, -1)
            for observer in range(4):
                if observer != seat:
                    self.see(observer, KIND[tile])
        melds = self.melds[seat]
        if meld.type == KAKAN:
            pon = next(i for i, other in enumerate(melds) if other.type == PON and other.tiles[0] // 4 == meld.tiles[0] // 4)
            melds[pon] = meld
        else:
            melds.append(meld)
        for observer, view in enumerate(self.views):
            view[MELDS + seat] = b"".join(meld_tokens(meld, (seat - observer) % 4) for meld in melds)
        self.called = True
        self.ippatsu = [0] * 4
        if meld.type != ANKAN:
            self.menzen[seat] = 0
        for owner in range(4):
            self.standing(owner)

    def declare(self, seat):
        self.declared[seat] = 1

    def accept(self, seat):
        """The declaring discard has passed: the stick is paid."""
        self.riichi[seat] = self.ippatsu[seat] = 1
        self.double[seat] = int(self.turns[seat] == 1 and not self.called)
        self.points[seat] -= 1000
        self.sticks += 1
        self.standing(seat)
        self.score(seat)
        self.put_sticks()

    def dora(self, indicator):
        for seat, view in enumerate(self.views):
            view[INDICATORS] += token(7, KIND[indicator], extra=AKA[indicator])
            view[DORA] += token(9, tiles.dora(indicator))
            self.see(seat, KIND[indicator])

    def standing(self, owner):
        for observer, view in enumerate(self.views):
            who = (owner - observer) % 4
            slot = RIICHI + 4 * owner
            view[slot] = token(10, count=self.riichi[owner], who=who, extra=self.double[owner])
            view[slot + 1] = token(11, count=self.ippatsu[owner], who=who)
            view[slot + 2] = token(12, count=self.menzen[owner], who=who)

    def score(self, owner):
        count = (min(max(self.points[owner], -10_000), 70_000) + 10_000) // 5000
        for observer, view in enumerate(self.views):
            view[RIICHI + 4 * owner + 3] = token(13, count=count, who=(owner - observer) % 4)

    def put_sticks(self):
        for view in self.views:
            view[STICKS] = token(17, count=self.sticks)

    def row(self, seat, phase, last=b"", step2=0):
        """The tokens of a decision of `seat`, as bytes. `phase` is the engine's; `last` is the token of segment 20."""
        view = self.views[seat]
        view[LEFT] = token(18, count=self.left)
        view[TURN] = token(29, count=self.turns[seat])
        view[LAST] = last
        view[PHASE] = token(21, count=phase, extra=step2) + token(22, count=min(phase // 4, 2))
        return b"".join(view)


def meld_tokens(meld, who):
    segment = 4 if who else 3
    return token(27, count=meld.type, who=who, extra=meld.source) + b"".join(
        token(segment, KIND[tile], 1, who, AKA[tile] | meld.type << 1) for tile in sorted(meld.tiles, key=ORDER.__getitem__)
    )
