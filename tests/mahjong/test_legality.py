"""What the rules allow, against the engine: the same at every decision but for three faults of the engine."""

import os
from pathlib import Path

import engine_masks
import pytest
from handwritten import LOOSE, QUIET, drawn, hand, log

from lib.demo.rigged_walls import RIGS
from lib.demo.selfplay import play
from lib.mahjong import action, game
from lib.mahjong.mjlog import Unencodable

PAIPU = os.environ.get("PAIPU")


def assert_the_same_but_for_known_faults(found, monkeypatch):
    """At every decision of a Hand; returns how many there are, and how often the engine allowed more."""
    theirs = engine_masks.of_engine(found)
    with monkeypatch.context() as patch:
        ours, more = engine_masks.of_rules(found, patch)
    faults, i = 0, 0
    for (seat, legal, riichi), extra in zip(ours, more, strict=True):
        if i < len(theirs) and theirs[i][0] == seat and theirs[i][1] - extra == legal - extra:
            _, engine, engine_riichi = theirs[i]
            assert legal <= engine and riichi == engine_riichi
            faults += engine != legal
            i += 1
        else:  # a seat with no more than a pass, which the engine sees so, too
            assert legal == {action.PASS} and extra, (seat, legal, theirs[i : i + 1])
    assert i == len(theirs)
    return len(ours), faults


def hands_of(data):
    return game.read(data).hands


@pytest.mark.parametrize("rig", RIGS)
def test_the_rules_allow_what_the_engine_does_in_rigged_hands(rig, monkeypatch):
    for found in hands_of(play(5, hanchan=False, rig=rig))[:2]:
        assert assert_the_same_but_for_known_faults(found, monkeypatch)[0] > 0


@pytest.mark.parametrize("seed", range(100, 112))
def test_the_rules_allow_what_the_engine_does_in_self_played_games(seed, monkeypatch):
    asked = [assert_the_same_but_for_known_faults(found, monkeypatch)[0] for found in hands_of(play(seed))]
    assert sum(asked) > 0


@pytest.mark.skipif(not PAIPU, reason="PAIPU, a folder of real logs, is not set")
def test_the_rules_allow_what_the_engine_does_in_real_logs(monkeypatch):
    asked = faults = 0
    for path in sorted(Path(PAIPU).glob("*.txt")):
        try:
            hands = hands_of(path.read_bytes())
        except Unencodable:
            continue
        for found in hands:
            n, more = assert_the_same_but_for_known_faults(found, monkeypatch)
            asked, faults = asked + n, faults + more
    assert asked > 1000 and faults < asked / 1000


def one(script, *deals, **init):
    return hands_of(log(hand(script, drawn(), deals=deals, **init)))[0]


def legal_for(seat, notes):
    return [legal for who, legal, _ in notes if who == seat]


WAITS_FOR_1S_4S = "123m456p789s99m23s"  # with 4s: pinfu
SILENCE = "1+6z 1-6z 2+6z 2-6z 3+6z 3-6z"


def both(found, monkeypatch):
    """What the engine says of a hand that breaks off, and what the rules do."""
    theirs = engine_masks.Asked()
    theirs.init(*engine_masks.judge.setup(found, found.points))
    engine_masks.judge.lead(theirs, found.events, engine_masks.judge.SEATS)
    with monkeypatch.context() as patch:
        ours = []
        for name in ("answers", "own_turn", "after_call"):
            real = getattr(engine_masks.legality, name)

            def noted(table, seat, *args, real=real):
                found = real(table, seat, *args)
                pairs = found if isinstance(found, list) else [(seat, found)]
                ours.extend((who, {n for n, is_legal in enumerate(mask) if is_legal}, set()) for who, mask in pairs)
                return found

            patch.setattr(engine_masks.legality, name, noted)
        with pytest.raises(Unencodable, match="the hand is drawn out of turn"):
            engine_masks.decisions.decisions(found)
    return theirs.notes, ours


