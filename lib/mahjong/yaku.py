"""Whether a complete hand has a yaku from its tiles. Yaku of another kind (riichi, tsumo, the last tile, a robbed kan
and so on) are checked elsewhere.

Only whether there is one matters, not which. So yakuman are not checked: a hand with a yakuman always has one of the
yaku below too. (Thirteen orphans cannot be cut into sets and a pair, and count as seven pairs do.) Source: Tenhou's
rules, https://tenhou.net/man/.
"""

from .meld import ANKAN, CHI, KANS
from .ready import TERMINALS

_NO_TERMINALS = frozenset(range(34)) - frozenset(TERMINALS)
_DRAGONS = (31, 32, 33)


def decompositions(counts):
    """Yield every way to cut the counts of 34 kinds into sets and a pair: (kind of the pair, sorted list of the lowest
    kinds of the runs, sorted list of the kinds of the triplets)."""
    for pair in range(34):
        if counts[pair] > 1:
            counts[pair] -= 2
            for runs, triplets in _sets(counts, 0):
                yield pair, runs, triplets
            counts[pair] += 2


def _sets(counts, kind):
    while kind < 34 and not counts[kind]:
        kind += 1
    if kind == 34:
        yield [], []
        return
    if counts[kind] > 2:
        counts[kind] -= 3
        for runs, triplets in _sets(counts, kind):
            yield runs, [kind, *triplets]
        counts[kind] += 3
    if kind < 27 and kind % 9 < 7 and counts[kind + 1] and counts[kind + 2]:
        for k in (kind, kind + 1, kind + 2):
            counts[k] -= 1
        for runs, triplets in _sets(counts, kind):
            yield [kind, *runs], triplets
        for k in (kind, kind + 1, kind + 2):
            counts[k] += 1


def has_yaku(counts, melds, last, ron, winds):
    """Whether a complete hand has a yaku from its tiles.

    counts: the counts of the kinds of its concealed tiles, with the winning tile; melds: its Melds; last: the kind of
    the winning tile; ron: whether another player discarded it; winds: the kinds of the round's wind and the own wind.
    """
    kinds = {kind for kind, n in enumerate(counts) if n}.union(*({tile // 4 for tile in m.tiles} for m in melds))
    suits = {kind // 9 for kind in kinds if kind < 27}
    if kinds <= _NO_TERMINALS or kinds.isdisjoint(_NO_TERMINALS) or len(suits) < 2:
        return True  # all simples; all terminals and honours; a flush
    called_runs = [m.tiles[0] // 4 for m in melds if m.type == CHI]
    called_triplets = [m.tiles[0] // 4 for m in melds if m.type != CHI]
    kans = sum(m.type in KANS for m in melds)
    hidden_kans = sum(m.type == ANKAN for m in melds)
    closed = hidden_kans == len(melds)
    ways = list(decompositions(counts))
    if not ways or kans > 2:
        return True  # seven pairs, thirteen orphans; three kans
    values = {*_DRAGONS, *winds}
    return any(
        _scores(pair, runs, triplets, called_runs, called_triplets, hidden_kans, closed, last, ron, values)
        for pair, runs, triplets in ways
    )


def _scores(pair, runs, triplets, called_runs, called_triplets, hidden_kans, closed, last, ron, values):
    """Whether one way to cut the hand has a yaku. runs, triplets: the concealed ones."""
    all_runs, all_triplets = {*runs, *called_runs}, {*triplets, *called_triplets}
    if not values.isdisjoint(all_triplets):  # a triplet of value
        return True
    if not all_runs:  # all triplets
        return True
    for low in range(7):
        if {low, low + 9, low + 18} <= all_runs:  # the same run in three suits
            return True
    for kind in range(9):
        if {kind, kind + 9, kind + 18} <= all_triplets:  # the same triplet in three suits
            return True
    for suit in (0, 9, 18):
        if {suit, suit + 3, suit + 6} <= all_runs:  # a straight
            return True
    outside = all(low % 9 in (0, 6) for low in all_runs)
    if outside and all(kind in TERMINALS for kind in (pair, *all_triplets)):  # a terminal or honour in each set
        return True
    by_run = any(low <= last <= low + 2 for low in runs)
    hidden = len(triplets) + hidden_kans - (ron and last in triplets and not by_run)
    if hidden > 2:  # three concealed triplets; one that a ron completes does not count
        return True
    if closed and len(set(runs)) < len(runs):  # the same run twice
        return True
    if closed and not all_triplets and pair not in values:  # pinfu: four runs, and a wait on both sides of one
        return any((last == low and low % 9 < 6) or (last == low + 2 and low % 9 > 0) for low in runs)
    return False
