"""Tiles, actions and rows as players write them. In 123m406p77z, 0 is the red five, and 1z to 7z are east to chun."""

from typing import NamedTuple

from ..mahjong import action, meld
from ..mahjong.game import WINDS
from ..mahjong.tile import kind_name
from . import schema

AKA = 1
SEATS = ("self", "shimocha", "toimen", "kamicha")
_CHI = ("low", "middle", "high")
_CALLS = {
    **{action.CHI + i: f"chi {where}" for i, where in enumerate(_CHI)},
    **{action.CHI_RED + i: f"chi {where} red" for i, where in enumerate(_CHI)},
    action.PON: "pon", action.PON_RED: "pon red", action.ANKAN: "closed kan", action.MINKAN: "open kan",
    action.KAKAN: "added kan", action.RIICHI: "riichi", action.RON: "ron", action.TSUMO: "tsumo",
    action.NINE_TERMINALS: "nine terminals", action.NO_RIICHI: "no riichi", action.PASS: "pass",
}


def tile(kind, aka=0):
    """The name of a tile by its id 0..33 (see lib.rows.schema) and its aka bit: 5m, 0m, 1z. Empty for 34, no tile."""
    return "" if kind >= schema.NO_TILE else kind_name(kind, aka)


def tiles(pairs):
    """Several tiles, (id, aka) each, in their order; the suit is written once for neighbours of a suit: 123m0p."""
    names = [tile(*pair) for pair in pairs]
    following = [*names[1:], ""]
    return "".join(name[0] if name[1:] == after[1:] else name for name, after in zip(names, following, strict=True))


# names of actions 0..53; a discard has the name of its tile
ACTIONS = [tile(kind) for kind in range(34)] + [tile(9 * suit + 4, AKA) for suit in range(3)]
ACTIONS += [_CALLS[number] for number in range(action.CHI, action.COUNT)]
# a name for several actions -> their names; red fives and the place of the called tile make no difference to it
GROUPS = {
    "discard": ACTIONS[:action.CHI], "chi": ACTIONS[action.CHI:action.PON], "pon": ACTIONS[action.PON:action.ANKAN],
    "kan": ACTIONS[action.ANKAN:action.KAKAN + 1], "win": ["ron", "tsumo"],
}
_ALL = list(dict.fromkeys([*ACTIONS, *GROUPS]))
# key of a described row -> all texts that can be asked for, if they are few
VALUES = {
    "label": _ALL, "legal": _ALL, "round": [f"{wind} {n}" for wind in WINDS for n in range(1, 5)],
    "asked": ["turn", "riichi", *(f"{what} by {who}" for what in ("discard", "kan") for who in SEATS[1:])],
}


class Token(NamedTuple):
    segment: int
    tile: int
    count: int
    who: int
    extra: int
    scalar: float


def describe(row):
    """One row of the cache (a dict of arrays, as Cache[i] gives it) as texts and numbers, for people and for jq.

    In a river, r stands before the tile that declares riichi, and _ after a tile that was thrown as it was drawn.
    """
    n = int(row["attention_mask"].sum())
    tokens = [Token(*token, float(row["scalars"][place, 0])) for place, token in enumerate(row["tokens"][:n].tolist())]
    only = {token.segment: token for token in tokens}
    hand = [(t.tile, t.extra & AKA) for t in tokens if t.segment == 1 for _ in range(t.count)]
    drawn, last, hint = only.get(2), only.get(20), only[22].count
    asked = "turn" if not hint else f"{'discard' if hint == 1 else 'kan'} by {SEATS[last.who]}"
    return {
        "hand": int(row["origin"]["hand"]), "seat": int(row["origin"]["seat"]), "step": int(row["origin"]["step"]),
        "round": f"{WINDS[only[14].count]} {only[25].count + 1}", "honba": only[16].count, "sticks": only[17].count,
        "left": only[18].count,
        "indicators": tiles([(t.tile, t.extra & AKA) for t in tokens if t.segment == 7]),
        "tiles": tiles(hand), "drawn": tile(drawn.tile, drawn.extra & AKA) if drawn else "",
        "asked": "riichi" if only[21].extra else asked, "on": tile(last.tile, last.extra & AKA) if last else "",
        "players": [_player(who, only[15].count, [t for t in tokens if t.who == who]) for who in range(4)],
        "legal": [name for name, bit in zip(ACTIONS, row["action_mask"].tolist(), strict=True) if bit],
        "label": ACTIONS[row["labels"]],
        **{name: int(row["outcome"][name]) for name in row["outcome"].dtype.names},
    }


def _player(who, wind, tokens):
    """What the table shows of one player. wind: the own wind of the row's player."""
    melds, river = [], []
    for t in tokens:
        if t.segment == 27:
            melds.append([t, []])
        elif t.segment in (3, 4):
            melds[-1][1].append((t.tile, t.extra & AKA))
        elif t.segment in (5, 6):
            declares = t.extra & 2 and not any(name.startswith("r") for name in river)
            river.append(f"{'r' if declares else ''}{tile(t.tile, t.extra & AKA)}{'' if t.extra & 4 else '_'}")
    state = {t.segment: t for t in tokens}
    return {
        "who": SEATS[who], "wind": WINDS[(wind + who) % 4], "score": round(25000 + 25000 * state[13].scalar),
        "riichi": bool(state[10].count),
        "melds": [f"{meld.NAMES[t.count]} {tiles(held)}"
                  + (f" from {SEATS[(who + t.extra) % 4]}" if t.extra < 4 else "") for t, held in melds],
        "river": " ".join(river),
    }
