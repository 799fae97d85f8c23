"""The wall from the log: what the engine draws from it is what the log says."""

import MahjongPyWrapper as pm
import pytest
from handwritten import LOOSE, drawn, hand, log, won

from lib.demo.selfplay import play
from lib.mahjong import game, wall
from lib.mahjong.mjlog import Unencodable


def only(*parts, **more):
    (found,), _, _ = game.read(log(hand(*parts, **more)))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_the_engine_deals_and_draws_what_the_log_says(seed):
    hands, _, _ = game.read(play(seed, hanchan=False))
    for found in hands:
        tiles = wall.build(found)
        assert sorted(tiles) == list(range(136))
        engine = pm.PaipuReplayer()
        engine.init(tiles, list(found.points), found.sticks, found.honba, found.wind, found.dealer)
        dealt = [sorted(tile.id for tile in player.hand) for player in engine.table.players]
        first = found.events[0]
        expected = [sorted(hai) for hai in found.dealt]
        expected[first[1]] = sorted([*expected[first[1]], first[2]])
        assert dealt == expected


def test_the_dead_wall_holds_replacements_and_indicators_in_their_places():
    found = only(
        "0+1m 0a1m *2p 0+6z",
        won(0, 0, "250,0,250,0,250,0,250,0", "250,0.0,250,0.0,250,0.0,250,0.0", doraHaiUra="132,133"),
        deals=["111m258m147p147s1z", "369m258p258s1234z", "369p369s258m1234z", "258m258p258s1234z"],
        indicator="5z",
    )
    tiles = wall.build(found)
    assert tiles[1] // 4 == 32 and tiles[5] // 4 == 31 and tiles[7] // 4 == 10
    assert (tiles[4], tiles[6]) == (132, 133)
    assert tiles[135 - 52] == found.events[0][2]


def test_a_tile_that_shows_twice_is_refused():
    found = only("0+5z 0-5z <U124/>", drawn())
    with pytest.raises(Unencodable, match="tile 5z shows twice"):
        wall.build(found)


def test_more_draws_than_the_wall_has_are_refused():
    many = [*LOOSE[:15] * 4, *["5m", "5p", "5s"] * 3, *["5z", "6z"] * 3]
    found = only(" ".join(f"0+{name}" for name in many), drawn())
    with pytest.raises(Unencodable, match="more tiles drawn"):
        wall.build(found)
