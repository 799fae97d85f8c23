"""The wall of a hand, rebuilt from its log. The seed of the log is not needed.

The engine takes 136 tiles and draws them from the back: four, four, four and one for each seat, the dealer first, then
turn by turn. The front is the dead wall. The other places get the tiles that never show, in any order.
"""

from . import tile
from .game import CALL, DORA, DRAW, WIN
from .meld import MINKAN
from .mjlog import Unencodable

REPLACEMENTS = (1, 0, 3, 2)  # the draws after a kan
INDICATORS = (5, 7, 9, 11, 13)
URA = (4, 6, 8, 10, 12)
DEAD = 14


def build(hand):
    """A wall with which `hand` can be played, a permutation of 0..135. Raises Unencodable if there is no such wall."""
    live, replacements, indicators, ura, after_kan = [], [], [hand.indicator], (), False
    for block in range(0, 13, 4):
        for turn in range(4):
            live += hand.dealt[(hand.dealer + turn) % 4][block : block + 4]
    for op, _, what in hand.events:
        if op == DRAW:
            (replacements if after_kan else live).append(what)
            after_kan = False
        elif op == CALL:
            after_kan = what.type >= MINKAN
        elif op == DORA:
            indicators.append(what)
        elif op == WIN:
            ura = max(ura, what.ura)
    if len(live) + len(replacements) > 136 - DEAD or len(replacements) > 4 or len(indicators) > 5 or len(ura) > 5:
        raise Unencodable("more tiles drawn or shown than the wall has")
    dead = {}
    for places, tiles in ((REPLACEMENTS, replacements), (INDICATORS, indicators), (URA, ura)):
        dead.update(zip(places, tiles, strict=False))
    known = {*live, *dead.values()}
    if len(known) < len(live) + len(dead):
        seen = [*live, *dead.values()]
        raise Unencodable(f"tile {tile.name(max(seen, key=seen.count))} shows twice")
    hidden = [t for t in range(136) if t not in known]
    return [dead[i] if i in dead else hidden.pop() for i in range(DEAD)] + hidden + live[::-1]
