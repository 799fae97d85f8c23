"""The table during one hand: which tiles are where, and who has said what. The events of the log change it, and the
rules (lib.mahjong.legality) read it.

Nothing is checked here: the rules are asked before an event is played. Tiles are 0..135, seats 0..3. A set of kinds is
one number, with a bit for each kind.
"""

from . import ready
from .meld import ANKAN, KAKAN, KANS, PON
from .tile import FACE, KIND

ALL = (0, 1, 2, 3)


class Table:
    """These are lists of four, one item for each seat:

    tiles     the set of the tiles in its hand
    drawn     the tile just drawn, or None; the next three do not count it
    held      the hand: a bytearray of 37 counts, by face (see lib.mahjong.tile)
    counts    the same, by the 34 kinds
    codes     the same, as four numbers (see lib.mahjong.ready)
    melds     its Melds
    waits     the kinds that complete the hand
    thrown    the kinds of its river, also of tiles that were called away
    missed    1 if it did not win on a tile that it waits for, since its last draw or, in riichi, at any time
    turns     how many tiles it has discarded
    declared, riichi, double, ippatsu, menzen    0 or 1
    """

    def __init__(self, hand):
        self.wind, self.dealer, self.indicators, self.kans = hand.wind, hand.dealer, 1, 0
        self.points, self.sticks, self.left, self.discards = hand.points, hand.sticks, 70, 0
        self.quiet = True  # nobody has called yet, or made a kan
        self.after_kan = False  # the tile drawn is a replacement
        self.tiles = [set(hand.dealt[seat]) for seat in ALL]
        self.held = [bytearray(37) for _ in ALL]
        self.counts = [[0] * 34 for _ in ALL]
        self.codes = [[0] * 4 for _ in ALL]
        self.drawn = [None] * 4
        self.melds = [[], [], [], []]
        self.waits, self.thrown, self.turns = [0] * 4, [0] * 4, [0] * 4
        self.missed, self.declared, self.riichi, self.double, self.ippatsu = ([0] * 4 for _ in range(5))
        self.menzen = [1] * 4
        for seat in ALL:
            for tile in hand.dealt[seat]:
                self._hold(seat, tile, 1)
            self._look(seat)

    def draw(self, seat, tile):
        self.drawn[seat] = tile
        self.tiles[seat].add(tile)
        self.left -= 1
        if not self.riichi[seat]:
            self.missed[seat] = 0

    def discard(self, seat, tile):
        """Returns whether the tile came from the hand, and was not the one just drawn."""
        from_hand = tile != self.drawn[seat]
        self.tiles[seat].discard(tile)
        if from_hand:
            self._keep(seat)
            self._hold(seat, tile, -1)
            self._look(seat)
        else:
            self.drawn[seat] = None
        self.thrown[seat] |= 1 << KIND[tile]
        self.discards += 1
        self.turns[seat] += 1
        self.after_kan = False
        return from_hand

    def pass_up(self, actor, kind):
        """Nobody won on a tile of this kind that `actor` discarded or added to a kan: whoever waits for it has missed
        it."""
        for seat, waits in enumerate(self.waits):
            if waits >> kind & 1 and seat != actor:
                self.missed[seat] = 1

    def call(self, seat, meld):
        """A call or a kan. It does not end ippatsu yet, because a kan that is robbed does not."""
        self._keep(seat)
        self.tiles[seat].difference_update(meld.own)
        for tile in meld.own:
            self._hold(seat, tile, -1)
        melds = self.melds[seat]
        if meld.type == KAKAN:
            melds[self.pon_of(seat, meld)] = meld
        else:
            melds.append(meld)
        self.quiet = False
        if meld.type != ANKAN:
            self.menzen[seat] = 0
        if meld.type in KANS:
            self.kans += 1
            self.after_kan = True
            self._look(seat)

    def pon_of(self, seat, kakan):
        """The index, in a seat's melds, of the pon that an added kan belongs to; None if there is none."""
        wanted = PON, kakan.called, kakan.source
        return next((i for i, m in enumerate(self.melds[seat]) if (m.type, m.called, m.source) == wanted), None)

    def end_ippatsu(self, seat):
        self.ippatsu[seat] = 0

    def declare(self, seat):
        self.declared[seat] = 1

    def accept(self, seat):
        """Nobody won on the declaring discard: the stick is paid, and riichi begins."""
        self.riichi[seat] = self.ippatsu[seat] = 1
        self.double[seat] = int(self.quiet and self.turns[seat] == 1)
        self.points = tuple(points - 1000 * (owner == seat) for owner, points in enumerate(self.points))
        self.sticks += 1

    def dora(self):
        self.indicators += 1

    def _hold(self, seat, tile, n):
        """Count `n` more of the tile in the hand; the drawn tile is counted only once it is among the others."""
        kind = KIND[tile]
        self.held[seat][FACE[tile]] += n
        self.counts[seat][kind] += n
        self.codes[seat][ready.SUIT[kind]] += n * ready.POWER[kind]

    def _keep(self, seat):
        """Put the drawn tile, if there is one, among the others."""
        tile = self.drawn[seat]
        if tile is not None:
            self._hold(seat, tile, 1)
            self.drawn[seat] = None

    def _look(self, seat):
        self.waits[seat] = ready.waits(self.codes[seat], self.counts[seat], self.melds[seat])
