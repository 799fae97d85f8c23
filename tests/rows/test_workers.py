"""Worker processes: the same shards for any number of them, and what the death of one costs."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy
import pytest
from flows import ROOT, environment, make, records, script
from machines import until

from lib.demo.selfplay import play
from lib.rows import encoder
from lib.store import files

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
        subprocess.run(["rm", "-r", *(work / "cache").glob("shard_*"), work / "manifest.jsonl"], check=True)
        script("adopt-xml", "--work", work)
    assert found[0] and found[0] == found[1] == found[2]


def start(work, *options, tree=ROOT, settings=()):
    return subprocess.Popen([sys.executable, tree / "bin" / "encode-batch", "--work", work, "--jobs", "2", *options],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=environment(**dict(settings)))


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


def test_a_process_that_dies_before_it_has_taken_a_game_says_nothing_about_the_game(work, tmp_path):
    first, victim = list(GAMES)[:2]
    # what kills the first process that reads the victim, and only that, is not the victim's fault
    settings = struck(tmp_path, f"if {victim!r} in str(path) and not os.path.exists('{tmp_path}/once'):\n"
                                f"    real('{tmp_path}/once', 'w').close(); os.kill(os.getpid(), 9)")
    encode = start(work, "--shard-rows", "1", settings=settings)
    encode.stdin.write(f"{first}\n")
    encode.stdin.flush()
    encode.stdout.readline()
    for pid in workers_of(encode):
        os.kill(pid, signal.SIGKILL)
    out, err = encode.communicate(f"{victim}\n")
    assert encode.returncode == 0 and out.split() == [victim] and "1 encoded" not in err, err
    assert records(work)[victim]["status"] == "encoded"


def struck(tmp_path, code):
    """Settings with which a process that is started with -m runs `code` before it opens the file `path`."""
    body = "".join(f"        {line}\n" for line in code.splitlines())
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "if sys.argv[0] == '-m':\n"
        "    import builtins, os\n"
        "    real = builtins.open\n"
        "    def trap(path, *a, **k):\n" + body +
        "        return real(path, *a, **k)\n"
        "    builtins.open = trap\n")
    return {"PYTHONPATH": str(tmp_path)}


def fault(what, victim):
    """Settings with which what encodes games does `what` when it opens the victim's log."""
    return {"PYTHONPATH": str(ROOT / "tests" / "faults"), "TENHOU_FAULT": f"{what} read */xml/{victim}.txt 1",
            "TENHOU_FAULT_IN": "encode-batch", "TENHOU_DEADLINE": "1"}


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(("what", "told"), [("crash", "SIGSEGV"), ("hang", "not done in 60 s")])
def test_a_log_that_crashes_or_hangs_the_engine_fails_and_the_run_encodes_the_rest_and_ends_well(
        work, jobs, what, told):
    victim = list(GAMES)[2]
    settings = fault(what, victim)
    done = make("run", f"WORK={work}", f"JOBS={jobs}", settings=settings, timeout=60)
    assert done.returncode == 0 and "5 encoded, 1 failed" in done.stderr, done.stderr
    failed = records(work)[victim]
    assert failed["status"] == "failed" and failed["error"] == f"the encoder died on it ({told})"
    # it may have died for another's fault: the next run tries once more, and then no more
    assert "1 failed" in script("encode-batch", "--work", work, "--queued", "--jobs", jobs, settings=settings).stderr
    assert "nothing to do" in script("encode-batch", "--work", work, "--queued").stderr


def test_a_second_signal_ends_an_encoder_that_waits_for_a_log_that_hangs_it_and_its_worker_too(work):
    victim = list(GAMES)[2]
    encode = start(work, settings=fault("hang", victim) | {"TENHOU_DEADLINE": "600"})
    encode.stdin.write(f"{victim}\n")
    encode.stdin.flush()
    found, = until(lambda: workers_of(encode))
    time.sleep(1)  # it has started, and read its game
    encode.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        encode.wait(1)  # what is in hand is finished
    encode.send_signal(signal.SIGTERM)
    encode.communicate(timeout=5)
    assert encode.returncode == -signal.SIGTERM and records(work)[victim]["status"] == "downloaded"
    until(lambda: not files.is_alive(found), seconds=5)


