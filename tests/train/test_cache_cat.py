"""bin/cache-cat, through its command line: rows as players write them."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import made_rows as make
import numpy as np
import pytest
from handwritten import drawn, hand, log
from support import event, game, put

from lib.rows import notation

SCRIPT = Path(__file__).resolve().parents[2] / "bin" / "cache-cat"


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    work = str(tmp_path_factory.mktemp("work"))
    make.add_shard(work, "parquet", [(gid, make.of(log)) for gid, log in make.games(3)])
    return work


def run(work, *arguments, status=0):
    done = subprocess.run([sys.executable, SCRIPT, "--work", work, *arguments], capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return done.stderr if status else [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def printed(work):
    return run(work)


def test_there_is_a_line_for_each_row_in_order(printed):
    rows = make.join([make.of(log) for _, log in make.games(3)])
    assert [(r["hand"], r["seat"], r["step"]) for r in printed] == rows["origin"][["hand", "seat", "step"]].tolist()
    assert list(dict.fromkeys(r["gid"] for r in printed)) == [gid for gid, _ in make.games(3)]
    for name in rows["outcome"].dtype.names:
        assert [r[name] for r in printed] == rows["outcome"][name].tolist()


def split(text):
    """123m0p -> [1m, 2m, 3m, 0p]"""
    tiles, digits = [], ""
    for c in text:
        if c.isdigit():
            digits += c
        else:
            tiles += [d + c for d in digits]
            digits = ""
    return tiles


def test_the_hand_has_the_tiles_that_may_be_discarded(printed):
    for r in printed:
        held = split(r["tiles"]) + split(r["drawn"])
        melds = len(r["players"][0]["melds"])
        kans = sum("kan" in meld for meld in r["players"][0]["melds"])
        assert len(held) + 3 * melds in (13, 14), r
        assert all(len(split(meld.split(" from")[0].split()[-1])) == 3 + ("kan" in meld) for meld in
                   r["players"][0]["melds"])
        assert r["label"] in r["legal"] and len(r["legal"]) > 1
        assert {name for name in r["legal"] if len(name) == 2} <= set(held)
        assert (r["asked"] in ("turn", "riichi")) == (" by " not in r["asked"])
        assert kans <= melds


def test_what_may_be_taken_is_at_the_end_of_a_river(printed):
    asked = [r for r in printed if r["asked"].startswith("discard by")]
    assert asked
    for r in asked:
        (player,) = (p for p in r["players"] if p["who"] == r["asked"].removeprefix("discard by "))
        assert player["river"].split()[-1].strip("r_") == r["on"]


def test_scores_and_winds_are_those_of_the_table(printed):
    for r in printed:
        assert sum(p["score"] for p in r["players"]) == 100_000 - 1000 * r["sticks"]
        assert sorted(p["wind"] for p in r["players"]) == sorted(notation.WINDS)
        assert [p["who"] for p in r["players"]] == list(notation.SEATS)


def test_riichi_is_marked_once_in_a_river(printed):
    declared = [p for r in printed for p in r["players"] if p["riichi"]]
    assert declared and all(p["river"].count("r") == 1 for p in declared)


@pytest.mark.parametrize(("where", "holds"), [
    ("label=pass", lambda r: r["label"] == "pass"), ("label!=pass", lambda r: r["label"] != "pass"),
    ("left<20", lambda r: r["left"] < 20), ("hand>=1", lambda r: r["hand"] >= 1),
    ("step = 3", lambda r: r["step"] == 3), ("seat<=0", lambda r: r["seat"] == 0),
    ("legal=pass", lambda r: "pass" in r["legal"]), ("legal!=pass", lambda r: "pass" not in r["legal"]),
    ("label=chi", lambda r: r["label"].startswith("chi ")), ("label=discard", lambda r: r["label"][0] in "0123456789"),
    ("label=chi low", lambda r: r["label"] == "chi low"),
    ("label!=pon", lambda r: r["label"] not in ("pon", "pon red")),
    ("legal=kan", lambda r: any(name.endswith(" kan") for name in r["legal"])),
    ("legal!=win", lambda r: not {"ron", "tsumo"} & set(r["legal"])),
    ("round=east 2", lambda r: r["round"] == "east 2"),
])
def test_where_keeps_the_rows_that_fit(work, printed, where, holds):
    expected = [r for r in printed if holds(r)]
    assert 0 < len(expected) < len(printed)
    assert run(work, "--where", where) == expected


def test_conditions_add_up_and_limit_ends(work, printed):
    both = [r for r in printed if r["label"] == "pass" and r["left"] > 60]
    assert run(work, "--where", "label=pass", "--where", "left>60", "--limit", "2") == both[:2]
    assert run(work, "--limit", "0") == []


def test_one_game_by_its_gid(work, printed):
    gid = make.games(3)[1][0]
    assert run(work, "--gid", gid) == [r for r in printed if r["gid"] == gid]
    error = run(work, "--gid", "2001010101gm-00a9-0000-00000000", status=1)
    assert error == ("cache-cat: 2001010101gm-00a9-0000-00000000 has no rows in cache/index.json: it is unknown here: "
                     "its log was never downloaded (make run IDS=<file with the id>) or imported (make import "
                     "FROM=<file>)\n")


@pytest.fixture
def without_rows(work, tmp_path):
    """A work directory with rows of three games, and events of others; returns what tells the lines about the n-th."""
    copy = str(tmp_path / "copy")
    shutil.copytree(work, copy)

    def why(n, **fields):
        if fields:
            event(copy, n, **fields)
        return run(copy, "--gid", game(n), status=1).removeprefix(
            f"cache-cat: {game(n)} has no rows in cache/index.json: it ").splitlines()

    why.work = copy
    return why


def test_a_game_without_rows_is_told_why_and_what_to_do(without_rows):
    make = f"make {{}} WORK={without_rows.work}"
    for n, (fields, told) in enumerate((
        ({"status": "downloaded"}, f"is downloaded, but not yet encoded; to encode it: {make.format('run')}"),
        ({"status": "duplicate", "alias_of": game(7)}, f"has the very same log as {game(7)}: look at that one"),
        ({"status": "corrupt"}, "has no sound log: the log was damaged or lost; import it again, or download it: "
                                + make.format("run")),
        ({"status": "failed", "stage": "download", "error": "HTTP 404", "retry_at": "2099-01-01T00:00:00Z"},
         "could not be downloaded: HTTP 404; it is asked for again after 2099-01-01T00:00:00Z; to ask for it now: "
         + make.format("run RETRY=1")),
        ({"status": "failed", "stage": "encode", "error": "incomplete: no owari"},
         "could not be encoded: incomplete: no owari; put a whole log in its place, and the next run takes it: "
         f"{without_rows.work}/xml/{game(4)}.txt"),
        ({"status": "failed", "stage": "encode", "error": "engine fails: odd"},
         f"could not be encoded: engine fails: odd; to try it again: "
         f"bin/encode-batch --again {game(5)} --work {without_rows.work}"),
        ({"status": "failed", "stage": "encode", "error": "unsupported: three players"},
         "could not be encoded: unsupported: three players"),
        ({"status": "encoded", "shard": "shard_00009", "n_samples": 5},
         f"is encoded: 5 rows in shard_00009; to list its rows in cache/index.json: {make.format('rebuild-index')}"),
    )):
        assert without_rows(n, **fields) == [told]


def test_of_a_failed_game_whose_log_is_here_the_event_is_shown_at_which_it_failed(without_rows):
    (Path(without_rows.work) / "xml").mkdir(exist_ok=True)
    put(without_rows.work, 8, log(hand("0+5z 0-5z 1+6z 1-6z 3+7z 3-7z", drawn(), seed="4,2,0")))
    told = without_rows(8, status="failed", stage="encode", error="south 1, honba 2: draw by seat 3 out of turn")
    assert told[1:] == [f"cache-cat: {line}" for line in (
        "south 1, honba 2: the encoder stops at event 5 of 7, marked >",
        "  seat 0 draws 5z", "  seat 0 discards 5z", "  seat 1 draws 6z", "  seat 1 discards 6z",
        "> seat 3 draws 7z", "  seat 3 discards 7z", "  the hand is drawn (no tile is left)")]
    put(without_rows.work, 8, b"<html>")
    assert len(without_rows(8)) == 1


def test_the_rows_of_the_others_are_printed_all_the_same(work, printed):
    gid = make.games(3)[1][0]
    done = subprocess.run([sys.executable, SCRIPT, "--work", work, "--gid", gid, "--gid", game(9)],
                          capture_output=True, text=True)
    assert done.returncode == 1 and game(9) in done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == [r for r in printed if r["gid"] == gid]


def test_without_an_index_a_game_is_told_of_too(tmp_path):
    event(str(tmp_path), 1, status="downloaded")
    error = run(str(tmp_path), "--gid", game(1), status=1)
    assert "it is downloaded, but not yet encoded" in error and "no index of a cache" in error


@pytest.mark.parametrize("where", ["label", "nothing=1", "hand=east", "label<pass", "players=1", "__class__=1"])
def test_a_condition_that_cannot_be_is_wrong_usage(work, where):
    assert "--where" in run(work, "--where", where, status=2)


def test_no_cache_is_one_line(tmp_path):
    error = run(str(tmp_path), status=1)
    assert error.count("\n") == 1 and "no index of a cache" in error
    assert error.endswith(": there is no such directory\n") and "Error(" not in error
    error = run(str(tmp_path / "typo"), status=1)
    assert error == f"cache-cat: {tmp_path}/typo: no such work directory\n"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 7}', '{"schema": []}', "\0"])
def test_a_damaged_index_is_one_line_that_names_the_command(tmp_path, text):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "index.json").write_text(text)
    error = run(str(tmp_path), status=1)
    assert error.count("\n") == 1 and "is damaged; " in error
    assert error.endswith(f": make rebuild-index WORK={tmp_path}\n")


@pytest.mark.parametrize(("where", "known"), [
    ("label=foo", "tsumo, nine terminals, no riichi, pass"), ("label!=foo", "0m, 0p, 0s, chi low"),
    ("legal=call", "closed kan, open kan"), ("label=kans", "pass, discard, chi, kan, win\n"),
    ("round=east 5", "east 4, south 1"), ("asked=pon", "kan by kamicha")])
def test_a_value_that_no_row_can_have_is_wrong_usage_that_lists_those_that_are(work, where, known):
    error = run(work, "--where", where, status=2)
    assert error.count("\n") == 1 and known in error


def test_the_values_that_are_listed_are_those_of_the_rows(printed):
    for key, known in notation.VALUES.items():
        have = set().union(*(r[key] if isinstance(r[key], list) else [r[key]] for r in printed))
        assert len(have) > 3 and have <= set(known)


def test_tiles_and_actions_have_their_usual_names():
    assert notation.tiles([(0, 0), (1, 0), (4, 1), (9, 0), (17, 0), (27, 0), (33, 0)]) == "120m19p17z"
    assert (notation.tile(34), notation.ACTIONS[34:37]) == ("", ["0m", "0p", "0s"])
    assert len(notation.ACTIONS) == len(set(notation.ACTIONS)) == 54


def test_the_label_is_named_as_it_is_numbered(work, printed):
    labels = np.concatenate([make.of(log)["labels"] for _, log in make.games(3)])
    assert [notation.ACTIONS.index(r["label"]) for r in printed] == labels.tolist()


def test_each_row_links_to_its_game_from_the_seat_of_its_player(printed):
    assert {r["seat"] for r in printed} == {0, 1, 2, 3}
    for r in printed:
        assert r["link"] == f"https://tenhou.net/0/?log={r['gid']}&tw={r['seat']}"


def shown(work, *arguments):
    """What --pretty prints, a list of lines for each decision."""
    command = [sys.executable, SCRIPT, "--work", work, "--pretty", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [block.splitlines() for block in done.stdout.split("\n\n")]


def test_what_is_printed_to_be_read_says_what_the_row_says(work, printed):
    blocks = shown(work)
    assert len(blocks) == len(printed)
    for lines, r in zip(blocks, printed, strict=True):
        table, players, rest = lines[0], lines[1:5], dict(line.split(None, 1) for line in lines[5:])
        assert table.startswith(f"{r['round']}, honba {r['honba']}, {r['sticks']} stick")
        assert f", {r['left']} tile{'' if r['left'] == 1 else 's'} left, indicators " in table
        assert table.endswith(r["indicators"])
        for line, player in zip(players, r["players"], strict=True):
            for text in (player["who"], player["wind"], f"{player['score']:,}", player["river"], *player["melds"]):
                assert text in line
            assert ("riichi" in line) == player["riichi"]
        assert rest["hand"].split() == [r["tiles"], *(["drawn", r["drawn"]] if r["drawn"] else [])]
        assert rest["asked"] == r["asked"] + (f", {r['on']}" if r["on"] else "")
        assert rest["legal"].split(", ") == r["legal"] and rest["done"] == r["label"]
        assert f"{r['hand_delta']:+,} " in rest["ended"] and rest["ended"].endswith(f"{r['final_score']:,}")
        assert rest["link"].startswith(f"{r['link']}  hand {r['hand']} of the game, decision {r['step']} of")


def test_what_is_printed_to_be_read_can_be_chosen_too(work, printed):
    (lines,) = shown(work, "--where", "label=riichi", "--limit", "1")
    assert "done   riichi" in lines
