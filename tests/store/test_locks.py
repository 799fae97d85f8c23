"""Locks say who holds them: to those who find them held, and to those who only ask."""

import os

import pytest
from flows import script

from lib.store import files, locks
from lib.store.errors import Busy


def test_a_held_lock_tells_who_holds_it_and_as_what_it_was_started(tmp_path):
    path = str(tmp_path / "lock")
    with locks.held(path, "a test", command="make run YEAR=2024"):
        found = locks.holder(path)
        assert (found["pid"], found["host"], found["command"]) == (str(os.getpid()), files.HOST, "make run YEAR=2024")
        assert locks.is_held(path)
        told = r"^busy: a test \(make run YEAR=2024, pid \d+ on \S+, since \S+Z\); try later$"
        with pytest.raises(Busy, match=told), locks.held(path, "a test"):
            pass
    assert locks.holder(path) is None and not locks.is_held(path)


def test_without_a_command_the_folder_tells_which_it_is(tmp_path):
    path = str(tmp_path / "lock")
    with locks.held(path, "a test"):
        assert locks.described(locks.holder(path)).endswith(f"Z, in {os.getcwd()}")


@pytest.mark.parametrize(("text", "told"), [
    ("pid 7 on alpha_0123abcd, since 2024-05-01T12:00:00Z, in /a, b\n", "pid 7 on alpha, since 2024-05-01T12:00:00Z"
     ", in /a, b"),  # as older versions wrote it
    ("pid 7, since x\nmake\033[2J\n", "make?[2J, pid 7, since x"), ("", ""), ("something\n", "")])
def test_whatever_stands_in_a_lock_file_is_told_as_plain_text(tmp_path, text, told):
    path = tmp_path / "lock"
    with locks.held(str(path), "a test"):
        path.write_text("0" * 20 + " " + "0" * 20 + "\n" + text)
        assert locks.described(locks.holder(str(path))) == told


def test_who_runs_a_command_by_hand_is_told_that_command(tmp_path):
    done = script("with-lock", "--create", "--work", tmp_path / "w", "--", "cat", tmp_path / "w" / ".run.lock")
    assert done.stdout.splitlines()[-1] == f"cat {tmp_path}/w/.run.lock"
