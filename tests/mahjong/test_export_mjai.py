"""bin/export-mjai, through its command line: files, streams, what is left alone and what is told."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time

import faulty
import pytest
from flows import ROOT, environment, script
from handwritten import drawn, hand, log
from support import event, game, put, sha

from lib.demo.selfplay import play
from lib.mahjong import mjai
from lib.store import files


@pytest.fixture(scope="module")
def games():
    return [play(seed, hanchan=False) for seed in (38, 31)]


@pytest.fixture
def full(work, games):
    """A work directory with two games."""
    for n, data in enumerate(games):
        put(work, n, data)
    return work


def export(work, *args, **options):
    return script("export-mjai", "--work", work, *args, **options)


def path(work, n):
    return os.path.join(work, "mjai", f"{game(n)}.json.gz")


def read(work, n):
    with gzip.open(path(work, n), "rt", encoding="utf-8") as f:
        return f.read()


@pytest.mark.parametrize("jobs", [1, 2])
def test_each_game_gets_its_file_and_its_id_is_printed(full, games, jobs):
    done = export(full, "--jobs", jobs)
    assert (done.returncode, done.stdout) == (0, f"{game(0)}\n{game(1)}\n")
    assert done.stderr == "export-mjai: 2 exported\n"
    assert [read(full, n) for n in (0, 1)] == [mjai.text(game(n), games[n]) for n in (0, 1)]


def test_the_same_log_gives_the_same_bytes(full):
    export(full)
    with open(path(full, 0), "rb") as f:
        before = f.read()
    os.unlink(path(full, 0))
    time.sleep(1.1)  # gzip counts seconds
    export(full)
    with open(path(full, 0), "rb") as f:
        assert f.read() == before


def test_a_file_is_left_alone_until_its_log_is_another(full, games):
    export(full)
    stamps = [os.stat(path(full, n)).st_mtime_ns for n in (0, 1)]
    put(full, 1, games[0])
    done = export(full)
    assert done.stdout == f"{game(1)}\n" and done.stderr == "export-mjai: 1 exported; 1 there already\n"
    assert os.stat(path(full, 0)).st_mtime_ns == stamps[0] and read(full, 1) == mjai.text(game(1), games[0])


def test_only_the_ids_that_are_given_as_arguments_or_on_stdin(full):
    assert export(full, game(1)).stdout == f"{game(1)}\n"
    done = export(full, input=f"{game(0)}\nnonsense\n")
    assert done.stdout == f"{game(0)}\n" and "'nonsense' is not a game id; skipped" in done.stderr


def test_a_stream_has_all_events_of_all_games_and_writes_no_file(full, games):
    export(full, game(0))
    done = export(full, "--stdout")
    assert done.stdout == mjai.text(game(0), games[0]) + mjai.text(game(1), games[1])
    assert not os.path.exists(path(full, 1))
    names = [json.loads(line)["uri"] for line in done.stdout.splitlines() if "start_game" in line]
    assert names == [f"https://tenhou.net/0/?log={game(n)}" for n in (0, 1)]


def test_a_stream_that_nobody_reads_on_ends_quietly(full, games):
    for n in range(2, 12):  # more than a pipe holds
        put(full, n, games[0])
    done = subprocess.run(f"{sys.executable} {ROOT}/bin/export-mjai --work {full} --stdout | head -1", shell=True,
                          capture_output=True, text=True, env=environment())
    assert '"start_game"' in done.stdout and done.stderr == ""


def test_what_cannot_be_exported_is_counted_by_reason_in_one_line_and_named_only_when_asked_for(full):
    put(full, 2, log(hand("0+5z 0-5z", drawn()), rules=185))
    put(full, 3, b"<html>")
    told = "2 cannot be exported (1 unsupported: three players, 1 not a log: HTML page)"
    done = export(full, game(2), game(3), game(4), game(0))
    assert done.returncode == 0 and done.stdout == f"{game(0)}\n"
    assert done.stderr.splitlines() == [f"export-mjai: 1 exported; {told}; 1 without a log in xml/"]
    done = export(full, "--verbose", game(2), game(3), game(0))
    assert done.stderr.splitlines() == [
        f"export-mjai: {game(2)}: unsupported: three players", f"export-mjai: {game(3)}: not a log: HTML page",
        f"export-mjai: 0 exported; 1 there already; {told}"]
    assert export(full, "--quiet").stderr == f"export-mjai: 1 exported; 1 there already; {told}\n"
    assert export(full, "--quiet").stderr == ""


def test_a_log_that_is_not_the_recorded_one_is_not_exported(full, games):
    event(full, 0, status="downloaded", sha256=sha(games[0]))
    event(full, 1, status="downloaded", sha256=sha(b"another"))
    done = export(full, "--quiet")
    assert (done.returncode, done.stdout) == (1, f"{game(0)}\n") and not os.path.exists(path(full, 1))
    assert "1 whose log is not the recorded one\n" in done.stderr
    assert done.stderr.endswith(f": make check WORK={full}\n")


def test_a_log_that_cannot_be_read_costs_its_own_game_only(full):
    done = faulty.struck("export-mjai", "--work", full, "--jobs", 1, fault=f"EIO read */xml/{game(0)}.txt 1")
    assert (done.returncode, done.stdout) == (1, f"{game(1)}\n")
    assert f"{game(0)}: " in done.stderr and "1 whose log cannot be read" in done.stderr


@pytest.mark.parametrize("bad", ["../../x", f"{game(0)}/..", f"{game(0)}0"])
def test_what_is_no_id_is_wrong_usage(full, bad):
    done = export(full, "--", bad)
    assert done.returncode == 2 and "is not a game id" in done.stderr and not os.path.exists(os.path.join(full, "mjai"))


def test_no_work_directory_is_one_line(tmp_path):
    done = export(tmp_path / "typo")
    assert (done.returncode, done.stderr) == (1, f"export-mjai: {tmp_path}/typo: no such work directory\n")


@pytest.mark.parametrize("args", [(game(0), "--jobs", 1), (game(0), "--jobs", 2), ("--all",)])
def test_where_the_logs_cannot_be_seen_none_is_called_missing(full, args):
    os.rename(os.path.join(full, "xml"), os.path.join(full, "elsewhere"))
    done = export(full, *args)
    assert done.returncode == 1 and "missing" not in done.stderr and done.stderr.count("\n") == 1
    assert f"{full}/xml" in done.stderr and "mounted" in done.stderr


def test_ctrl_c_finishes_what_is_in_hand(full):
    with subprocess.Popen([sys.executable, ROOT / "bin" / "export-mjai", "--work", full], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()) as process:
        process.stdin.write(f"{game(0)}\n")
        process.stdin.flush()
        assert process.stdout.readline() == f"{game(0)}\n"  # though more may come
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
    assert os.listdir(os.path.join(full, "mjai")) == [f"{game(0)}.json.gz"]


@pytest.mark.parametrize("fault", ["before open", "before fsync", "after fsync", "before rename", "after rename"])
def test_killed_anywhere_it_leaves_whole_files_and_the_next_run_does_the_rest(full, games, fault):
    killed = faulty.struck("export-mjai", "--work", full, "--jobs", 1, fault=f"{fault} */mjai/* 2")
    assert killed.returncode == -signal.SIGKILL
    for n in (0, 1):
        assert not os.path.exists(path(full, n)) or read(full, n) == mjai.text(game(n), games[n])
    assert export(full).returncode == 0
    assert sorted(os.listdir(os.path.join(full, "mjai"))) == [f"{game(n)}.json.gz" for n in (0, 1)]
    assert [read(full, n) for n in (0, 1)] == [mjai.text(game(n), games[n]) for n in (0, 1)]


@pytest.mark.parametrize("call", ["open", "fsync", "rename"])
def test_a_full_disk_is_one_line_and_nothing_is_left_aside(full, call):
    done = faulty.struck("export-mjai", "--work", full, "--jobs", 1, fault=f"ENOSPC {call} */mjai/* 2")
    faulty.assert_one_line(done, "/mjai/")
    assert done.returncode == 1 and not [name for name in os.listdir(os.path.join(full, "mjai")) if name[0] == "."]


def test_killed_it_leaves_no_process_behind(full):
    with subprocess.Popen([sys.executable, ROOT / "bin" / "export-mjai", "--work", full, "--jobs", "2"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment()) as process:
        for n in (0, 1):
            process.stdin.write(f"{game(n)}\n")
        process.stdin.flush()
        assert process.stdout.readline() == f"{game(0)}\n"
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as f:
            started = [int(pid) for pid in f.read().split()]
        assert started
        process.kill()
        process.wait()
    wait_until = time.monotonic() + 20
    while any(files.is_alive(pid) for pid in started) and time.monotonic() < wait_until:
        time.sleep(0.05)
    assert not any(files.is_alive(pid) for pid in started)