def test_a_wait_that_was_drawn_and_thrown_forbids_ron_for_the_whole_hand_and_the_engine_does_not_see_it(monkeypatch):
    """Seat 0 waits for 1s and 4s, throws the 1s that it draws, and then seat 1 throws 4s after the next go-around."""
    found = one(f"0+1s 0-1s {SILENCE} 0+7z 0-7z 1+4s 1-4s 2+5z", WAITS_FOR_1S_4S, indicator="5z")
    engine, rules = both(found, monkeypatch)
    assert {action.RON, action.PASS} in legal_for(0, engine)
    assert not any(action.RON in legal for legal in legal_for(0, rules))


def test_a_wait_in_the_river_forbids_ron_whatever_was_thrown_after_it_and_the_engine_forgets_it(monkeypatch):
    """Seat 0 throws 1s, then gets ready for 1s and 4s with 7z from the hand; seat 1 throws 4s."""
    start = "123m456p789s99m3s7z"
    found = one(f"0+1s 0-1s {SILENCE} 0+2s 0-7z 1+4s 1-4s 2+5z", start, indicator="5z")
    engine, rules = both(found, monkeypatch)
    assert {action.RON, action.PASS} in legal_for(0, engine)
    assert not any(action.RON in legal for legal in legal_for(0, rules))


def test_without_the_wait_in_the_river_the_ron_is_allowed(monkeypatch):
    found = one(f"0+6z 0-6z {SILENCE.replace('3+6z 3-6z', '3+7z 3-7z')} 0+7z 0-7z 1+4s 1-4s 2+5z", WAITS_FOR_1S_4S,
                indicator="5z")
    for notes in both(found, monkeypatch):
        assert {action.RON, action.PASS} in legal_for(0, notes)


def test_no_kan_on_the_last_tile_of_the_wall_and_the_engine_offers_one(monkeypatch):
    """Seat 1 keeps its first three draws, 5z each, and draws the fourth as the last tile of the wall."""
    pool = [name for name in [*LOOSE, "7z"] if name != "5z" for _ in range(4 - (name == "7z"))]
    script, kept = [], ["1m", "4m", "7m"]
    for turn in range(70):
        seat = turn % 4
        if seat == 1 and (kept or turn == 69):
            script.append("1+5z")
            script.append(f"1-{kept.pop() if turn < 69 else '5z'}")
        else:
            script += [f"{seat}+{pool[0]}", f"{seat}-{pool.pop(0)}"]
    found = one(" ".join(script), QUIET)
    theirs = engine_masks.of_engine(found)
    with monkeypatch.context() as patch:
        ours, _ = engine_masks.of_rules(found, patch)
    assert action.ANKAN in legal_for(1, theirs)[-1]
    assert action.ANKAN not in legal_for(1, ours)[-1]


def test_a_called_tile_is_no_tsumo_and_the_engine_takes_it_for_one(monkeypatch):
    """Seat 1 calls chi with a hand that is then complete: it has drawn nothing, and has to throw a tile."""
    found = one("0+6z 0-4s 1c23s 1-2m 2+6z", QUIET, "222m888p2223456s")
    engine, rules = both(found, monkeypatch)
    assert action.TSUMO in legal_for(1, engine)[-1]
    assert action.TSUMO not in legal_for(1, rules)[-1]


def test_no_riichi_with_less_than_four_tiles_left_or_a_thousand_points():
    """By the table alone: a ready hand, and what stands in its way."""
    found = one("0+5z", WAITS_FOR_1S_4S)
    table = engine_masks.decisions.Table(found)
    table.draw(0, found.events[0][2])
    may = engine_masks.legality.may_say_riichi
    assert may(table, 0, found.events[0][2])
    for name, value in (("left", 3), ("points", (900, 25000, 25000, 25000)), ("menzen", [0] * 4), ("riichi", [1] * 4)):
        before = getattr(table, name)
        setattr(table, name, value)
        assert not may(table, 0, found.events[0][2]), name
        setattr(table, name, before)
