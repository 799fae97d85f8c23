"""Whole games: every byte of a row that can be known by hand, what holds for any row, and no exception but one."""

import gzip
import hashlib
import itertools
import os
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from handwritten import LOOSE, drawn, hand, log, won
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lib.demo.rigged_walls import RIGS
from lib.demo.selfplay import play
from lib.mahjong.action import NO_RIICHI, PASS, RIICHI, TSUMO
from lib.rows.encoder import ENCODER, Unencodable, encode_game
from lib.rows.schema import ARRAYS, FIELD_VOCAB

HEAVENLY = log(
    hand(
        "0+1s",
        won(0, 0, "250,480,250,-160,250,-160,250,-160", "730,0.0,90,0.0,90,0.0,90,0.0"),
        deals=["123m406p789s99m23s"],
        indicator="0s",
    )
)
# seventy draws, each thrown at once; nobody is ready, nobody pays
THROWN = (LOOSE * 4)[:70]
QUIET_GAME = log(hand(" ".join(f"{i % 4}+{name} {i % 4}-{name}" for i, name in enumerate(THROWN)), drawn()))

NOBODY_GAME = QUIET_GAME.replace(b"<INIT", b'<BYE who="0"/><BYE who="1"/><BYE who="2"/><BYE who="3"/><INIT')


@cache
def game(seed, rig=None):
    return encode_game(play(seed, hanchan=False, rig=rig))


def tokens(rows, i):
    """Row i as a list of tuples, without its padding."""
    return [tuple(map(int, token)) for token in rows["tokens"][i][: rows["attention_mask"][i].sum()]]


def number(name):
    return "mpsz".index(name[1]) * 9 + (int(name[0]) or 5) - 1


def test_the_encoder_has_a_name_and_a_version():
    assert set(ENCODER) == {"name", "version"} and all(isinstance(text, str) and text for text in ENCODER.values())


@pytest.mark.parametrize("data", [HEAVENLY, QUIET_GAME, play(4, hanchan=False)])
def test_arrays_are_those_of_the_schema(data):
    rows = encode_game(data)
    n = len(rows["labels"])
    assert {name: (array.shape, array.dtype) for name, array in rows.items()} == {
        name: ((n, *shape), dtype) for name, (shape, dtype) in ARRAYS.items()
    }
    assert not rows["origin"]["game"].any()


def test_a_row_is_what_the_schema_says():
    rows = encode_game(HEAVENLY)
    held = [(0, 1), (1, 1), (2, 1), (8, 2), (12, 1), (13, 1), (14, 1), (19, 1), (20, 1), (24, 1), (25, 1), (26, 1)]
    visible = sorted([*((k, n) for k, n in held), (18, 1), (22, 1)])
    expected = [(1, kind, n, 0, int(kind == 13)) for kind, n in held]
    expected += [(2, 18, 1, 0, 0), (7, 22, 1, 4, 1), (9, 23, 1, 4, 0)]
    for who, count in ((0, 7), (1, 7), (2, 7), (3, 7)):
        expected += [(10, 34, 0, who, 0), (11, 34, 0, who, 0), (12, 34, 1, who, 0), (13, 34, count, who, 0)]
    expected += [(14, 34, 0, 4, 0), (15, 34, 0, 0, 0), (25, 34, 0, 4, 0), (26, 34, 0, 4, 0), (28, 34, 0, 4, 0)]
    expected += [(16, 34, 0, 4, 0), (17, 34, 0, 4, 0), (18, 34, 69, 4, 0), (29, 34, 0, 4, 0)]
    expected += [(21, 34, 0, 4, 0), (22, 34, 0, 4, 0)]
    expected += [(23, kind, n, 4, 0) for kind, n in visible]
    assert len(rows["labels"]) == 1
    assert tokens(rows, 0) == expected
    assert not rows["tokens"][0][len(expected) :].any()
    legal = np.flatnonzero(rows["action_mask"][0])
    assert set(legal) == ({kind for kind, _ in held} - {13}) | {18, 35, TSUMO}
    assert rows["labels"][0] == TSUMO
    left = next(i for i, token in enumerate(expected) if token[0] == 18)
    assert np.flatnonzero(rows["scalars"][0]).tolist() == [4 * left]
    assert rows["scalars"][0][left][0] == np.float32(69 / 70)
    assert rows["outcome"].tolist() == [(48000, 73000, 1)]
    assert rows["origin"].tolist() == [(0, 0, 0, 0)]


