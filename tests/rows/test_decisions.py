"""A hand's decisions: which become rows, with which masks and labels, and what the rules refuse."""

import MahjongPyWrapper as pm
import pytest
from handwritten import FINAL, QUIET, drawn, hand, log, won

from lib.demo.rigged_walls import RIGS
from lib.demo.selfplay import play
from lib.mahjong import game, judge
from lib.mahjong.action import (
    ANKAN,
    CHI,
    CHI_RED,
    KAKAN,
    MINKAN,
    NINE_TERMINALS,
    NO_RIICHI,
    PASS,
    PON,
    PON_RED,
    RIICHI,
    RON,
    TSUMO,
)  # fmt: skip
from lib.mahjong.mjlog import Unencodable
from lib.rows import decisions

TENPAI = "123m456p789s99m23s"  # waits for 1s and 4s


def read(script, *deals, end=None, **init):
    (found,), final, _ = game.read(log(hand(script, end or drawn(), deals=deals, **init)))
    return found, final


def both_ways(found, following):
    """The rows of a hand, which the judge has to accept, too."""
    rows = decisions.decisions(found)
    judge.judge(found, following)
    return rows


def rows(script, *deals):
    """(seat, label, actions of the mask) of the rows of a hand that breaks off after the script, in somebody's turn."""
    run = decisions.Decisions(read(script, *deals)[0])
    with pytest.raises(Unencodable, match="the hand is drawn out of turn"):
        run.run()
    return [(seat, label, {a for a, legal in enumerate(mask) if legal}) for seat, label, mask, _, _ in run.rows]


def answers(script, *deals):
    """{seat: (label, actions)} of those that answer a discard or kan."""
    return {seat: (label, mask) for seat, label, mask in rows(script, *deals) if PASS in mask}


def own_turns(script, *deals):
    """The others."""
    return [row for row in rows(script, *deals) if PASS not in row[2]]


# seat 0 throws 1m: seat 1 could call chi, seat 2 pon
CALLERS = (QUIET, "23m369p369s12345z", "11m258p258s34567z")


def test_passes_are_choices_when_the_next_player_draws():
    got = answers("0+5z 0-1m 1+6z 1-6z 2+6z", *CALLERS)
    assert got == {1: (PASS, {CHI, PASS}), 2: (PASS, {PON, PASS})}


def test_a_chi_pre_empted_by_a_pon_is_no_row():
    assert answers("0+5z 0-1m 2p11m 2-3z 3+6z", *CALLERS) == {2: (PON, {PON, PASS})}


def test_a_pon_not_called_before_a_chi_is_a_choice():
    got = answers("0+5z 0-1m 1c23m 1-3z 2+6z", *CALLERS)
    assert got == {1: (CHI, {CHI, PASS}), 2: (PASS, {PON, PASS})}


@pytest.mark.parametrize("away", ["0b 0+5z 0-1m 1b 1+6z", "1b 0+5z 0-1m 1u 1+6z", "0+5z 1b 1u 0-1m 0b 1b 1u 1+6z"])
def test_who_was_away_while_a_tile_could_be_taken_has_no_row(away):
    assert 1 not in answers(away, *CALLERS) and 2 in answers(away, *CALLERS)


@pytest.mark.parametrize("away", ["1b 1u 0+5z 0-1m 1+6z", "0+5z 1b 1u 0-1m 1+6z", "0+5z 0-1m 1+6z 1b 1u"])
def test_who_was_away_before_or_after_has_one(away):
    assert 1 in answers(away, *CALLERS)


def test_an_own_turn_during_which_the_player_was_away_is_no_row():
    got = own_turns("0+5z 0b 0u 0-5z 1+5z 1-5z 2b 2+5z 2-5z 2u 3+6z 3b", QUIET)
    assert [(seat, label) for seat, label, _ in got] == [(1, 31)]


@pytest.mark.parametrize(
    ("caller", "thrown", "legal"),
    [
        ("45m258p258s12345z", "3m", {CHI}),
        ("40m258p258s12345z", "3m", {CHI_RED}),
        ("450m258p258s1234z", "3m", {CHI, CHI_RED}),
        ("450m258p258s1234z", "6m", {CHI + 2, CHI_RED + 2}),
        ("340m258p258s1234z", "2m", {CHI}),
        ("046m258p258s1234z", "5m", {CHI + 1}),
        ("0788m258p258s123z", "6m", {CHI, CHI_RED + 1}),
        ("55m258p258s12345z", "5m", {PON}),
        ("50m258p258s12345z", "5m", {PON_RED}),
        ("550m258p258s1234z", "5m", {PON, PON_RED, MINKAN}),
    ],
)
def test_calls_with_and_without_a_red_five_are_told_apart(caller, thrown, legal):
    got = answers(f"0+{thrown} 0-{thrown} 1+6z", QUIET, caller)
    assert got == {1: (PASS, {*legal, PASS})}


