"""From tags to hands: rules, completeness, what is kept of each hand."""

import pytest
from handwritten import FINAL, drawn, hand, log, won

from lib.mahjong import game, mjai
from lib.mahjong.game import ABORT, BYE, CALL, DECLARE, DISCARD, DORA, DRAW, RIICHI, UN, WIN, Win
from lib.mahjong.meld import PON
from lib.mahjong.mjlog import Unencodable

SC = "250,0,250,-39,250,39,250,0"


def test_a_hand_keeps_its_facts_and_events():
    (found,), final, _ = game.read(
        log(
            hand(
                "0+5z 0-5z 1p55z 1-1m 0b *3p 2+2m 2r 2-2m 2R 0u",
                won(2, 1, SC, "300,5.0,-5,-50.0,250,20.0,455,25.0", doraHaiUra="3,4", paoWho=3),
                deals=["147m147p147s1234z", "147m147p147s12z55z"],
                seed="5,1,2",
                ten="260,240,-5,505",
                oya=3,
            )
        )
    )
    assert (found.wind, found.dealer, found.honba, found.sticks, found.indicator) == (1, 3, 1, 2, 132)
    assert found.points == (26000, 24000, -500, 50500)
    assert [op for op, _, _ in found.events] == [
        DRAW, DISCARD, CALL, DISCARD, BYE, DORA, DRAW, DECLARE, DISCARD, RIICHI, UN, WIN,
    ]  # fmt: skip
    assert found.events[0] == (DRAW, 0, 126) and found.events[1] == (DISCARD, 0, 126)
    assert found.events[2][1:][1].type == PON
    assert found.events[-1] == (WIN, 2, Win(2, 1, (3, 4), 3))
    assert found.after == (25000, 21100, 28900, 25000)
    assert final == (30000, -500, 25000, 45500)


def test_who_is_away_passes_from_hand_to_hand():
    first = hand("0+5z 1b", drawn(owari=None), "<BYE who='2'/><UN n1='x'/>")
    second = hand("0+5z 2u 3b", drawn(owari=None))
    hands, _, _ = game.read(log("<BYE who='0'/><UN n0='x' n1='y' n2='z' n3='w'/>", first, second, hand("", drawn())))
    assert [set(found.away) for found in hands] == [set(), {2}, {3}]
    assert hands[0].events[-2:] == [(BYE, 2, None), (UN, 1, None)]


@pytest.mark.parametrize("kind", ["yao9", "reach4", "ron3", "kan4", "kaze4", "nm", ""])
def test_the_type_of_a_drawn_hand_is_kept(kind):
    (found,), _, _ = game.read(log(hand("", drawn(type=kind or None))))
    assert found.events == [(ABORT, -1, kind)]


@pytest.mark.parametrize(
    ("rules", "reason"),
    [(185, "three players"), (169 | 2, "no red fives"), (169 | 4, "no open tanyao"), (16 | 2, "three players")],
)
def test_rules_the_engine_does_not_know_are_refused_first(rules, reason):
    with pytest.raises(Unencodable) as caught:
        game.read(log("<INIT/>", rules=rules))
    assert str(caught.value) == f"unsupported: {reason}"


CUSTOM = hand("", drawn())


@pytest.mark.parametrize("data", [
    log(CUSTOM, rules=553), log(CUSTOM, rules=169 + 256), log(CUSTOM, rules=169 + 4096),
    log(CUSTOM).replace(b"<GO ", b'<GO csrule="000A0C02" '), log(CUSTOM).replace(b"lobby=", b"csrule-x='1' lobby="),
    log(CUSTOM).replace(b"<GO ", b'<GO chip="0" '), log(CUSTOM).replace(b"<INIT ", b'<INIT chip="0,0,0,0" '),
])  # fmt: skip
def test_custom_rules_are_no_fault_of_the_engine(data):
    with pytest.raises(Unencodable, match=r"^unsupported: custom rules$"):
        game.read(data)
    with pytest.raises(Unencodable, match=r"^unsupported: custom rules$"):
        mjai.text("x", data)


def test_a_seed_that_happens_to_say_chip_is_no_custom_rule():
    data = log(WHOLE).replace(b"<INIT ", b'<INIT shuffle="mt19937ar,a/chip=" ')
    assert game.read(data) == game.read(log(WHOLE))