def test_a_hand_without_calls_is_seventy_rows():
    rows = encode_game(QUIET_GAME)
    assert rows["labels"].tolist() == [number(name) for name in THROWN]
    assert rows["origin"]["seat"].tolist() == [i % 4 for i in range(70)]
    assert rows["origin"]["step"].tolist() == list(range(70))
    assert rows["outcome"].tolist() == [(0, 25000, 1 + i % 4) for i in range(70)]
    last = tokens(rows, 69)
    assert [token[1:] for token in last if token[0] in (5, 6)] == [
        (number(THROWN[i]), i + 1, (seat - 1) % 4, 0) for seat in range(4) for i in range(seat, 69, 4)
    ]
    areas = [token[1:] for token in last if token[0] == 24]
    kinds = [sorted({number(THROWN[i]) for i in range(seat, 69, 4)}) for seat in range(4)]
    assert areas == [(kind, 1, (seat - 1) % 4, 0) for seat in range(4) for kind in kinds[seat]]
    assert (18, 34, 0, 4, 0) in last and (29, 34, 17, 4, 0) in last


def test_riichi_shows_in_the_tokens_from_the_right_moment_on():
    deals = ["123m456p789s99m23s", "12m258p258s34567z"]
    script = "0+3m 0r 0-3m 0R 1+6z 1-3z 2+6z 2-6z 3+6z 3-6z 0+1s"
    # double riichi, ippatsu, tsumo, pinfu: 4000 from each, and the stick back
    end = won(0, 0, "240,130,250,-40,250,-40,250,-40", "370,0.0,210,0.0,210,0.0,210,0.0", doraHaiUra="135")
    rows = encode_game(log(hand(script, end, deals=deals, indicator="5s")))
    assert rows["labels"].tolist()[:3] == [2, RIICHI, PASS]
    step1, step2, answer, later, after = (tokens(rows, i) for i in range(5))
    assert (20, 2, 1, 0, 0) in step2 and (21, 34, 0, 4, 1) in step2 and (21, 34, 0, 4, 0) in step1
    assert (6, 2, 1, 3, 2) in answer and (20, 2, 1, 3, 0) in answer and (21, 34, 5, 4, 0) in answer
    assert (10, 34, 0, 3, 0) in answer and (17, 34, 0, 4, 0) in answer, "the stick is not paid yet"
    assert (10, 34, 1, 3, 1) in later and (11, 34, 1, 3, 0) in later and (17, 34, 1, 4, 0) in later
    assert (13, 34, 6, 3, 0) in later and (13, 34, 7, 0, 0) in later
    place = later.index((13, 34, 7, 0, 0))
    assert rows["scalars"][3][place].tolist() == [0, 0, 0, 0]
    assert rows["scalars"][3][later.index((13, 34, 6, 3, 0))][0] == np.float32(-0.04)
    assert (6, 29, 2, 3, 4) in after, "thrown from the hand"
    assert rows["outcome"]["hand_delta"][0] == 12000


