"""Calls: the number of an N tag and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.demo.mjlog_writer import added_code, chi_code, kan_code, pon_code
from lib.mahjong.meld import ANKAN, CHI, KAKAN, MINKAN, PON, Meld, decode
from lib.mahjong.mjlog import Unencodable

kinds, copies, sources = st.integers(0, 33), st.permutations(range(4)), st.integers(1, 3)


@given(st.sampled_from([n + s for s in (0, 9, 18) for n in range(7)]), st.tuples(*[st.integers(0, 3)] * 3), st.data())
def test_a_chi_comes_back(low, picks, data):
    tiles = [4 * (low + i) + pick for i, pick in enumerate(picks)]
    called = data.draw(st.sampled_from(tiles))
    own = tuple(tile for tile in tiles if tile != called)
    assert decode(chi_code(called, own)) == Meld(CHI, tuple(tiles), own, called, 3)


@given(kinds, copies, sources)
def test_a_pon_and_the_kan_added_to_it_come_back(kind, order, source):
    called, *own, fourth = (4 * kind + copy for copy in order)
    own = tuple(sorted(own))
    pon = pon_code(called, own, source)
    assert decode(pon) == Meld(PON, tuple(sorted((called, *own))), own, called, source)
    four = tuple(range(4 * kind, 4 * kind + 4))
    assert decode(added_code([pon], fourth)) == Meld(KAKAN, four, (fourth,), called, source)


@given(kinds, st.integers(0, 3), sources)
def test_open_and_closed_kans_come_back(kind, copy, source):
    called, four = 4 * kind + copy, tuple(range(4 * kind, 4 * kind + 4))
    own = tuple(tile for tile in four if tile != called)
    assert decode(kan_code(called, source)) == Meld(MINKAN, four, own, called, source)
    assert decode(kan_code(called)) == Meld(ANKAN, four, four, -1, 4)


def test_every_number_is_a_call_or_refused():
    refused = 0
    for m in range(1 << 16):
        try:
            meld = decode(m)
        except Unencodable:
            refused += 1
            continue
        assert meld.tiles == tuple(sorted(set(meld.tiles))) and meld.tiles[0] >= 0 and meld.tiles[-1] < 136
        assert set(meld.own) <= set(meld.tiles) and 1 <= meld.source <= 4
        if meld.type in (CHI, PON, MINKAN):
            assert {*meld.own, meld.called} == set(meld.tiles) and meld.called not in meld.own
        spread = [tile // 4 - meld.tiles[0] // 4 for tile in meld.tiles]
        assert spread == [0, 1, 2] if meld.type == CHI else set(spread) == {0}
    assert 0 < refused < 1 << 16


@pytest.mark.parametrize("m", [0x7C20, 0xFC07, 0x0C04])  # north set aside, a run past the honours, a chi from across
def test_calls_that_cannot_be_are_refused(m):
    with pytest.raises(Unencodable, match=f"call {m} is none"):
        decode(m)
