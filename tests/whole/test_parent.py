"""What a run starts ends with it and with nothing else: no process is left that could keep a lock, and a process number
of another machine or container means nobody."""

import contextlib
import os
import shutil
import subprocess
import sys
import time

import faulty
import pytest
from flows import ROOT, environment, make_words, records, script
from machines import below, until

from lib.demo.selfplay import play
from lib.store import files, locks, workdir

GAME = "2024020100gm-00e1-0000-00000000"
NEW_PIDS = "unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", '"$@"; exit $?', "sh"
can_unshare = shutil.which("unshare") and not subprocess.run([*NEW_PIDS, "true"], capture_output=True).returncode
needs_unshare = pytest.mark.skipif(not can_unshare, reason="PID namespaces need rights that are missing here")


def processes(pid, name):
    """Those of the processes below `pid` that run bin/name."""
    found = []
    for each in below(pid):
        with contextlib.suppress(OSError), open(f"/proc/{each}/cmdline") as f:
            found += [each] * any(word.endswith(f"bin/{name}") for word in f.read().split("\0"))
    return found


def test_make_killed_while_many_logs_are_hashed_leaves_nobody_who_keeps_the_run_lock(tmp_path):
    work = tmp_path / "w"
    faulty.put(work, {f"2024020100gm-00a9-0000-{n:08x}": b"log %d" % n for n in range(600)})
    faulty.ok("adopt-xml", "--work", work)
    # a disk that does not answer, so that hashing is not over before the kill
    settings = {"PYTHONPATH": str(ROOT / "tests" / "faults"), "TENHOU_FAULT": "hang read */xml/2*.txt 20",
                "TENHOU_FAULT_IN": "verify-xml"}
    make = subprocess.Popen(make_words("run", f"WORK={work}", "JOBS=2"), env=environment(**settings),
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        hashing = until(lambda: len(found := processes(make.pid, "verify-xml")) == 3 and found)
        lock = workdir.path(work, workdir.RUN_LOCK)
        assert locks.is_held(lock)
    finally:
        make.kill()
        make.wait()
    until(lambda: not locks.is_held(lock))
    until(lambda: not any(map(files.is_alive, hashing)))


def run_pid(makefile_of=ROOT):
    """RUN_PID as make gives it to the scripts of a run, with this process for make."""
    text = subprocess.run(["make", "-C", makefile_of, "--no-print-directory", "--eval", '/x:;@echo "$$RUN_PID"', "/x"],
                          env=environment(), capture_output=True, text=True, check=True).stdout.strip()
    pid, at, where = text.partition("@")
    assert pid.isdecimal()
    return f"{os.getpid()}{at}{where}"


@needs_unshare
def test_in_another_pid_namespace_as_on_another_machine_a_script_does_not_miss_make_and_end(tmp_path):
    (tmp_path / "w" / "xml").mkdir(parents=True)
    (tmp_path / "w" / "xml" / f"{GAME}.txt").write_bytes(play(0, hanchan=False))
    script("adopt-xml", "--work", tmp_path / "w")
    encode = subprocess.Popen([*NEW_PIDS, sys.executable, ROOT / "bin" / "encode-batch", "--work", tmp_path / "w"],
                              env=environment(RUN_PID=run_pid()), stdin=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True)
    time.sleep(1)  # as long as ids take to come
    said = encode.communicate(f"{GAME}\n")[1]
    assert encode.returncode == 0 and records(tmp_path / "w")[GAME]["status"] == "encoded", said


def test_where_make_runs_too_its_end_is_the_end_of_its_scripts(tmp_path):
    (tmp_path / "w").mkdir()
    other = subprocess.Popen(["sleep", "60"])
    settings = {"RUN_PID": run_pid().replace(str(os.getpid()), str(other.pid), 1)}
    encode = subprocess.Popen([sys.executable, ROOT / "bin" / "encode-batch", "--work", tmp_path / "w"],
                              env=environment(**settings), stdin=subprocess.PIPE)
    time.sleep(1)
    assert encode.poll() is None
    other.kill()
    other.wait()
    assert encode.wait(5) == 128 + 15
