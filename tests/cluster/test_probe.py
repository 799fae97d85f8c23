"""bin/probe-fs on a sound file system, on several machines, and on ones with a fault each."""

import re

import machines
import pytest
from flows import script
from test_distribute import needs_ssh

from lib.cluster import probe

FAULTS = {  # what python imports at its start, and the property that does not hold then
    probe.LOCK: "import fcntl\nfcntl.flock = lambda *args: None",
    probe.APPEND: """
import os
real = os.write
os.write = lambda fd, data: real(fd, data[:5] if len(data) == 9 and data > b"00000009" else data)""",
    probe.REPLACE: """
import os, time
real = os.rename
def rename(old, new):
    if new.endswith("latest") and os.path.exists(new):
        os.unlink(new)
        time.sleep(0.01)
    real(old, new)
os.rename = rename""",
    probe.PLACE: """
import os, shutil
real = os.rename
def rename(old, new):
    if os.path.isdir(new):
        shutil.rmtree(new)
    real(old, new)
os.rename = rename""",
    probe.NAMES: """
import os
real, known = os.listdir, {}
os.listdir = lambda path: known.setdefault(path, real(path))""",
    probe.MMAP: "import mmap\nmmap.mmap = lambda *args, **kwargs: bytes(8192)",
    probe.FSYNC: """
import os, stat
real = os.fsync
def fsync(fd):
    if stat.S_ISDIR(os.fstat(fd).st_mode):
        raise OSError(22, "Invalid argument")
    real(fd)
os.fsync = fsync""",
}


def test_a_sound_file_system_is_sound_and_nothing_is_left_on_it(tmp_path):
    done = script("probe-fs", tmp_path)
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines() == [f"ok\t{what}" for what in probe.PROPERTIES]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("what", FAULTS)
def test_each_fault_is_found_and_told(tmp_path, what):
    (tmp_path / "sitecustomize.py").write_text(FAULTS[what])
    (tmp_path / "d").mkdir()
    done = script("probe-fs", "--work", tmp_path / "d", settings={"PYTHONPATH": str(tmp_path)})
    failed = re.findall(r"^FAILED\t(.*?): (.*); (.*)$", done.stdout, re.M)
    assert done.returncode == 1 and what in [each[0] for each in failed], done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == len(probe.PROPERTIES) and "ok\t" not in done.stdout
    assert all(meaning == probe.PROPERTIES[name] and seen for name, seen, meaning in failed)
    assert not list((tmp_path / "d").iterdir())


def test_every_property_has_its_fault():
    assert set(FAULTS) == set(probe.PROPERTIES)


@pytest.mark.parametrize("rounds", [0, -1])
def test_what_was_not_tried_is_not_called_sound(tmp_path, rounds):
    done = script("probe-fs", "--rounds", rounds, tmp_path)
    assert (done.returncode, done.stdout) == (2, "") and f"--rounds {rounds}" in done.stderr


def test_a_directory_that_is_not_there_is_wrong_usage(tmp_path):
    done = script("probe-fs", tmp_path / "none")
    assert done.returncode == 2 and "no such directory" in done.stderr


@needs_ssh
def test_other_machines_take_part_and_one_that_cannot_is_told(tmp_path):
    with machines.two_sshd(tmp_path) as (ssh, (_, beta)):
        (tmp_path / "d").mkdir()
        call = ["probe-fs", "--hosts", "alpha,beta", "--rounds", 10, tmp_path / "d"]
        done = script(*call, settings={"PARALLEL_SSH": ssh})
        assert done.returncode == 0 and "6 processes on 3 machines" in done.stderr, done.stdout + done.stderr
        machines.kill(machines.below(beta.pid))
        done = script(*call, settings={"PARALLEL_SSH": ssh})
    assert done.returncode == 1 and "a machine could not take part" in done.stderr
    assert not list((tmp_path / "d").iterdir())
