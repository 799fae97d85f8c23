"""encode-batch with ids of games that are settled: what it says of them, and --again."""

import os

import pytest
from flows import script
from handwritten import drawn, hand, log
from support import downloaded, event, game, put, sha

from lib.demo.selfplay import play
from lib.manifest import Manifest
from lib.rows import encoder
from lib.shards import batch, reading
from lib.train.reader import Cache

TO_GET_IT = "downloaded (make run IDS=<file with the id>) or imported (make import FROM=<file>)"
CUT = play(3, hanchan=False).replace(b"owari", b"iraow")  # a game without an end


@pytest.fixture
def settled(work):
    """A work directory with a game that is encoded and one that could not be."""
    downloaded(work, 0, play(0, hanchan=False))
    downloaded(work, 1, CUT)
    assert encode(work, game(0), game(1)).returncode == 0
    return work


def encode(work, *args, **options):
    return script("encode-batch", "--work", work, "--jobs", 1, *args, **options)


def latest(work, n):
    return Manifest(work).latest[game(n)]


def told(work, *args, **options):
    """The lines on stderr."""
    done = encode(work, *args, **options)
    assert done.returncode == 0
    return done.stderr.replace("encode-batch: ", "").splitlines()


def test_why_nothing_is_done_about_a_game_is_said_with_the_command_that_does_it(settled):
    rows = latest(settled, 0)["n_samples"]
    how = f"to encode it again: bin/encode-batch --again {{}} --work {settled}"
    assert told(settled, game(0), game(1)) == [
        f"{game(0)} is encoded: {rows} rows in shard_00000; {how.format(game(0))}",
        f"{game(1)} could not be encoded: incomplete: no owari; {how.format(game(1))}",
        "0 encoded, 0 failed, 0 corrupt; 0 rows"]
    event(settled, 2, status="duplicate", alias_of=game(0))
    event(settled, 3, status="failed", stage="download", error="HTTP 404")
    event(settled, 4, status="corrupt")
    assert told(settled, input="".join(f"{game(n)}\n" for n in (2, 3, 4, 5))) == [
        f"{game(2)} has the very same log as {game(0)}: look at that one",
        f"{game(3)} could not be downloaded: HTTP 404",
        f"{game(4)} has no sound log: the log was damaged or lost",
        f"{game(5)} is unknown here: its log was never {TO_GET_IT}", "0 encoded, 0 failed, 0 corrupt; 0 rows"]


@pytest.mark.parametrize("options", [(), ("--again",), ("--list",), ("--quiet",)])
def test_an_id_on_the_command_line_that_is_unknown_is_told_once_and_is_an_error(settled, options):
    done = encode(settled, *options, game(0), game(5))
    lines = [line for line in done.stderr.splitlines() if "unknown" in line]
    assert done.returncode == 1 and lines == ["encode-batch: " + (
        "1 game skipped: unknown here, never downloaded or imported" if options == ("--quiet",) else
        f"{game(5)} is unknown here: its log was never {TO_GET_IT}")]
    assert encode(settled, *options, input=f"{game(0)}\n{game(5)}\n").returncode == 0  # lists may name anything


def test_of_very_many_only_the_first_are_told_and_of_what_make_run_pipes_none(settled):
    many = "".join(f"{game(n)}\n" for n in range(100))
    lines = told(settled, input=many)
    assert len(lines) == batch._SETTLED + 2 and "98 games skipped: unknown here" in lines[-2]
    assert told(settled, "--queued", input=f"{game(0)}\n") == ["0 encoded, 0 failed, 0 corrupt; 0 rows"]
    assert told(settled, "--quiet", input=f"{game(0)}\n") == []