@pytest.mark.parametrize("source", [*RIGS, 0, 1, 3])
def test_what_holds_for_any_row(source):
    rows = game(7, source) if isinstance(source, str) else game(20 + source)
    n = len(rows["labels"])
    assert (rows["action_mask"][np.arange(n), rows["labels"]] == 1).all()
    assert (rows["action_mask"].sum(1) >= 2).all() and rows["action_mask"].max() == 1
    for column, top in enumerate(FIELD_VOCAB.values()):
        assert rows["tokens"][:, :, column].max() < top
    for i in range(n):
        row, mask = tokens(rows, i), rows["action_mask"][i]
        assert not {0, 8, 19} & {token[0] for token in row}
        own = sum(token[2] for token in row if token[0] in (1, 2))
        melds = [token for token in row if token[0] == 27 and token[3] == 0]
        assert own + 3 * len(melds) == 13 + (not mask[PASS])
        seen = [token[1:3] for token in row if token[0] == 23]
        assert seen == sorted(seen) and all(1 <= count <= 4 for _, count in seen)
        # the whole of what is seen, from the other tokens: a called tile stands in a river and in a meld
        tiles = sum(token[2] if token[0] in (1, 2) else token[0] in (3, 4, 5, 6, 7) for token in row)
        called = sum(token[4] != 4 for token in row if token[0] == 27)
        assert sum(count for _, count in seen) == tiles - called
        red = {token[1] for token in row if token[0] in (1, 2) and token[4]}
        assert {4 + 9 * suit for suit in range(3) if mask[34 + suit]} <= red
        if mask[RIICHI] or mask[NO_RIICHI]:
            assert set(np.flatnonzero(mask)) == {RIICHI, NO_RIICHI}
    assert (np.diff(rows["attention_mask"].astype(int), axis=1) <= 0).all()


def test_the_server_plays_for_who_is_away():
    data = play(13, hanchan=False)
    found = [tag for tag in re.findall(rb"<[^>]*>", data) if tag.startswith((b"<BYE", b"<UN"))]
    assert len(found) > 1
    always = re.sub(rb"<BYE[^>]*>", b"", data)
    assert len(encode_game(always)["labels"]) > len(encode_game(data)["labels"])


def test_a_game_that_the_server_played_alone_has_no_rows():
    rows = encode_game(NOBODY_GAME)
    assert {name: (array.shape, array.dtype) for name, array in rows.items()} == {
        name: ((0, *shape), dtype) for name, (shape, dtype) in ARRAYS.items()
    }


def test_reasons_name_the_hand_and_the_seats_that_differ():
    data = play(0, hanchan=False)
    parts = data.split(b"<INIT")
    ends = [i for i, part in enumerate(parts) if b"<AGARI" in part]
    sc = re.search(rb'sc="(\d+),', parts[ends[-1]])
    parts[ends[-1]] = parts[ends[-1]].replace(sc[0], b'sc="%d,' % (int(sc[1]) + 1))
    number, honba = map(int, re.search(rb'seed="(\d+),(\d+)', parts[ends[-1]]).groups())
    name = f"{('east', 'south', 'west')[number // 4]} {number % 4 + 1}, honba {honba}"
    points = r"seat 0: engine -?[0-9,]+00, log -?[0-9,]+00"
    with pytest.raises(Unencodable, match=rf"^{name}: engine and log disagree on points \({points}\)$"):
        encode_game(b"<INIT".join(parts))


MUTANTS = st.tuples(st.sampled_from(["flip", "cut", "tag", "number"]), st.integers(0, 1 << 30), st.integers(0, 1 << 30))
NUMBERS = [b"-1", b"0", b"4", b"15", b"135", b"136", b"65535", b"2147483648", b"9" * 400, b"", b"1.5", b"x"]


