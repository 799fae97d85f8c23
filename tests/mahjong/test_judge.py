"""The engine as a judge beside the rules: whom it looks at, what it refuses."""

import pytest
from handwritten import FINAL, LEVEL, drawn, hand, log, won

from lib.demo.rigged_walls import RIGS
from lib.demo.selfplay import play
from lib.mahjong import action, game, judge, legality
from lib.mahjong.mjlog import Unencodable
from lib.rows import encoder

TENPAI = "123m456p789s99m23s"
WRONG = "engine and log disagree on points"


def test_one_game_in_so_many_is_judged_by_its_id():
    ids = [f"2024010100gm-00a9-0000-{n:08x}" for n in range(4096)]
    assert all(judge.is_judged(gid, 1) for gid in ids)
    chosen = [gid for gid in ids if judge.is_judged(gid, 16)]
    assert 180 < len(chosen) < 330 and chosen == [gid for gid in ids if judge.is_judged(gid, 16)]


def with_wrong_points(data):
    """The same log with 100 points moved from one seat to another throughout the last hand's end, and after it."""
    head, end = data.rsplit(b'sc="', 1)
    sc, tail = end.split(b'"', 1)
    numbers = sc.split(b",")
    numbers[1], numbers[3] = b"%d" % (int(numbers[1]) + 1), b"%d" % (int(numbers[3]) - 1)
    before, owari = tail.split(b'owari="', 1)
    values, rest = owari.split(b'"', 1)
    finals = values.split(b",")
    finals[0], finals[2] = b"%d" % (int(finals[0]) + 1), b"%d" % (int(finals[2]) - 1)
    return head + b'sc="' + b",".join(numbers) + b'"' + before + b'owari="' + b",".join(finals) + b'"' + rest


def test_only_the_judge_sees_points_that_the_hand_is_not_worth():
    data = with_wrong_points(play(4, hanchan=False))
    assert len(encoder.encode_game(data, judged=False)["labels"]) > 50
    with pytest.raises(Unencodable, match=WRONG):
        encoder.encode_game(data, judged=True)


def test_a_table_of_which_the_log_says_more_than_is_known_is_always_judged():
    data = with_wrong_points(play(4, hanchan=False)).replace(b'type="225"', b'type="169" new="1"')
    with pytest.raises(Unencodable, match=WRONG):
        encoder.encode_game(data, judged=False)


def test_a_yakuman_and_liability_are_always_judged():
    sc = "250,480,250,-161,250,-160,250,-159"
    end = won(0, 0, sc, "730,0.0,89,0.0,90,0.0,91,0.0", yakuman="37")
    with pytest.raises(Unencodable, match=WRONG):
        encoder.encode_game(log(hand("0+1s", end, deals=[TENPAI])), judged=False)
    usual = game.read(log(hand("0+5z", drawn())))
    assert not usual.doubtful
    assert game.read(log(hand("0+5z", won(0, 0, LEVEL, FINAL, paoWho=1)))).doubtful


def test_judged_or_not_the_rows_are_the_same():
    data = play(7)
    one, other = encoder.encode_game(data, True), encoder.encode_game(data, False)
    assert all(one[name].tobytes() == other[name].tobytes() for name in one)


def test_a_move_that_only_the_rules_let_through_is_refused_by_the_judge(monkeypatch):
    """As if our rules had a mistake: seat 0 says riichi with a hand that is not ready."""
    data = log(hand("0+5z 0r 0-5z 0R", drawn(sc="240,0,250,0,250,0,250,0")))
    monkeypatch.setattr(legality, "may_say_riichi", lambda *_: True)
    monkeypatch.setattr(legality, "hand_is_drawn", lambda *_: True)
    assert action.RIICHI in encoder.encode_game(data, judged=False)["labels"]
    with pytest.raises(Unencodable, match="engine refuses riichi by seat 0"):
        encoder.encode_game(data)


@pytest.mark.parametrize("rig", RIGS)
def test_the_engine_need_not_search_for_riichi_to_come_to_the_same_end(rig):
    """Seats without points, but for those who win in riichi: all is accepted, and the points are the log's."""
    found = game.read(play(5, hanchan=False, rig=rig))
    for one, following in zip(found.hands, [*found.hands[1:], found.final], strict=True):
        judge.judge(one, following)


def test_the_engine_sees_riichi_only_of_those_who_win_or_of_all_four():
    found = game.read(play(5, hanchan=False, rig="reach4")).hands[0]
    assert judge.backed(found.events) == {0, 1, 2, 3}
    said = log(hand("0+5z 0r 0-5z 0R 1+6z", drawn(), deals=[TENPAI]))
    assert judge.backed(game.read(said).hands[0].events) == set()
