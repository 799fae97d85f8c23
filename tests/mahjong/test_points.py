"""Points: pao is the one way in which a log may differ from the engine."""


import pytest

from lib.mahjong import points
from lib.mahjong.game import WIN, Hand, Win
from lib.mahjong.mjlog import Unencodable

START = (25000,) * 4


def hand(win, after, dealer=0, honba=0):
    events = [(WIN, win.who, win)]
    return Hand(0, dealer, honba, 0, 0, START, (), frozenset(), events, tuple(25000 + change for change in after))


def held(win, engine, log, **more):
    scores = [25000 + change for change in engine]
    found = hand(win, log, **more)
    points.check(found, found.after, scores, False, 0, 0)


TSUMO, RON = Win(2, 2, (), 0), Win(2, 1, (), 0)


@pytest.mark.parametrize(
    ("win", "engine", "log", "more"),
    [
        (TSUMO, (-16000, -8000, 32000, -8000), (-32000, 0, 32000, 0), {}),
        (TSUMO, (-16100, -8100, 32300, -8100), (-32300, 0, 32300, 0), {"honba": 1}),
        (TSUMO, (-16100, -8100, 32300, -8100), (-32100, -100, 32300, -100), {"honba": 1}),
        (TSUMO, (-32000, -16000, 64000, -16000), (-48000, -8000, 64000, -8000), {}),
        (TSUMO, (-16000, -16000, 48000, -16000), (-48000, 0, 48000, 0), {"dealer": 2}),
        (RON, (0, -32000, 32000, 0), (-16000, -16000, 32000, 0), {}),
        (RON, (0, -32600, 32600, 0), (-16600, -16000, 32600, 0), {"honba": 2}),
        (RON, (0, -48000, 48000, 0), (-24000, -24000, 48000, 0), {"dealer": 2}),
    ],
)
def test_the_payment_of_the_liable_seat_is_no_disagreement(win, engine, log, more):
    held(win, engine, log, **more)
    with pytest.raises(Unencodable, match="disagree on points"):
        held(win._replace(pao=-1), engine, log, **more)
    with pytest.raises(Unencodable, match="disagree on points"):
        held(win._replace(pao=3), engine, log, **more)


@pytest.mark.parametrize(
    ("win", "engine", "log"),
    [
        (TSUMO, (-16000, -8000, 32000, -8000), (-32000, 0, 32100, -100)),
        (TSUMO, (-16000, -8000, 32000, -8000), (-24000, 0, 32000, -8000)),
        (RON, (0, -32000, 32000, 0), (-32000, 0, 32000, 0)),
        (RON, (0, -8000, 8000, 0), (-4000, -4000, 8000, 0)),
    ],
)
def test_any_other_difference_is_one(win, engine, log):
    with pytest.raises(Unencodable, match="disagree on points"):
        held(win, engine, log)


def test_sticks_nobody_won_go_to_one_seat_at_the_end():
    found = hand(RON, (0, -8000, 8000, 0))
    engine = list(found.after), False, 0, 2
    points.check(found, (25000, 17000, 35000, 25000), *engine)
    for final in ((26000, 17000, 34000, 25000), (25000, 17000, 34000, 25000), (25000, 17000, 36000, 25000)):
        with pytest.raises(Unencodable, match="final points do not follow"):
            points.check(found, final, *engine)


def test_the_log_has_to_go_on_with_its_own_points_without_an_engine():
    found = hand(RON, (0, -8000, 8000, 0))
    points.follow(found, found._replace(points=found.after))
    points.follow(found, (25000, 17000, 35000, 25000))
    told = "seat 3: INIT 24,000, the hand before 25,000"
    with pytest.raises(Unencodable, match=rf"the next INIT does not follow \({told}\)"):
        points.follow(found, found._replace(points=(25000, 17000, 33000, 24000)))
    for final in ((26000, 17000, 34000, 25000), (25000, 17000, 33500, 25000), (25000, 16000, 34000, 25000)):
        with pytest.raises(Unencodable, match="final points do not follow"):
            points.follow(found, final)
