"""Walls that are prepared so that something rare happens. The engine still decides if each action is legal."""

import re

import MahjongPyWrapper as pm

from ..mahjong.tile import RED
from ..mahjong.wall import REPLACEMENTS

QUIET = "-"  # never wins, never calls, throws what it draws

YAOCHU = ["1m", "9m", "1p", "9p", "1s", "9s"] * 2 + ["1z", "2z", "3z", "4z", "5z", "6z"]  # enough for a whole hand

# name -> the hands of the dealer and the players after it (tiles that are not given are random), their scripts, the
# draws of the hand in order, and the replacement tiles. 0p is the red five, ? any tile. A script is a list of actions;
# the player takes each as soon as it is possible, and does nothing else before.
RIGS = {
    "yao9": {"hands": ["19m19p19s1234z"], "scripts": ["Kyushukyuhai"]},
    "kaze4": {"hands": ["4z"] * 4, "scripts": ["Discard:4z"] * 4},
    "reach4": {
        "hands": ["234567m34599p23s", "123789m678p8856s", "345678m12367p22s", "456m78934p78911s"],
        "scripts": ["Riichi:5z", "Riichi:6z", "Riichi:5z", "Riichi:6z"],
        "draws": "5656z",
    },
    "double riichi": {
        "hands": ["234567m34599p23s"],
        "scripts": ["Riichi:7z", QUIET, QUIET, QUIET],
        "draws": "7z???1s",
    },
    "ron3": {
        "hands": ["6p", "345678m23488s45p", "23466m345678s78p", "22345m456777s57p"],
        "scripts": ["Discard:6p", "Ron", "Ron", "Ron"],
        "draws": "1z",
    },
    "ron2": {
        "hands": ["6p", "345678m23488s45p", "23466m345678s78p"],
        "scripts": ["Discard:6p", "Ron", "Ron", QUIET],
        "draws": "1z",
    },
    "chankan": {
        "hands": ["6p", "66p1m", "345678m2348s45p1z"],
        "scripts": ["Discard:6p " + QUIET, "Pon Discard:1m KaKan", "Discard:1z ChanKan", QUIET],
        "draws": "9m8s99s6p",
    },
    "chanankan": {"hands": ["1111m", "99m19p19s1234567z"], "scripts": ["AnKan", "ChanAnKan"]},
    "kan4": {
        "hands": ["1111m9999p5z", "1111s555z"],
        "scripts": ["AnKan AnKan Discard:5z", "Kan AnKan", QUIET, QUIET],
    },
    "kans": {
        "hands": ["5z6z", "99m1111s5566z"],
        "scripts": [
            "Discard:5z Discard:6z",
            "Pon:5z Discard:9m Pon:6z Discard:9m KaKan:5z KaKan:6z AnKan:1s",
            QUIET,
            QUIET,
        ],
        "draws": "???????5z",
        "replacements": "6z",
    },
    "nm": {"scripts": [QUIET] * 4, "draws": "???".join(YAOCHU)},
}


def dealt_places(place):
    """Where in the wall the 13 tiles stand that the player so many places after the dealer is dealt: 4, 4, 4 and 1."""
    turns = [16 * block + 4 * place + i for block in range(3) for i in range(4)]
    return [135 - turn for turn in [*turns, 48 + place]]


def parse(text):
    """'12m0p?' -> ['1m', '2m', '0p', '?']."""
    found = []
    for digits, suit, wild in re.findall(r"(\d+)([mpsz])|(\?)", text):
        found += [digit + suit for digit in digits] or [wild]
    return found


def kind_of(name):
    """'3p' -> 11, the kind of a tile; a red five, '0p', has its five's."""
    return "mpsz".index(name[1]) * 9 + (int(name[0]) or 5) - 1


def script(rig, place):
    """Script of the player so many places after the dealer, as pairs (engine's action or None, kind or None)."""
    wishes = []
    for wish in dict(enumerate(rig.get("scripts", ()))).get(place, "").split():
        name, _, tile = wish.partition(":")
        wishes.append((getattr(pm.BaseAction, name, None), kind_of(tile) if tile else None))
    return wishes


def build_wall(rig, rng):
    """A wall of 136 tiles in the engine's order, with the tiles of the rig in their places."""
    pool = list(range(136))
    rng.shuffle(pool)
    wanted = {}  # place in the wall -> name
    for place, hand in enumerate(rig.get("hands", ())):
        wanted |= dict(zip(dealt_places(place), parse(hand), strict=False))
    wanted |= {83 - turn: name for turn, name in enumerate(parse(rig.get("draws", "")))}
    wanted |= dict(zip(REPLACEMENTS, parse(rig.get("replacements", "")), strict=False))
    wall = [None] * 136
    for place, name in wanted.items():
        if name != "?":
            red = name[0] == "0"
            wall[place] = next(t for t in pool if t // 4 == kind_of(name) and (t in RED) == red)
            pool.remove(wall[place])
    return [pool.pop() if tile is None else tile for tile in wall]