def test_a_ron_not_taken_is_a_choice_whatever_is_called():
    waits = "23m456p456789s11z", "11m258p258s34567z"
    got = answers("0+5z 0-1m 1+6z", QUIET, *waits)
    assert got == {1: (PASS, {CHI, PASS}), 2: (PASS, {PON, PASS})}, "no yaku, no ron"
    waits = "23m456p456789s22p", "11m258p258s34567z"
    assert answers("0+5z 0-4m 1+6z", QUIET, *waits) == {1: (PASS, {CHI + 2, RON, PASS})}
    caller = "56m369p369s34567z", "234p345678s44m22p"
    assert answers("0+5z 0-4m 1c56m 1-3z 2+6z", QUIET, *caller)[2] == (PASS, {PON, RON, PASS}), "chi ranks below both"


@pytest.mark.parametrize(("said", "label"), [("0r", RIICHI), ("", NO_RIICHI)])
def test_riichi_takes_two_rows(said, label):
    paid = "0R" if said else ""
    got = own_turns(f"0+5z {said} 0-5z {paid} 1+6z", TENPAI)
    assert [(seat, action) for seat, action, _ in got] == [(0, 31), (0, label)]
    first, second = got[0][2], got[1][2]
    assert not {RIICHI, NO_RIICHI} & first and 31 in first
    assert second == {RIICHI, NO_RIICHI}


def test_a_tile_that_does_not_allow_riichi_takes_one_row():
    assert [label for _, label, _ in own_turns("0+5z 0-4p 1+6z", TENPAI)] == [12]


def test_a_red_five_with_which_riichi_can_be_declared_takes_two_rows():
    assert [label for _, label, _ in own_turns("0+0p 0r 0-0p 0R 1+6z", TENPAI)] == [35, RIICHI]


def test_nothing_to_decide_after_riichi_is_no_row():
    got = rows("0+5z 0r 0-5z 0R 1+6z 1-6z 2+6z 2-6z 3+6z 3-6z 0+9s 0-9s 1+5z", TENPAI)
    assert [seat for seat, _, _ in got] == [0, 0, 1, 2, 3]


def test_kans_are_labelled_and_offered():
    closed = own_turns("0+5z 0a5z *2p 0+6z", "555z258m258p258s1z")
    assert closed[0][1] == ANKAN and ANKAN in closed[0][2]
    script = "0+6z 0-6z 2p66z 2-3p 3+5z 3-5z 0+5z 0-5z 1+5z 1-5z 2+6z 2j6z 2+8s"
    added = own_turns(script, QUIET, QUIET, "66z369m369p258s13z")
    assert added[-1][:2] == (2, KAKAN) and KAKAN in added[-1][2]
    got = answers("0+6z 0-6z 2k666z 2+5z *5z 2-5z 3+8s", QUIET, QUIET, "666z369m369p258s1z")
    assert got == {2: (MINKAN, {PON, MINKAN, PASS})}


def test_nine_terminals_is_a_label():
    found, final = read("0+5z", "19m19p19s1234z258p", end=drawn(type="yao9"))
    ((seat, label, mask, _, points),) = both_ways(found, final)
    assert (seat, label, points) == (0, NINE_TERMINALS, (25000,) * 4)
    assert mask[NINE_TERMINALS] and mask.count(1) == 15  # and 14 kinds to throw


HEAVENLY = "250,480,250,-160,250,-160,250,-160"  # tenhou: 16000 from each


def heavenly(sc=HEAVENLY, owari="730,0.0,90,0.0,90,0.0,90,0.0", **attrs):
    return read("0+1s", TENPAI, end=won(0, 0, sc, owari, **attrs))


def test_points_of_the_log_are_held_against_the_engine():
    ((seat, label, _, _, _),) = both_ways(*heavenly())
    assert (seat, label) == (0, TSUMO)
    told = "seat 1: engine 9,000, log 8,900; seat 3: engine 9,000, log 9,100"
    with pytest.raises(Unencodable, match=rf"^engine and log disagree on points \({told}\)$"):
        both_ways(*heavenly(sc="250,480,250,-161,250,-160,250,-159"))


