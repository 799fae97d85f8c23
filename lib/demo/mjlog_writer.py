"""Tags of an mjlog, Tenhou's XML of a game, from what happened at the table.

Tiles are numbers 0-135 (kind = tile // 4; 16, 52, 88 are the red fives), seats are 0-3. Points are full points; these
functions divide by 100 where the format has hundreds.
"""

# the engine's names of the yaku, in the order of Tenhou's numbers; for an open hand they end in an underscore
NAMES = """Menzentsumo Riichi Ippatsu Chankan Rinshankaihou Haitiraoyue Houtiraoyui Pinfu Tanyao Yiipeikou
    SelfWind_East SelfWind_South SelfWind_West SelfWind_North GameWind_East GameWind_South GameWind_West GameWind_North
    Yakuhai_haku Yakuhai_hatsu Yakuhai_chu DoubleRiichi Chitoitsu Chantai Ikkitsuukan Sanshokudoujun Sanshokudoukou
    Sankantsu Toitoi Sanankou Shosangen Honrotou Ryanpeikou Junchan Honitsu Chinitsu Renho Tenho Chiiho Daisangen
    Suuanko SuuankoTanki Tsuuiisou Ryuiisou Chinroutou Churenpoutou Pure_Churenpoutou Koukushimusou Koukushimusou_13
    Daisushi Shosushi Suukantsu Dora UraDora AkaDora"""
YAKU = NAMES.split()
YAKUMAN = range(37, 52)
URA = 53
HAN = [1] * 21 + [2] * 11 + [3] * 3 + [6] + [13] * 16 + [1] * 3
SPACED = {"N", "DORA", "AGARI", "RYUUKYOKU", "BYE"}  # Tenhou ends these with a space
YAKU_ORDER = {21: 1, 0: 2.5, URA: 55}  # where Tenhou's order is not the order of the numbers


def tag(name, **attrs):
    """One tag, with its attributes in the order given. None leaves an attribute out; lists are joined with commas."""
    parts = [name]
    for key, value in attrs.items():
        if value is not None:
            text = ",".join(map(str, value)) if isinstance(value, (list, tuple)) else value
            parts.append(f'{key}="{text}"')
    return f"<{' '.join(parts)}{' ' * (name in SPACED)}/>"


def hundreds(points):
    """Points -> hundreds of points, the unit of ten, sc and owari."""
    return [p // 100 for p in points]


def chi_code(called, own, source=3):
    """m of a chi: `called` the tile taken from the seat `source` places on, `own` the two tiles of the hand."""
    tiles = sorted([called, *own])
    low = tiles[0] // 4
    base = (low // 9 * 7 + low % 9) * 3 + tiles.index(called)
    copies = sum((t % 4) << shift for t, shift in zip(tiles, (3, 5, 7), strict=True))
    return base << 10 | copies | 4 | source


def pon_code(called, own, source):
    """m of a pon."""
    tiles = sorted([called, *own])
    (left_out,) = {0, 1, 2, 3} - {t % 4 for t in tiles}
    return (called // 4 * 3 + tiles.index(called)) << 9 | left_out << 5 | 8 | source


def added_code(melds, tile):
    """m of the added kan that `tile` makes of one of the `melds` (m codes)."""
    (pon,) = [m for m in melds if m & 12 == 8 and (m >> 9) // 3 == tile // 4]
    return pon & ~8 | 16


def grows(meld, code):
    """Is `code` the added kan that this pon has become?"""
    return meld & 12 == 8 and code == meld & ~8 | 16


def kan_code(tile, source=0):
    """m of an open kan of the called `tile`, or of a closed one (source 0) with `tile` the first shown."""
    return tile << 8 | source


def level(han, fu, yakuman):
    """Third number of `ten`: 0 below mangan, 1 mangan, 2 haneman, 3 baiman, 4 sanbaiman, 5 yakuman."""
    if yakuman or han >= 13:
        return 5
    if han >= 6:
        return 2 + (han >= 8) + (han >= 11)
    return int(han == 5 or (han == 4 and fu >= 40) or (han == 3 and fu >= 70))


def yaku(names, riichi):
    """Engine's names -> (attribute yaku, attribute yakuman), lists of numbers or None; han follow each yaku."""
    han = {URA: 0} if riichi else {}
    for name in names:
        opened = name not in YAKU
        number = YAKU.index(name.rstrip("_"))
        han[number] = han.get(number, 0) + HAN[number] - opened
    yakuman = sorted(n for n in han if n in YAKUMAN)
    if yakuman:
        return None, yakuman
    order = sorted(han, key=lambda number: YAKU_ORDER.get(number, number))
    return [x for number in order for x in (number, han[number])], None


def owari(points):
    """Final points of the seats -> value of the attribute owari: points in hundreds and result, seat by seat.

    The result is (points - 30000) in thousands, rounded half away from zero as points, plus 10, -10 and -20 for the
    places 2, 3 and 4; the winner gets what the others lose. Checked against real logs of 2009 to 2020.
    """
    order = sorted(range(4), key=lambda seat: (-points[seat], seat))
    result = [0] * 4
    for seat, bonus in zip(order[1:], (10, -10, -20), strict=True):
        rounded = (abs(points[seat]) + 500) // 1000
        result[seat] = (rounded if points[seat] > 0 else -rounded) - 30 + bonus
    result[order[0]] = -sum(result)
    return ",".join(f"{p // 100},{r}.0" for p, r in zip(points, result, strict=True))
