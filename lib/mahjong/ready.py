"""What a hand waits for, found in tables that are made when this module is imported.

A suit is one number: its nine counts (seven for honours) are the digits, in base 5. The `codes` of a hand are its four
suits, in the order m, p, s, honours, without melds. A table says for each suit what it can be: whole sets, sets and a
pair, and so on. A hand is ready, or complete, if its four suits fit together. No table has suits with more than four of
a kind, so nobody waits for a fifth tile. Waits are sets of kinds 0..33, as the bits of one number.
"""

import itertools

SUIT, POWER = zip(*[(kind // 9, 5 ** (kind % 9)) for kind in range(34)], strict=True)
KINDS = (range(9), range(9, 18), range(18, 27), range(27, 34))  # of each suit
TERMINALS = (0, 8, 9, 17, 18, 26, 27, 28, 29, 30, 31, 32, 33)  # and honours
ORPHANS = sum(1 << kind for kind in TERMINALS)

# what a suit can be: whole sets; sets and a pair; with one more tile, sets and a pair; with one more tile, whole sets
SETS, PAIR, LACKS_PAIR, LACKS_SETS = 1, 2, 4, 8


def suit_table(size, runs):
    """What each code of a suit of `size` kinds can be, as bits of one byte; honours have no `runs`."""
    table = bytearray(5**size)
    units = [3 * 5**kind for kind in range(size)] + [31 * 5**kind for kind in range(size - 2)] * runs
    codes = {0}
    for _ in range(4):
        codes |= {code + unit for code in codes for unit in units if fits(code, unit)}
    lone = [5**kind for kind in range(size)]
    for code in codes:
        table[code] |= SETS
        for one in lone:
            if code // one % 5 <= 2:
                table[code + 2 * one] |= PAIR
    for code in [code for code, flags in enumerate(table) if flags]:
        for one in lone:
            if code // one % 5:
                table[code - one] |= (LACKS_SETS if table[code] & SETS else 0) | (
                    LACKS_PAIR if table[code] & PAIR else 0)
    return bytes(table)


def fits(code, unit):
    """Whether no digit of the sum is more than 4."""
    while unit:
        if code % 5 + unit % 5 > 4:
            return False
        code, unit = code // 5, unit // 5
    return True


NUMBERS, HONOURS = suit_table(9, True), suit_table(7, False)
TABLES = (NUMBERS, NUMBERS, NUMBERS, HONOURS)


def needs(*patterns):
    """What the fourth suit must be, so that all four fit one of the `patterns`: a byte for each combination of what the
    other three can be, four bits each."""
    table = bytearray(16**3)
    for a, b, c, fourth in {order for pattern in patterns for order in itertools.permutations(pattern)}:
        for x, y, w in itertools.product(range(16), repeat=3):
            if x & a and y & b and w & c:
                table[x << 8 | y << 4 | w] |= fourth
    return bytes(table)


NEEDS_TO_BE_WHOLE = needs((PAIR, SETS, SETS, SETS))
NEEDS_TO_BE_READY = needs((LACKS_PAIR, SETS, SETS, SETS), (LACKS_SETS, PAIR, SETS, SETS))


def waits(codes, counts, melds):
    """The kinds that complete a hand of 13 tiles, or three fewer for each of its `melds`; 0 if it is not ready.

    codes, counts: the same hand, as four numbers and as counts of the 34 kinds.
    """
    m, p, s, z = codes
    a, b, c, d = NUMBERS[m], NUMBERS[p], NUMBERS[s], HONOURS[z]
    found = 0
    if a & NEEDS_TO_BE_READY[b << 8 | c << 4 | d]:
        flags = (a, b, c, d)
        for suit, code in enumerate(codes):
            x, y, w = flags[:suit] + flags[suit + 1 :]
            need = NEEDS_TO_BE_WHOLE[x << 8 | y << 4 | w]
            if need:
                table = TABLES[suit]
                for kind in KINDS[suit]:
                    if counts[kind] < 4 and table[code + POWER[kind]] & need:
                        found |= 1 << kind
    return found if melds else found | waits_of_pairs_and_orphans(counts)


def waits_of_pairs_and_orphans(counts):
    """The same for seven pairs and thirteen orphans, which have no melds."""
    empty = counts.count(0)
    if empty == 27 and counts.count(2) == 6:
        return 1 << counts.index(1)
    if empty in (21, 22):
        held = [kind for kind in TERMINALS if counts[kind]]
        if len(held) == 34 - empty:  # all others are terminals or honours; 12 kinds in 13 tiles mean one pair
            return ORPHANS if empty == 21 else ORPHANS - sum(1 << kind for kind in held)
    return 0
