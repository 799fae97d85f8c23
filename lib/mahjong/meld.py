"""Calls: what the number `m` of a log's N tag means."""

from typing import NamedTuple

from .mjlog import Unencodable

CHI, PON, MINKAN, KAKAN, ANKAN = range(5)  # as rows number the types
NAMES = ("chi", "pon", "open kan", "added kan", "closed kan")
KANS = (MINKAN, KAKAN, ANKAN)


class Meld(NamedTuple):
    """A call; tiles are 0..135.

    `tiles`: the whole meld, ascending. `own`: the tiles that leave the caller's hand. `called`: the tile that was
    taken; for an added kan, by its pon; -1 for a closed kan. `source`: the seat it was taken from, relative to the
    caller: 1 next, 2 across, 3 previous; 4 for a closed kan.
    """

    type: int
    tiles: tuple
    own: tuple
    called: int
    source: int


def decode(m):
    """The Meld that `m` (0..65535) stands for. Raises Unencodable if it stands for none."""
    source = m & 3
    if m & 4:
        kind, place = divmod(m >> 10, 3)
        low = kind // 7 * 9 + kind % 7
        tiles = tuple(4 * (low + i) + (m >> shift & 3) for i, shift in enumerate((3, 5, 7)))
        valid = source == 3 and kind < 21
        type_ = CHI
    elif m & 24:
        kind, place = divmod(m >> 9, 3)
        four = tuple(range(4 * kind, 4 * kind + 4))
        fourth = four[m >> 5 & 3]
        tiles = tuple(tile for tile in four if tile != fourth)
        valid = source and kind < 34
        type_ = PON if m & 8 else KAKAN
    else:
        kind, place = m >> 10, m >> 8 & 3
        tiles = tuple(range(4 * kind, 4 * kind + 4))
        valid = not m & 32 and kind < 34  # bit 5: a north set aside, three players
        type_ = MINKAN if source else ANKAN
    if not valid:
        raise Unencodable(f"call {m} is none")
    if type_ == ANKAN:
        return Meld(ANKAN, tiles, tiles, -1, 4)
    if type_ == KAKAN:
        return Meld(KAKAN, four, (fourth,), tiles[place], source)
    return Meld(type_, tiles, tuple(tile for tile in tiles if tile != tiles[place]), tiles[place], source)