@pytest.mark.parametrize("rules", [1, 9, 41, 137, 161, 169, 225, 233])
def test_other_rules_are_read(rules):
    assert len(game.read(log(hand("", drawn()), rules=rules))[0]) == 1


WHOLE = hand("0+5z", drawn())
OPEN = hand("0+5z")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (log(WHOLE).replace(b"<GO", b"<GOX"), "incomplete: no rules (GO type)"),
        (log(), "incomplete: no hands"),
        (log(OPEN), "incomplete: no owari"),
        (log(*["<INIT/>"] * 256, WHOLE), "not a log: 257 hands"),
        (log(hand("0+5z", drawn(owari=None))), "incomplete: no owari"),
        (log(WHOLE, hand("0+5z", drawn(owari=None))), "incomplete: no owari"),
        (log(hand("0+5z", drawn(owari=""))), "incomplete: no owari"),
        (log(hand("0+5z", drawn(owari=" "))), "incomplete: no owari"),
        (log(OPEN, WHOLE), "incomplete: east 1, honba 0 has no end"),
        (log(WHOLE, hand("0+5z", seed="5,2,0")), "incomplete: south 2, honba 2 has no end"),
        (log(hand("0+5z <T136/>", drawn())), "east 1, honba 0: unknown tag T136"),
        (log(hand("<CHAT/>", drawn())), "east 1, honba 0: unknown tag CHAT"),
        (log(hand("", drawn(), "<T1/>")), "east 1, honba 0: goes on after its end"),
        (log(hand("", drawn(), drawn())), "east 1, honba 0: goes on after its end"),
        (log(WHOLE, hand("0+5z", won(0, 0, SC), drawn(), seed="4,3,0")), "south 1, honba 3: goes on after its end"),
        (log(hand("", drawn(type="yao8"))), "east 1, honba 0: RYUUKYOKU of an unknown type"),
        (log(hand("", drawn(sc="250,0,250,0"))), "east 1, honba 0: attribute sc out of range"),
        (log(hand("", drawn(sc=None))), "east 1, honba 0: no numbers in attribute sc"),
        (log(hand("", drawn(owari="250,250"))), "attribute owari out of range"),
        (log(hand("<N~who='1'~m='99999'/>", drawn())), "east 1, honba 0: attribute m out of range"),
        (log(hand("<N~who='4'~m='0'/>", drawn())), "east 1, honba 0: attribute who out of range"),
        (log(hand("<REACH~who='1'~step='3'/>", drawn())), "east 1, honba 0: attribute step out of range"),
        (log(hand("<DORA/>", drawn())), "east 1, honba 0: no numbers in attribute hai"),
        (log(hand("", drawn(), seed="12,0,0")), "hand 1 of 1: attribute seed out of range"),
        (log(hand("", drawn(), ten="250,250,250")), "east 1, honba 0: attribute ten out of range"),
        (log(hand("", drawn(), deals=["147m147p147s123z"])), "east 1, honba 0: attribute hai0 out of range"),
        (log(WHOLE).replace(b"hai3", b"hai4"), "east 1, honba 0: no numbers in attribute hai3"),
    ],
)
def test_what_is_wrong_is_named_with_the_hand(data, reason):
    with pytest.raises(Unencodable) as caught:
        game.read(data)
    assert str(caught.value) == reason


def test_owari_may_stand_twice_in_its_tag():
    data = log(hand("0+5z", drawn()))
    twice = data.replace(b'owari="', b'owari="%s" owari="' % FINAL.encode())
    assert twice != data and game.read(twice) == game.read(data)


@pytest.mark.parametrize("seed", ["", "mt19937ar,B1F0" + ",12AB34CD" * 624])
def test_seeds_are_not_looked_at_wherever_they_stand(seed):
    data = log(WHOLE)
    shuffled = data.replace(b"<GO", f'<SHUFFLE seed="{seed}" ref=""/><GO'.encode())
    shuffled = shuffled.replace(b"<INIT", f'<INIT shuffle="{seed}"'.encode())
    assert game.read(shuffled) == game.read(data)


def test_tags_after_the_end_of_the_game_do_no_harm():
    assert game.read(log(WHOLE, "<BYE who='1'/><UN n1='b'/>"))[1] == (25000,) * 4