@pytest.mark.parametrize("jobs", [1, 2])
def test_too_little_memory_for_a_process_to_start_ends_the_run_and_fails_no_game(work, tmp_path, jobs):
    before = records(work)
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "if sys.argv[0] == '-m':\n"
        "    import resource\n"
        "    resource.setrlimit(resource.RLIMIT_AS, (48 << 20, 48 << 20))\n")
    done = script("encode-batch", "--work", work, "--jobs", jobs, *GAMES, settings={"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 1 and records(work) == before
    line, = done.stderr.splitlines()
    assert line.startswith("encode-batch: a process that encodes games could not start (exit status 1): ")
    assert script("encode-batch", "--work", work, *GAMES).stdout.split() == list(GAMES)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_safe_path_of_python_keeps_nobody_from_encoding(work, jobs):
    done = script("encode-batch", "--work", work, "--jobs", jobs, *GAMES, settings={"PYTHONSAFEPATH": "1"})
    assert done.returncode == 0 and done.stdout.split() == list(GAMES), done.stderr


@pytest.mark.parametrize("change", ["version", "source"])
def test_a_tree_that_is_upgraded_during_a_run_ends_it_before_rows_of_two_versions_are_mixed(work, tmp_path, change):
    tree, (first, *rest) = tmp_path / "tree", GAMES
    for name in ("bin", "lib"):
        shutil.copytree(ROOT / name, tree / name)
    shutil.copy(ROOT / "config.mk", tree)
    encode = start(work, "--shard-rows", "1", tree=tree)
    encode.stdin.write(f"{first}\n")
    encode.stdin.flush()
    assert encode.stdout.readline() == f"{first}\n"
    path, = tree.glob("lib/**/encoder.py") if change == "version" else tree.glob("lib/**/mjlog.py")
    version = f'"version": "{encoder.ENCODER["version"]}'
    old, new = (version, version + '.1') if change == "version" else ('"""', '"""Another: ')
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    for pid in workers_of(encode):  # or it would go on with the code that it has
        os.kill(pid, signal.SIGKILL)
    out, err = encode.communicate("".join(f"{game}\n" for game in rest))
    assert encode.returncode == 1 and not out, err
    line, = err.splitlines()
    assert line.startswith("encode-batch: this tree was changed during this run")
    assert {records(work)[game]["status"] for game in rest} == {"downloaded"}
    again = subprocess.run([sys.executable, tree / "bin" / "encode-batch", "--work", work, *rest], text=True,
                           capture_output=True, stdin=subprocess.DEVNULL, env=environment())
    assert again.returncode == 0 and again.stdout.split() == rest, again.stderr


def test_a_venv_that_is_replaced_during_a_run_stays_that_of_its_workers(work, tmp_path):
    tree, (first, *rest) = tmp_path / "tree", GAMES
    for name in ("bin", "lib"):
        shutil.copytree(ROOT / name, tree / name)
    shutil.copy(ROOT / "config.mk", tree)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    packages, = (tmp_path / "venv").glob("lib/python*/site-packages")
    (packages / "ours.pth").write_text(str(Path(numpy.__file__).parent.parent))
    (tree / ".venv").symlink_to(tmp_path / "venv")
    encode = start(work, "--shard-rows", "1", tree=tree)
    encode.stdin.write(f"{first}\n")
    encode.stdin.flush()
    assert encode.stdout.readline() == f"{first}\n"
    (tree / ".venv").unlink()
    (tree / ".venv").mkdir()
    for pid in workers_of(encode):
        os.kill(pid, signal.SIGKILL)
    out, err = encode.communicate("".join(f"{game}\n" for game in rest))
    assert encode.returncode == 0 and out.split() == rest, err


def test_an_interrupt_while_an_answer_is_read_loses_no_game_in_hand(work, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "if sys.argv[0] == '-m':\n"
        "    import os, pickle, signal, time\n"
        "    def dump(what, out, protocol):\n"
        "        data = pickle.dumps(what, protocol)\n"
        "        out.write(data[:len(data) // 2])\n"
        "        out.flush()\n"
        "        time.sleep(0.2)\n"
        "        os.kill(os.getppid(), signal.SIGINT)\n"
        "        time.sleep(0.2)\n"
        "        out.write(data[len(data) // 2:])\n"
        "        pickle.dump = real\n"
        "    real, pickle.dump = pickle.dump, dump\n")
    encode = start(work, settings={"PYTHONPATH": str(tmp_path)})
    game = min(GAMES)
    encode.stdin.write(f"{game}\n")
    encode.stdin.flush()
    assert encode.stdout.read().split() == [game], encode.stderr.read()
    encode.communicate()
    assert encode.returncode == 128 + signal.SIGINT and records(work)[game]["status"] == "encoded"


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
