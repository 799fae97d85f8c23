"""What the rules allow: the exact mask of each kind of decision, from a seat's own tiles and what is on the table.

The rules are Tenhou's (https://tenhou.net/man/) for four players with red fives and open tanyao. A comment names each
rule where it is applied. A mask is 54 bytes: 1 if the action of that number (lib.mahjong.action) is legal, else 0. The
engine is not asked.
"""

from . import action, ready, yaku
from .action import ANKAN, CHI_RED, KAKAN, MINKAN, NINE_TERMINALS, PASS, PON_RED, RON, TSUMO
from .meld import CHI, KANS, PON
from .tile import FACE, KIND

IS_HELD = bytes([0] + [1] * 255)  # count -> bit
NO_CALLS = bytes(action.COUNT - 37)
RED_FACE = {4: 34, 13: 35, 22: 36}  # kind of a five -> face of its red one
WINDS = [1 << kind for kind in range(27, 31)]
KINDS_FOR_NINE = 9
TILES_FOR_RIICHI, POINTS_FOR_RIICHI = 4, 1000


def own_turn(table, seat):
    """The mask of a seat that has just drawn.

    Riichi is not in this mask: it is a second decision, after the tile is chosen. See `may_say_riichi`.
    """
    drawn = table.drawn[seat]
    kind = KIND[drawn]
    counts, melds, in_riichi = table.counts[seat], table.melds[seat], table.riichi[seat]
    # in riichi only the drawn tile may be thrown
    mask = bytearray(action.COUNT) if in_riichi else table.held[seat].translate(IS_HELD) + NO_CALLS
    mask[FACE[drawn]] = 1
    # a kan needs a tile that is left to draw, and there are at most four kans in a hand
    if table.left and table.kans < 4:
        if in_riichi:
            mask[ANKAN] = counts[kind] == 3 and kan_keeps_the_waits(table, seat, kind)
        else:
            mask[ANKAN] = counts[kind] == 3 or 4 in counts
            if melds:
                mask[KAKAN] = any(m.type == PON and (counts[m.tiles[0] // 4] or m.tiles[0] // 4 == kind) for m in melds)
    if table.waits[seat] >> kind & 1:
        mask[TSUMO] = table.menzen[seat] or table.after_kan or not table.left or has_yaku(table, seat, kind, False)
    if table.quiet and not table.turns[seat]:  # the first own draw, and nobody has called or made a kan
        terminals = sum(counts[k] > 0 or k == kind for k in ready.TERMINALS)
        mask[NINE_TERMINALS] = terminals >= KINDS_FOR_NINE
    return bytes(mask)


def may_say_riichi(table, seat, tile):
    """Whether a seat that has just drawn may say riichi with this discard.

    It may if its hand is closed and ready without the tile, it has 1000 points, and four tiles are left to draw.
    """
    if (not table.menzen[seat] or table.riichi[seat] or table.points[seat] < POINTS_FOR_RIICHI
            or table.left < TILES_FOR_RIICHI):
        return False
    drawn = table.drawn[seat]
    if tile == drawn:
        return table.waits[seat] > 0
    counts, codes = list(table.counts[seat]), list(table.codes[seat])
    for kind, n in ((KIND[drawn], 1), (KIND[tile], -1)):
        counts[kind] += n
        codes[ready.SUIT[kind]] += n * ready.POWER[kind]
    return ready.waits(codes, counts, table.melds[seat]) > 0


def kan_keeps_the_waits(table, seat, kind):
    """Whether a hand in riichi waits for the same tiles after a closed kan of the drawn kind."""
    counts, codes, suit = list(table.counts[seat]), list(table.codes[seat]), ready.SUIT[kind]
    counts[kind] -= 3
    codes[suit] -= 3 * ready.POWER[kind]
    return ready.waits(codes, counts, [*table.melds[seat], None]) == table.waits[seat]


def after_call(table, seat, meld):
    """What a seat may discard that has just called chi or pon: all but what kuikae forbids."""
    mask = table.held[seat].translate(IS_HELD) + NO_CALLS
    for kind in swapped(meld.called, meld.own if meld.type == CHI else ()):
        mask[kind] = 0
        if kind in RED_FACE:
            mask[RED_FACE[kind]] = 0
    return bytes(mask)


def swapped(called, own):
    """The kinds that may not be discarded after a call (kuikae): the called kind and, after a chi with the tiles `own`,
    the one at the other end of the run."""
    kind = KIND[called]
    if own:
        low, high = sorted(KIND[tile] for tile in own)
        if kind < low and high % 9 < 8:
            return kind, high + 1
        if kind > high and low % 9:
            return kind, low - 1
    return (kind,)


def answers(table, actor, tile):
    """Who may do more than pass on a discard of `actor`: a list of (seat, mask), in the order of seats."""
    kind = KIND[tile]
    found = []
    for seat in (0, 1, 2, 3):
        if seat == actor:
            continue
        counts = table.counts[seat]
        may_chi = seat == (actor + 1) & 3 and kind < 27 and chi_pairs(counts, kind)
        if counts[kind] > 1 or may_chi or table.waits[seat] >> kind & 1:
            mask = answer(table, seat, tile, may_chi)
            if mask:
                found.append((seat, mask))
    return found


def chi_pairs(counts, kind):
    """The runs that a tile of `kind`, a number tile, makes with two tiles of the hand: a list of (its place in the run,
    the other two kinds)."""
    number = kind % 9
    found = []
    if number < 7 and counts[kind + 1] and counts[kind + 2]:
        found.append((0, kind + 1, kind + 2))
    if 0 < number < 8 and counts[kind - 1] and counts[kind + 1]:
        found.append((1, kind - 1, kind + 1))
    if number > 1 and counts[kind - 2] and counts[kind - 1]:
        found.append((2, kind - 2, kind - 1))
    return found


def answer(table, seat, tile, runs):
    """The mask of a seat that answers the discard `tile`; None if it can only pass. runs: the chi that it could make.
    """
    kind = KIND[tile]
    mask = bytearray(action.COUNT)
    # no calls in riichi, and none of the last discard
    if table.left and not table.riichi[seat]:
        held, n = table.held[seat], table.counts[seat][kind]
        if n > 1:
            red = kind in RED_FACE and held[RED_FACE[kind]]
            mask[action.PON] = n - red > 1
            mask[PON_RED] = red
            mask[MINKAN] = n == 3 and table.kans < 4
        for place, one, other in runs or ():
            if leaves_a_discard(table.counts[seat], place, kind, one, other):
                red = next((RED_FACE[k] for k in (one, other) if k in RED_FACE and held[RED_FACE[k]]), None)
                five = one if one in RED_FACE else other
                mask[CHI_RED + place] = red is not None
                mask[action.CHI + place] = red is None or held[five] > 0
    if table.waits[seat] >> kind & 1 and not is_furiten(table, seat):
        mask[RON] = table.riichi[seat] or not table.left or has_yaku(table, seat, kind, True)
    if 1 not in mask:
        return None
    mask[PASS] = 1
    return bytes(mask)


def leaves_a_discard(counts, place, kind, one, other):
    """Whether any tile may be discarded after a chi with the kinds `one` and `other`. If not, Tenhou does not offer it.
    """
    tiles = sum(counts)
    if tiles > 9:
        return True  # kuikae forbids at most two kinds, which are eight tiles
    forbidden = swapped(4 * kind, (4 * one, 4 * other))
    return tiles - 2 > sum(counts[k] for k in forbidden)


def robbers(table, actor, tile, closed):
    """Who may rob a kan of `actor`: a list of (seat, mask), in the order of seats. A `closed` kan may be robbed with
    thirteen orphans only; the others are kans that add a tile to a pon."""
    kind = KIND[tile]
    found = []
    for seat in (0, 1, 2, 3):
        if seat != actor and table.waits[seat] >> kind & 1 and not is_furiten(table, seat):
            if closed and not waits_for_orphans(table, seat):
                continue
            mask = bytearray(action.COUNT)
            mask[RON] = mask[PASS] = 1  # robbing a kan is a yaku
            found.append((seat, bytes(mask)))
    return found


def waits_for_orphans(table, seat):
    return not table.melds[seat] and sum(table.counts[seat][k] > 0 for k in ready.TERMINALS) > 11


def is_furiten(table, seat):
    """Whether a seat may not win on the tile of another: because it has discarded a tile that it waits for, or because
    it did not win on one since its last draw or, in riichi, at any time."""
    return bool(table.missed[seat] or table.thrown[seat] & table.waits[seat])


def has_yaku(table, seat, kind, ron):
    """Whether a hand that a tile of `kind` completes has a yaku from its tiles."""
    counts = list(table.counts[seat])
    counts[kind] += 1
    winds = 27 + table.wind, 27 + (seat - table.dealer) % 4
    return yaku.has_yaku(counts, table.melds[seat], kind, ron, winds)


def hand_is_drawn(table, kind):
    """Whether a hand may end without a winner as RYUUKYOKU says: kind is its type, '' if no tile is left."""
    if kind in ("", "nm"):  # nagashi mangan: the points say who has it
        return not table.left
    if kind == "reach4":
        return all(table.riichi)
    if kind == "kan4":
        return table.kans == 4 and not any(sum(m.type in KANS for m in melds) == 4 for melds in table.melds)
    if kind == "kaze4":
        return table.quiet and table.turns == [1] * 4 and len(set(table.thrown)) == 1 and table.thrown[0] in WINDS
    return kind == "ron3"
