"""Whole games as mjlog XML, played by simple players on pymahjong's engine from a seed: test data that belongs to
nobody."""

import random

from . import mjlog_writer as log
from .played_hand import PlayedHand
from .players import Player
from .rigged_walls import RIGS, build_wall, script

HANCHAN, TONPUU = 0xA9, 0xE1  # lib.mahjong.table_type: houou, four players, red fives, open tanyao
NAMES = "%E6%9D%B1", "%E5%8D%97", "%E8%A5%BF", "%E5%8C%97"  # the four winds, percent-encoded as Tenhou does it
RIG_CYCLE = 16
DRAGONS = {31, 32, 33}


class Line:
    """Who is connected. away: the seats that the server plays for. If `shaky` is False, nobody loses the connection."""

    def __init__(self, rng, shaky):
        self.rng, self.shaky, self.away = rng, shaky, set()

    def lost(self):
        """Now and then a BYE of a seat: a list of at most one tag."""
        if not self.shaky or self.rng.random() > 0.005:
            return []
        seat = self.rng.randrange(4)
        if seat in self.away:
            return []
        self.away.add(seat)
        return [log.tag("BYE", who=seat)]

    def back(self):
        """Now and then a UN of a seat that was away: a list of at most one tag."""
        if not self.away or self.rng.random() > 0.1:
            return []
        seat = min(self.away)
        self.away.remove(seat)
        return [log.tag("UN", **{f"n{seat}": NAMES[seat]})]


def play(seed, hanchan=True, rig=None):
    """Play a game and return its log, the bytes of an mjlog document. The same arguments give the same bytes.

    rig: the name of a prepared wall for the first hand, see RIGS. Without it a seed gets the rig with the number
    seed % RIG_CYCLE, if there is one. In games without a rig whose seed is odd, players lose their connection now and
    then.
    """
    rig = RIGS[rig] if rig else dict(enumerate(RIGS.values())).get(seed % RIG_CYCLE, {})
    rng = random.Random(seed)
    tags = [
        log.tag("GO", type=HANCHAN if hanchan else TONPUU, lobby=0),
        log.tag(
            "UN",
            **{f"n{seat}": name for seat, name in enumerate(NAMES)},
            dan=[rng.randint(16, 20) for _ in range(4)],
            rate=[f"{rng.randint(2000, 2400)}.{rng.randrange(100):02}" for _ in range(4)],
            sx="M,F,M,F",
        ),
        log.tag("TAIKYOKU", oya=0),
    ]
    line = Line(rng, shaky=not rig and seed % 2 == 1)
    eager = [0.4 + 0.6 * rng.random() for _ in range(4)]
    last = 8 if hanchan else 4
    kyoku, honba, sticks, points = 0, 0, 0, [25000] * 4
    while True:
        wall = build_wall(rig, rng)
        places = [(seat - kyoku) % 4 for seat in range(4)]
        values = DRAGONS | {27 + kyoku // 4}
        players = [Player(rng, eager[s], values | {27 + p}, script(rig, p)) for s, p in enumerate(places)]
        dice = rng.randrange(6), rng.randrange(6)
        hand = PlayedHand(wall, kyoku, honba, sticks, points, players, line, dice)
        tags += line.back() + line.lost()
        result = hand.play()
        points, sticks = hand.points, hand.sticks
        over = is_over(hand, result, kyoku, last)
        if over:
            final = list(points)
            final[max(range(4), key=lambda seat: (points[seat], -seat))] += 1000 * sticks
            hand.ends[-1]["owari"] = log.owari(final)
        rig = {}
        name = "AGARI" if result.winner else "RYUUKYOKU"
        tags += hand.tags + [log.tag(name, **end) for end in hand.ends]
        if over:
            tags += line.back()
            return f'<mjloggm ver="2.3">{"".join(tags)}</mjloggm>'.encode()
        honba = honba + 1 if result.renchan or not result.winner else 0
        kyoku += not result.renchan


def is_over(hand, result, kyoku, last):
    """Does the game end with this hand? last: the number of hands of the game, 4 or 8.

    It ends if anybody has less than 0 points. From the last hand on it also ends if anybody has 30000, but not if the
    dealer stays and is not first, nor after an aborted hand. The extra wind ends with its fourth dealer.
    """
    top = max(range(4), key=lambda seat: (hand.points[seat], -seat))
    if min(hand.points) < 0:
        return True
    if kyoku < last - 1 or hand.ends[-1].get("type") not in (None, "nm"):
        return False
    if hand.points[top] >= 30000:
        return not result.renchan or top == hand.oya
    return kyoku >= last + 3 and not result.renchan
