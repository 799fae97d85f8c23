"""Calls: what the number `m` of a log's N tag means."""

from typing import NamedTuple

from lib.mjlog import Unencodable

CHI, PON, MINKAN, KAKAN, ANKAN = range(5)  # as a row counts meld types


class Meld(NamedTuple):
    """A call; tiles are 0..135.

    `tiles`: the whole meld, ascending; `own`: those that leave the caller's hand; `called`: the tile taken (for an added
    kan: in its pon; -1 for a closed kan); `source`: the seat it was taken from, relative to the caller (1 next,
    2 across, 3 previous; 4 for a closed kan).
    """

    type: int
    tiles: tuple
    own: tuple
    called: int
    source: int


def decode(m):
    """The Meld that `m` (16 bits) stands for. Raises Unencodable if it stands for none."""
    source = m & 3
    if m & 4:
        t, place = divmod(m >> 10, 3)
        low = t // 7 * 9 + t % 7
        tiles = tuple(4 * (low + i) + (m >> shift & 3) for i, shift in enumerate((3, 5, 7)))
        type_ = CHI
    elif m & 24:
        t, place = divmod(m >> 9, 3)
        four = range(4 * t, 4 * t + 4)
        rest = four[m >> 5 & 3]
        tiles = tuple(tile for tile in four if tile != rest)
        type_ = PON if m & 8 else KAKAN
    else:
        place = m >> 8 & 3
        tiles = tuple(range(m >> 10 << 2, (m >> 10 << 2) + 4))
        type_ = MINKAN if source else ANKAN
    if not 0 <= m < 1 << 16 or tiles[-1] > 135 or (type_ == CHI and (source != 3 or t > 20)) or (not m & 28 and m & 32):
        raise Unencodable(f"a call that is none ({m})")
    if type_ == ANKAN:
        return Meld(ANKAN, tiles, tiles, -1, 4)
    called = tiles[place]
    if type_ == KAKAN:
        return Meld(KAKAN, tuple(four), (rest,), called, source)
    return Meld(type_, tiles, tuple(tile for tile in tiles if tile != called), called, source)
