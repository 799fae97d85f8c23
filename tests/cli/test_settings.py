"""Settings: config.mk, the environment over it, and nothing that cannot be a number becomes one."""

import os
import re
import subprocess

import pytest
from flows import ROOT

from lib.cli import origins, settings
from lib.shards import layouts
from lib.store.errors import Usage


@pytest.fixture
def config_mk(tmp_path, monkeypatch):
    """A function that puts a text in the place of config.mk."""

    def replace(text):
        (tmp_path / "config.mk").write_text(text)
        monkeypatch.setattr(settings, "ROOT", str(tmp_path))
        settings.defaults.cache_clear()

    yield replace
    settings.defaults.cache_clear()


def test_scripts_and_make_read_the_same_defaults():
    names = list(settings.defaults())
    makefile = "include config.mk\n" + "".join(f"$(info {name}=$(strip $({name})))\n" for name in names) + "all:;\n"
    printed = subprocess.run(["make", "-s", "-f", "-"], input=makefile, cwd=ROOT, text=True, capture_output=True,
                             check=True, env={"PATH": os.environ["PATH"]}).stdout
    assert dict(line.split("=", 1) for line in printed.splitlines()) == settings.defaults()


def test_every_knob_is_one_line_that_says_what_it_is():
    with open(os.path.join(ROOT, "config.mk"), encoding="utf-8") as f:
        knobs = [line for line in f if not line.startswith("#")]
    assert len(knobs) == len(settings.defaults())
    for line in knobs:
        assert re.fullmatch(r"[A-Z_]+ +\?= .*  # \S.*\n", line), line


def test_a_knob_without_value_or_comment_leaves_the_next_line_alone(config_mk):
    config_mk("A ?=\nB ?= 5\nC?=x y # why\nD ?=\n")
    assert settings.defaults() == {"A": "", "B": "5", "C": "x y", "D": ""}


def test_the_environment_wins_unless_it_is_empty(config_mk, monkeypatch):
    config_mk("SHARD_ROWS ?= 100  # rows\n")
    assert settings.number("SHARD_ROWS") == 100
    monkeypatch.setenv("SHARD_ROWS", " 7 ")
    assert settings.number("SHARD_ROWS") == 7
    monkeypatch.setenv("SHARD_ROWS", " ")
    assert settings.number("SHARD_ROWS") == 100


def test_the_default_work_directory_is_below_the_tree_and_a_given_one_is_not(config_mk, monkeypatch, tmp_path):
    config_mk("WORK ?= data/x  # where\n")
    monkeypatch.chdir("/")
    assert settings.work() == str(tmp_path / "data/x")
    monkeypatch.setenv("WORK", "elsewhere")
    assert settings.work() == "elsewhere"


@pytest.mark.parametrize("text", ["x", "1x", "1.5", "0x10", "-1", "4"])
def test_a_whole_number_that_is_none_or_too_small_is_wrong_usage_and_named(text):
    with pytest.raises(Usage, match="KNOB=" + re.escape(text)):
        settings.parse_number(text, "KNOB", int, 5)


@pytest.mark.parametrize("text", ["nan", "inf", "-0.1", "1,5"])
def test_a_duration_that_is_none_is_wrong_usage(text):
    with pytest.raises(Usage, match="KNOB"):
        settings.parse_number(text, "KNOB", float)


def test_cores_are_those_that_this_process_may_use(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 5, 7}, raising=False)
    assert settings.cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    assert settings.cores() == os.cpu_count()


def test_an_optional_number_may_be_empty():
    assert settings.parse_number("", "KNOB") is None
    assert settings.parse_number("0.5", "KNOB", float) == 0.5


WRONG = ["YEAR=20x4", "YEAR=1999", "YEAR=2098", "DELAY=abc", "DELAY=0.5", "MAX_NEW=lots", "MAX_NEW=1.5", "TIMEOUT=x",
         "TIMEOUT=0", "MAX_REFUSALS=0", "SHARD_ROWS=0", "PIECE=0", "JOBS=0", "JUDGE=0", "SHARD_LAYOUT=paced",
         "ROOMS=zz", "TENHOU_URL=tenhou.net", "TENHOU_URL=http://:80", "USER_AGENT=é", "DISTRIBUTE=cloud",
         "REPAIR=yes", "DEEP=2", "OUTDATED=2", "RETRY=true", "SBATCH=--comment='x"]


@pytest.mark.parametrize("setting", WRONG)
def test_a_setting_that_cannot_be_is_refused_and_named(monkeypatch, setting):
    settings.check()
    name, value = setting.split("=", 1)
    monkeypatch.setenv(origins.key(name), value)
    with pytest.raises(Usage, match=re.escape(setting) + "(: | has not begun)"):
        settings.check()


def test_every_knob_but_paths_and_names_has_values_that_are_refused():
    free = set(settings.defaults()) - {setting.split("=")[0] for setting in WRONG}
    assert free == {"PYTHON", "WORK", "IDS", "FROM", "HOSTS"}
    assert set(settings.CHOICES["SHARD_LAYOUT"]) == set(layouts.LAYOUTS)


@pytest.mark.parametrize("name", ["REPAIR", "DEEP", "RETRY", "OUTDATED"])
def test_a_switch_is_on_with_1_only_and_off_with_0(monkeypatch, name):
    for value, on in (("", False), ("0", False), ("1", True)):
        monkeypatch.setenv(f"PAIPU_{name}", value)
        assert settings.switch(name) is on