def test_again_replaces_the_rows_of_an_encoded_game_once(settled):
    before = latest(settled, 0)
    script("rebuild-index", "--work", settled)
    rows = Cache(os.path.join(settled, "cache"))[:]
    done = encode(settled, "--again", game(0), game(0))
    assert done.stderr.splitlines()[-1].endswith(f": make rebuild-index WORK={settled}")
    assert done.stdout == f"{game(0)}\n" and reading.names(settled) == ["shard_00000", "shard_00001"]
    assert latest(settled, 0) == before | {"shard": "shard_00001", "ts": latest(settled, 0)["ts"]}
    script("rebuild-index", "--work", settled)
    now = Cache(os.path.join(settled, "cache"))[:]
    assert all(now[name].tobytes() == rows[name].tobytes() for name in rows)
    checked = script("verify-shards", "--work", settled)
    assert checked.returncode == 0 and f"stale rows : {before['n_samples']}" in checked.stderr


def test_a_log_that_was_put_in_the_place_of_a_damaged_one_is_pointed_out(settled):
    event(settled, 0, status="corrupt")
    assert told(settled, "--again", game(0))[0].endswith(
        f"; to take in the log that is in xml/ now: make run WORK={settled}")
    os.unlink(os.path.join(settled, "xml", f"{game(0)}.txt"))
    assert "in xml/ now" not in told(settled, "--again", game(0))[0]


def test_again_tries_a_failed_game_whose_log_and_encoder_are_the_same(settled):
    assert told(settled, "--again", game(1)) == [
        f"{game(1)}: incomplete: no owari", "0 encoded, 1 failed, 0 corrupt; 0 rows"]
    assert latest(settled, 1)["status"] == "failed"
    data = play(3, hanchan=False)  # as if the encoder had learnt to read it: the record says that it failed on this
    put(settled, 1, data)
    event(settled, 1, status="failed", stage="encode", error="x", encoder=encoder.ENCODER["version"], sha256=sha(data))
    assert encode(settled, game(1)).stdout == ""
    assert encode(settled, "--again", input=f"{game(1)}\n").stdout == f"{game(1)}\n"
    assert latest(settled, 1)["status"] == "encoded"


def test_rows_stay_where_again_finds_no_log_or_a_damaged_one(settled):
    before = latest(settled, 0)
    path = put(settled, 0, b"<html>")
    assert encode(settled, "--again", game(0)).stdout == ""
    assert latest(settled, 0)["status"] == "corrupt" and latest(settled, 0)["claim"]["shard"] == before["shard"]
    event(settled, 0, **{key: value for key, value in before.items() if key not in ("gid", "ts")})
    os.unlink(path)
    assert "1 game skipped: the log is not in xml/" in told(settled, "--again", game(0))
    assert latest(settled, 0)["status"] == "encoded"


def test_again_lists_and_does_not_go_with_the_queue(settled):
    assert encode(settled, "--again", "--list", game(0), game(1)).stdout == f"{game(0)}\n{game(1)}\n"
    done = encode(settled, "--again", "--queued")
    assert done.returncode == 2 and "--again" in done.stderr


def test_one_line_counts_the_games_that_failed_by_reason(work):
    sanma = log(hand("0+5z 0-5z", drawn()), rules=185)
    for n, data in enumerate((CUT, CUT + b" ", sanma, CUT + b"  ")):
        downloaded(work, n, data)
    assert told(work, "--queued")[-2:] == [
        "4 failed: 3 incomplete: no owari, 1 unsupported: three players", "0 encoded, 4 failed, 0 corrupt; 0 rows"]


def test_very_many_failures_do_not_flood(work):
    for n in range(30):
        downloaded(work, n, CUT + b" " * n)
    lines = told(work, "--queued")
    named = [line for line in lines if line.startswith(game(0)[:10])]
    assert len(named) == batch._NAMED and lines[len(named):] == [
        "more games fail: from here on they are only counted; to see the reason of each: "
        f"bin/manifest-latest --work {work} | grep '\"failed\"'",
        "30 failed: 30 incomplete: no owari", "0 encoded, 30 failed, 0 corrupt; 0 rows"]