def mutate(data, kind, a, b):
    if kind == "flip":
        place = a % len(data)
        return data[:place] + bytes([data[place] ^ 1 << b % 8]) + data[place + 1 :]
    if kind == "cut":
        place = a % len(data)
        return data[:place] + data[place + b % 40 :]
    found = list(re.finditer(rb"<[^>]*>" if kind == "tag" else rb"-?\d+", data))
    if not found:
        return data
    match = found[a % len(found)]
    if kind == "number":
        return data[: match.start()] + NUMBERS[b % len(NUMBERS)] + data[match.end() :]
    other = found[b // 3 % len(found)][0]
    return data[: match.start()] + (b"", match[0] * 2, other)[b % 3] + data[match.end() :]


@cache
def short(rig):
    """The first hand of a rigged game, as a game of its own."""
    head, first = play(1, hanchan=False, rig=rig).split(b"<INIT")[:2]
    *rest, last = re.split(rb"(?=<(?:AGARI|RYUUKYOKU))", first)
    after = [int(x) for x in re.search(rb'sc="([^"]*)"', last)[1].split(b",")]
    owari = ",".join(f"{after[i] + after[i + 1]},0.0" for i in range(0, 8, 2)).encode()
    if b"owari" not in last:
        last = last.replace(b"/>", b'owari="%s"/>' % owari, 1)
    return head + b"<INIT" + b"".join([*rest, last]).replace(b"</mjloggm>", b"") + b"</mjloggm>"


@pytest.mark.parametrize("rig", RIGS)
def test_a_first_hand_alone_is_a_game(rig):
    assert len(encode_game(short(rig))["labels"])


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(list(RIGS)), st.lists(MUTANTS, min_size=1, max_size=3), st.booleans())
def test_damage_is_an_unencodable_game_or_harmless(rig, mutants, packed):
    data = short(rig)
    for mutant in mutants:
        data = mutate(data, *mutant)
    if packed:
        data = mutate(gzip.compress(data), *mutants[0])
    try:
        rows = encode_game(data)
    except Unencodable as error:
        assert str(error) and "\n" not in str(error) and len(str(error)) < 300
    else:
        assert (rows["action_mask"][np.arange(len(rows["labels"])), rows["labels"]] == 1).all()


@given(st.binary(max_size=200))
def test_bytes_that_are_no_log_are_refused(data):
    for junk in (data, b"\x1f\x8b\x08\x00" + data, b"<mjloggm>" + data, gzip.compress(data)):
        with pytest.raises(Unencodable):
            encode_game(junk)


PAIPU = os.environ.get("PAIPU")
DIGESTS = ("labels", "action_mask", "tokens", "attention_mask", "scalars", "origin", "outcome")


def expected():
    """The lines of $PAIPU/EXPECTED.tsv: gid, verdict, and for games that encode the number of rows and the digests."""
    lines = Path(PAIPU, "EXPECTED.tsv").read_text(encoding="utf-8").splitlines() if PAIPU else []
    return [line.split("\t") for line in lines if not line.startswith(("#", "gid\t"))]


@pytest.mark.skipif(not PAIPU, reason="PAIPU names no folder of real logs")
@pytest.mark.parametrize("line", expected(), ids=lambda line: line[0])
def test_real_logs_come_to_the_rows_they_must(line):
    gid, verdict, *rest = line
    data = Path(PAIPU, f"{gid}.txt").read_bytes()
    if verdict != "encoded":
        with pytest.raises(Unencodable) as caught:
            encode_game(data)
        assert set(re.findall(r"incomplete|unsupported|disagree", verdict)) == set(
            re.findall(r"incomplete|unsupported|disagree", str(caught.value))
        )
        return
    rows = encode_game(data)
    found = [str(len(rows["labels"]))]
    for name in DIGESTS:
        array = rows[name]
        if array.dtype.names:
            array = np.stack([array[key].astype("<i4") for key in array.dtype.names if key != "game"], axis=1)
        found.append(hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16])
    assert dict(zip(("rows", *DIGESTS), found, strict=True)) == dict(zip(("rows", *DIGESTS), rest, strict=True))


def test_a_log_without_its_first_hand_is_no_game():
    data = play(11)
    assert len(encode_game(data)["labels"])
    first, second = (m.start() for m in itertools.islice(re.finditer(b"<INIT", data), 2))
    for front in (data[:first] + data[second:], data[:first] + data[data.rindex(b"<INIT"):]):
        with pytest.raises(Unencodable, match="incomplete: the log does not begin with east 1"):
            encode_game(front)