def test_what_follows_a_hand_is_held_against_the_engine():
    found, _ = heavenly()
    both_ways(found, (73000, 9000, 9000, 9000))
    for final in ((73000, 9000, 9000, 10000), (73000, 8000, 9000, 10000), (73000, 9000, 9000, 8000)):
        with pytest.raises(Unencodable, match="final points do not follow"):
            both_ways(found, final)
    ten = "730,90,90,90"
    both_ways(found, read("", ten=ten, seed="0,1,0")[0])
    for init in ({"seed": "0,0,0"}, {"seed": "0,1,1"}, {"seed": "1,1,0", "oya": 1}, {"ten": "720,100,90,90"}):
        with pytest.raises(Unencodable, match="next INIT does not follow"):
            both_ways(found, read("", **{"ten": ten, "seed": "0,1,0", **init})[0])


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("1+5z", "draw by seat 1 out of turn"),
        ("0+5z 0+6z", "draw by seat 0 out of turn"),
        ("0-1m", "discard of 1m by seat 0 out of turn"),
        ("0+5z 1-1m", "discard of 1m by seat 1 out of turn"),
        ("0+5z <D135/>", "the rules do not allow discard of 7z by seat 0"),
        ("0+5z 0-5z 2+5z", "draw by seat 2 out of turn"),
        ("0+5z 0r 0-5z 0R 1+6z", "the rules do not allow riichi with 5z by seat 0"),
        ("0+5z 0R", "riichi stick by seat 0 out of turn"),
        ("0+5z 0-5z 0R", "riichi stick by seat 0 out of turn"),
        ("0+5z 1r", "riichi by seat 1 out of turn"),
        ("0+5z 0r 0r", "riichi by seat 0 out of turn"),
        ("0+5z 0-1m 1c23m 1-1p 2+5z", "the rules do not allow chi by seat 1"),
        ("0+5z 0-5z 0+5z", "draw by seat 0 out of turn"),
        ("0+5z 0-5z 1p22m", "pon by seat 1 of another tile"),
        ("0+5z *5z 0-5z 1+6z", "2 dora indicators after 0 kans"),
        ("0+5z", "the hand is drawn out of turn"),
        ("0+5z 0-5z", "the hand is drawn out of turn"),
        ("", "the hand is drawn out of turn"),
    ],
)
def test_what_cannot_be_is_named(script, reason):
    script = script.replace("1p22m", f"<N~who='1'~m='{5 * 3 << 9 | 8 | 3}'/>")
    script = script.replace("1c23m", "<N~who='1'~m='7'/>")
    with pytest.raises(Unencodable) as caught:
        both_ways(*read(script))
    assert str(caught.value) == reason


def test_a_riichi_that_is_never_paid_is_refused():
    with pytest.raises(Unencodable, match="riichi by seat 0 is never paid"):
        both_ways(*read("0+5z 0r 0-5z 1+6z", TENPAI))


@pytest.mark.parametrize("end", [won(1, 0, HEAVENLY, FINAL), won(0, 0, HEAVENLY, FINAL), drawn(type="ron3")])
def test_a_win_that_the_rules_do_not_allow_is_refused(end):
    found, _ = read("0+5z 0-5z", end=end)
    with pytest.raises(Unencodable, match=r"the rules do not allow ron by seat 1|tsumo by seat 0 out of turn"):
        both_ways(found, (0, 0, 0, 0))


@pytest.mark.parametrize("rig", RIGS)
def test_the_table_is_what_the_engine_sees(rig, monkeypatch):
    """At every own turn: riichi, double riichi, ippatsu, closed hand, points, tiles, sticks, tiles left."""
    states = []

    def state(points, sticks, left, players):
        return [*points, sticks, left, *players]

    class Watched:
        def __init__(self):
            self._engine = pm.PaipuReplayer()

        def note(self):
            if self._engine.get_phase() < 4:
                table = self._engine.table
                players = [(p.riichi, p.double_riichi, p.ippatsu, p.menzen, len(p.hand)) for p in table.players]
                states.append(state([p.score for p in table.players], table.riichibo, table.get_remain_tile(), players))

        def make_selection(self, i):
            self.note()
            self._engine.make_selection(i)

        def make_selection_from_action(self, act, tiles):
            self.note()
            return self._engine.make_selection_from_action(act, tiles)

        def __getattr__(self, name):
            return getattr(self._engine, name)

    def turn(real):
        def noted(table, seat, *args):
            players = [(table.riichi[i], table.double[i], table.ippatsu[i], table.menzen[i],
                        sum(table.held[i]) + (table.drawn[i] is not None)) for i in range(4)]
            ours.append(state(table.points, table.sticks, table.left, players))
            return real(table, seat, *args)
        return noted

    for name in ("own_turn", "after_call"):
        monkeypatch.setattr(decisions.legality, name, turn(getattr(decisions.legality, name)))
    for found in game.read(play(5, hanchan=False, rig=rig)).hands[:2]:
        ours, engine = [], Watched()
        states.clear()
        engine.init(*judge.setup(found, found.points))
        judge.lead(engine, found.events, judge.SEATS)
        decisions.decisions(found)
        assert states == ours and ours
