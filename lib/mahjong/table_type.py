"""Table types: what the bits of GO's type, which are also the four hex digits in the middle of a game id, stand for."""

PEOPLE, NO_RED_FIVES, NO_OPEN_TANYAO, HANCHAN, THREE_PLAYERS, TOKUJOU, FAST, JOUKYUU = (1 << bit for bit in range(8))
HOUOU = TOKUJOU | JOUKYUU
CUSTOM = -256  # all bits above these eight: tables with chips, or with rules that somebody chose
UNSUPPORTED = {THREE_PLAYERS: "three players", NO_RED_FIVES: "no red fives", NO_OPEN_TANYAO: "no open tanyao",
               CUSTOM: "custom rules"}

_LEVELS = {0: "ippan", JOUKYUU: "joukyuu", TOKUJOU: "tokujou", HOUOU: "houou"}


def why_unsupported(bits):
    """Which rules of a table type cannot be encoded, as a list of texts; empty if its games are encoded."""
    return [what for bit, what in UNSUPPORTED.items() if bits & bit]


def name(code):
    """What the hex digits stand for: 00a9 is 'houou hanchan'. That is what the id says; if the log says something
    else, the log is right."""
    bits = int(code, 16)
    if bits > 255 or not bits & PEOPLE:
        return "other rules"
    words = f"{_LEVELS[bits & HOUOU]} {'hanchan' if bits & HANCHAN else 'tonpuu'}"
    return ", ".join([words, *why_unsupported(bits), *["fast"] * bool(bits & FAST)])
