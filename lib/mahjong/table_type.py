"""Table types: what the bits of GO's type, which are also the four hex digits in the middle of a game id, stand for."""

PEOPLE, NO_RED_FIVES, NO_OPEN_TANYAO, HANCHAN, THREE_PLAYERS, TOKUJOU, FAST, JOUKYUU = (1 << bit for bit in range(8))
HOUOU = TOKUJOU | JOUKYUU
UNSUPPORTED = {THREE_PLAYERS: "three players", NO_RED_FIVES: "no red fives", NO_OPEN_TANYAO: "no open tanyao"}
USUAL = PEOPLE | HANCHAN | TOKUJOU | FAST | JOUKYUU  # bits that change no rule

_LEVELS = {0: "ippan", JOUKYUU: "joukyuu", TOKUJOU: "tokujou", HOUOU: "houou"}


def why_unsupported(bits):
    """What of a table type the rows have no room for, as a list of texts; empty if games of it are encoded."""
    return [what for bit, what in UNSUPPORTED.items() if bits & bit]


def name(code):
    """What the hex digits stand for: 00a9 is 'houou hanchan'. It is the id's word; the log itself decides."""
    bits = int(code, 16)
    if bits > 255 or not bits & PEOPLE:
        return "other rules"
    words = f"{_LEVELS[bits & HOUOU]} {'hanchan' if bits & HANCHAN else 'tonpuu'}"
    return ", ".join([words, *why_unsupported(bits), *["fast"] * bool(bits & FAST)])
