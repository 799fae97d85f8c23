"""Whether a complete hand has a yaku of its tiles."""

import pytest

from lib.demo.rigged_walls import kind_of, parse
from lib.mahjong.meld import ANKAN, CHI, MINKAN, PON, Meld
from lib.mahjong.yaku import has_yaku

EAST, SOUTH = 27, 28


def kinds(text):
    return [kind_of(name) for name in parse(text)]


def meld(text, type_):
    tiles = tuple(4 * kind + i for i, kind in enumerate(kinds(text)))
    return Meld(type_, tiles, tiles, -1, 4 if type_ == ANKAN else 3)


def holds(text, *melds, last="2p", ron=True):
    """Whether a hand of the round's east wind and the own south wind has a yaku; `last` is the winning tile."""
    found = kinds(text)
    counts = [found.count(kind) for kind in range(34)]
    return has_yaku(counts, list(melds), kind_of(last), ron, (EAST, SOUTH))


@pytest.mark.parametrize(
    ("name", "text", "melds", "last"),
    [
        ("all simples", "234m55p678s", [("345p", CHI), ("222s", PON)], "5p"),
        ("seven pairs", "1199m1199p1199s11z", [], "1z"),
        ("thirteen orphans", "19m19p19s12345677z", [], "7z"),
        ("a dragon", "123m55p678s666z", [("234p", CHI)], "5p"),
        ("the round's wind", "123m55p678s", [("234p", CHI), ("111z", PON)], "5p"),
        ("the own wind", "123m55p678s", [("234p", CHI), ("222z", PON)], "5p"),
        ("all triplets", "111m222p55s", [("999s", PON), ("333z", PON)], "5s"),
        ("a flush with honours", "123m789m55m", [("234m", CHI), ("333z", PON)], "5m"),
        ("all terminals and honours", "111m999p11s", [("999s", PON), ("333z", PON)], "1s"),
        ("one run in three suits", "234m234p99s", [("234s", CHI), ("111m", PON)], "9s"),
        ("one triplet in three suits", "333m333p99s123s", [("333s", PON)], "9s"),
        ("a straight", "123m789m99s", [("456m", CHI), ("111p", PON)], "9s"),
        ("a terminal in each set", "123m789p99s", [("789s", CHI), ("111p", PON)], "9s"),
        ("three concealed triplets", "111m222p888p55s", [("234s", CHI)], "5s"),
        ("three kans", "55s234s", [("1111m", ANKAN), ("9999p", MINKAN), ("8888s", MINKAN)], "5s"),
        ("the same run twice", "112233m456p789s44z", [], "4z"),
        ("pinfu", "123m456p789s99m234s", [], "2s"),
    ],
)
def test_each_yaku_is_one(name, text, melds, last):
    assert holds(text, *(meld(*m) for m in melds), last=last), name


@pytest.mark.parametrize(
    ("why", "text", "melds", "last"),
    [
        ("open, and nothing", "123m55p678s", [("234p", CHI), ("999s", PON)], "5p"),
        ("a wind of others", "123m55p678s", [("234p", CHI), ("333z", PON)], "5p"),
        ("the third triplet is another's tile", "111m222p888p55s", [("234s", CHI)], "8p"),
        ("the same run twice, but open", "112233m456p44z", [("789s", CHI)], "4z"),
        ("pinfu with one wait: a gap", "123m456p789s99m234s", [], "3s"),
        ("pinfu with one wait: an edge", "123m456p789s99m123s", [], "3s"),
        ("pinfu with a pair of value", "123m456p789s11z234s", [], "2s"),
        ("pinfu, but open", "123m456p99m234s", [("789s", CHI)], "2s"),
        ("a pair of dragons is no triplet", "123m456p777p66z", [("789s", CHI)], "6z"),
    ],
)
def test_what_is_near_to_one_is_none(why, text, melds, last):
    assert not holds(text, *(meld(*m) for m in melds), last=last), why


def test_a_triplet_completed_by_the_own_draw_is_concealed():
    assert holds("111m222p888p55s", meld("234s", CHI), last="8p", ron=False)
