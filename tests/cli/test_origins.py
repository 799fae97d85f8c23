"""Where settings come from: what a cluster exports is told, and turns on nothing that changes or deletes."""

import os

import pytest
from flows import NOBODY, make, script
from support import game, log, put

from lib.cli import origins, settings
from lib.manifest import Manifest

A = game(1)


@pytest.fixture
def damaged(work):
    """A work directory with one damaged log and no index."""
    put(work, 1, log(1))
    script("adopt-xml", "--work", work)
    put(work, 1, b"damaged")
    return work


def is_untouched(work):
    return (Manifest(work).latest[A]["status"] == "downloaded" and os.path.exists(os.path.join(work, "xml", f"{A}.txt"))
            and not os.path.exists(os.path.join(work, "cache", "index.json")))


@pytest.mark.parametrize("words", [["check"], ["-s", "check"]])
def test_a_switch_that_the_environment_has_under_its_plain_name_does_nothing_but_a_line(damaged, words):
    done = make(*words, f"WORK={damaged}", settings={"REPAIR": "1"})
    assert done.returncode == 2 and is_untouched(damaged)
    assert done.stderr.startswith("settings: REPAIR=1 in the environment is ignored: there it has to be PAIPU_REPAIR=1,"
                                  " or call make with REPAIR=1\n")
    assert done.stderr.count("REPAIR=1 in the environment") == 1


@pytest.mark.parametrize(("words", "environment"), [(["REPAIR=1"], {}), ([], {"PAIPU_REPAIR": "1"}),
                                                    (["REPAIR=1"], {"REPAIR": "0"})])
def test_make_s_command_line_and_our_own_name_turn_a_switch_on(damaged, words, environment):
    done = make("check", f"WORK={damaged}", *words, settings=environment)
    assert done.returncode == 0 and Manifest(damaged).latest[A]["status"] == "corrupt", done.stderr
    assert os.path.exists(os.path.join(damaged, "cache", "index.json")) and "ignored" not in done.stderr


@pytest.mark.parametrize("word", ["REPAIR=0", "REPAIR="])
def test_make_s_command_line_turns_off_what_the_environment_turns_on(damaged, word):
    assert make("check", f"WORK={damaged}", word, settings={"PAIPU_REPAIR": "1"}).returncode == 2
    assert is_untouched(damaged)


@pytest.mark.parametrize(("name", "args", "switch", "status"), [
    ("verify-xml", [], "REPAIR", 1), ("verify-shards", [], "REPAIR", 0), ("verify-shards", [], "DEEP", 0),
    ("rebuild-index", ["--check"], "REPAIR", 0), ("fetch-paipu", [], "RETRY", 0), ("encode-batch", [], "OUTDATED", 0)])
def test_a_script_that_is_called_directly_tells_it_too_and_only_if_the_switch_is_its_own(
        damaged, name, args, switch, status):
    other = {"TENHOU_URL": NOBODY, "OUTDATED" if switch == "REPAIR" else "REPAIR": "0"}
    done = script(name, "--work", damaged, *args, settings={switch: "1", **other})
    assert done.returncode == status and is_untouched(damaged)
    assert f"{name}: {switch}=1 in the environment is ignored: there it has to be PAIPU_{switch}=1" in done.stderr
    assert "ignored" not in script(name, "--work", damaged, *args, settings=other).stderr


def test_no_switch_of_the_environment_turns_anything_on_by_its_plain_name(monkeypatch):
    assert {name for name, text in settings.CHOICES.items() if text == ("", "0", "1")} == set(origins.SWITCHES)
    for name in origins.SWITCHES:
        monkeypatch.setenv(name, "1")
        assert not settings.switch(name)
        monkeypatch.setenv(f"PAIPU_{name}", "1")
        assert settings.switch(name)


def test_what_the_environment_sets_is_told_once_and_not_by_make_s(work):
    own = {"JOBS": "3", "WORK": work, "DELAY": "5", "USER_AGENT": "a b"}
    told = make("status", settings=own).stderr
    assert told == f"settings: WORK={work} USER_AGENT='a b' JOBS=3 from the environment\n"
    assert make("-s", "status", settings=own).stderr == ""
    assert make("status", f"WORK={work}", "JOBS=2", settings={"JOBS": "3"}).stderr == ""


@pytest.mark.parametrize("name", ["SHARD_LAYOUT", "LAYOUT", "CONVERT"])
def test_a_layout_that_the_environment_has_converts_no_shard(work, name):
    done = make("-n", "compact", f"WORK={work}", settings={name: "parquet"})
    assert "compact-shards" in done.stdout and "--layout" not in done.stdout
