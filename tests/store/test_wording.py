"""Words that messages share: numbers with their nouns, commands that can be pasted."""

import shlex

import pytest
from flows import ROOT

from lib.store import wording


def test_one_is_not_many():
    assert [wording.count(n, "game") for n in (0, 1, 2)] == ["0 games", "1 game", "2 games"]


@pytest.mark.parametrize("work", ["data/demo", "/big/tenhou", "../beside"])
def test_a_command_names_the_work_directory_wherever_it_is_made_up(work, monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("CALLED_IN", raising=False)
    here = wording.make(work, "check REPAIR=1")
    assert here.startswith("make check REPAIR=1 WORK=")
    monkeypatch.chdir(tmp_path)  # a script may be called anywhere, but make runs in the tree
    away = wording.make((ROOT / work).resolve(), "check REPAIR=1")
    assert away == here.replace("make ", f"make -C {ROOT} ")
    assert wording.script("/w", "verify-xml") == f"{ROOT}/bin/verify-xml --work /w"
    assert wording.script(ROOT / "data" / "demo", "x") == f"{ROOT}/bin/x --work {ROOT}/data/demo"
    monkeypatch.setenv("CALLED_IN", str(ROOT))
    assert wording.make((ROOT / work).resolve(), "check REPAIR=1") == here
    assert (ROOT / here.partition("WORK=")[2]).resolve() == (ROOT / work).resolve()


def test_a_command_leaves_out_the_default_unless_the_environment_has_another(monkeypatch):
    default = ROOT / "data" / "tenhou"
    assert wording.make(default, "run") == "make run"
    assert wording.script(default, "empty-trash") == "bin/empty-trash"
    monkeypatch.setenv("WORK", "data/tenhou")
    assert wording.make(default, "run") == "make run"
    monkeypatch.setenv("WORK", "/other")
    assert wording.make(default, "run") == "make run WORK=data/tenhou"
    assert wording.make("/other", "run") == "make run WORK=/other"


def test_a_command_quotes_what_a_shell_would_take_apart(tmp_path):
    assert shlex.split(wording.script(tmp_path / "a b'c", "x --all"))[-2:] == ["--work", f"{tmp_path}/a b'c"]
