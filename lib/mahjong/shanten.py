"""Shanten: how many tiles a hand needs until it is ready, from the counts of its 34 kinds. 0 is ready, -1 complete."""

from functools import lru_cache
from itertools import product

TERMINALS = (0, 8, 9, 17, 18, 26, 27, 28, 29, 30, 31, 32, 33)  # kinds of the terminals and honours


@lru_cache(1 << 18)
def _blocks(counts, runs):
    """The useful ways to cut one suit into blocks: a tuple of (sets, partial sets, pairs used as head).

    `counts` is a tuple of the suit's kinds; `runs` is False for honours.
    """
    first = next((i for i, n in enumerate(counts) if n), None)
    if first is None:
        return ((0, 0, 0),)
    found = set()

    def take(block, gain):
        rest = list(counts)
        for offset in block:
            if first + offset >= len(rest) or not rest[first + offset]:
                return
            rest[first + offset] -= 1
        found.update(tuple(a + b for a, b in zip(way, gain, strict=True)) for way in _blocks(tuple(rest), runs))

    take((0,), (0, 0, 0))
    take((0, 0, 0), (1, 0, 0))
    take((0, 0), (0, 1, 0))
    take((0, 0), (0, 0, 1))
    if runs:
        take((0, 1, 2), (1, 0, 0))
        take((0, 1), (0, 1, 0))
        take((0, 2), (0, 1, 0))
    return _best(found)


def _best(ways):
    kept = {(s, min(p, 4), min(h, 1)) for s, p, h in ways if h < 2}
    return tuple(
        w for w in sorted(kept) if not any(v != w and all(a >= b for a, b in zip(v, w, strict=True)) for v in kept)
    )


@lru_cache(1 << 18)
def _join(one, other, runs):
    pairs = product(_blocks(one, True), _blocks(other, runs))
    return _best((a + d, b + e, c + f) for (a, b, c), (d, e, f) in pairs)


def shanten(counts, melds=0):
    """Shanten of a hand with the `counts` (a list of 34) and this number of open or closed `melds`. If there is no
    meld, seven pairs and thirteen orphans are considered too."""
    left = _join(tuple(counts[:9]), tuple(counts[9:18]), True)
    right = _join(tuple(counts[18:27]), tuple(counts[27:]), False)
    best = 8
    for (a, b, c), (d, e, f) in product(left, right):
        sets, head = a + d + melds, c + f > 0
        # a second head is a partial set
        best = min(best, 8 - 2 * sets - min(b + e + (c + f == 2), 4 - sets) - head)
    if not melds:
        kinds = 34 - counts.count(0)
        best = min(best, 6 - (kinds - counts.count(1)) + max(0, 7 - kinds))
        orphans = [counts[k] for k in TERMINALS]
        kinds = 13 - orphans.count(0)
        best = min(best, 13 - kinds - (kinds > orphans.count(1)))
    return best
