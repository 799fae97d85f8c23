"""Worker processes: the same shards for any number of them, and what the death of one costs."""

import os
import signal
import subprocess
import sys
import time

import pytest
from flows import ROOT, environment, records, script

from lib.demo.selfplay import play

GAMES = {f"202402010{i}gm-00e1-0000-0000000{i}": i for i in range(6)}


@pytest.fixture(scope="module")
def logs():
    return {game: play(seed, hanchan=False) for game, seed in GAMES.items()}


@pytest.fixture
def work(tmp_path, logs):
    (tmp_path / "w" / "xml").mkdir(parents=True)
    for game, data in logs.items():
        (tmp_path / "w" / "xml" / f"{game}.txt").write_bytes(data)
    script("adopt-xml", "--work", tmp_path / "w")
    return tmp_path / "w"


def shards(work):
    """Every byte of the shards of a cache."""
    return {str(p.relative_to(work)): p.read_bytes() for p in sorted((work / "cache").glob("shard_*/*"))}


def test_shards_are_the_same_bytes_for_any_number_of_jobs(work):
    ids, found = "\n".join(GAMES), []
    for jobs in (1, 2, 5):
        (work / "ids").write_text(ids)
        with open(work / "ids") as stdin:
            done = script("encode-batch", "--work", work, "--jobs", jobs, "--shard-rows", 700, stdin=stdin)
        assert done.returncode == 0 and done.stdout.split() == list(GAMES), done.stderr
        found.append(shards(work))
        subprocess.run(["rm", "-r", work / "cache", work / "manifest.jsonl"], check=True)
        script("adopt-xml", "--work", work)
    assert found[0] and found[0] == found[1] == found[2]


def start(work, *options):
    return subprocess.Popen([sys.executable, ROOT / "bin" / "encode-batch", "--work", work, "--jobs", "2", *options],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=environment())


def workers_of(process):
    return [int(pid) for pid in subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True,
                                               text=True).stdout.split()]


def test_a_killed_worker_is_replaced_and_costs_nothing(work):
    encode = start(work, "--shard-rows", "1")
    ids = iter(GAMES)
    encode.stdin.write(f"{next(ids)}\n")
    encode.stdin.flush()
    encode.stdout.readline()
    for pid in workers_of(encode):
        os.kill(pid, signal.SIGKILL)
    out, err = encode.communicate("".join(f"{game}\n" for game in ids))
    assert encode.returncode == 0 and "Traceback" not in err
    assert len(out.split()) == 5 and {r["status"] for r in records(work).values()} == {"encoded"}


def test_a_game_that_kills_its_workers_fails_and_the_rest_is_encoded(work, tmp_path):
    victim = list(GAMES)[2]
    # an engine that dies on one log: put before the real one on the path of the workers only
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "if sys.argv[0] == '-m':\n"
        "    import builtins, os\n"
        "    real = builtins.open\n"
        "    def trap(path, *a, **k):\n"
        f"        if {victim!r} in str(path): os.kill(os.getpid(), 9)\n"
        "        return real(path, *a, **k)\n"
        "    builtins.open = trap\n")
    settings = {"PYTHONPATH": str(tmp_path)}
    done = script("encode-batch", "--work", work, "--jobs", 2, *GAMES, settings=settings)
    assert done.returncode == 0 and "5 encoded, 1 failed" in done.stderr
    failed = records(work)[victim]
    assert failed["status"] == "failed" and "SIGKILL" in failed["error"]
    # it may have died for another's fault: the next run tries once more, and then no more
    assert "1 failed" in script("encode-batch", "--work", work, "--queued", "--jobs", 2, settings=settings).stderr
    assert "nothing to do" in script("encode-batch", "--work", work, "--queued").stderr


def test_workers_end_when_their_master_is_killed(work):
    encode = start(work)
    encode.stdin.write("".join(f"{game}\n" for game in GAMES))
    encode.stdin.flush()
    while not (found := workers_of(encode)):
        time.sleep(0.02)
    encode.kill()
    encode.communicate()
    deadline = time.monotonic() + 10
    while any(os.path.exists(f"/proc/{pid}") for pid in found):
        assert time.monotonic() < deadline
        time.sleep(0.05)
