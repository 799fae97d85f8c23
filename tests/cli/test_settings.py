"""Settings: config.mk, the environment over it, and nothing that cannot be a number becomes one."""

import os
import re
import subprocess
import sys

import pytest
from flows import ROOT

from lib.cli import origins, settings
from lib.shards import layouts
from lib.store import wording
from lib.store.errors import Usage


def config_with(*lines):
    """The text of config.mk with these lines in the place of those of the same names."""
    names = [re.search(r"(\w+)\s*[?:+]*=", line)[1] for line in lines]
    text = (ROOT / "config.mk").read_text()
    return re.sub(rf"^({'|'.join(names)}) .*\n", "", text, flags=re.M) + "".join(f"{line}\n" for line in lines)


@pytest.fixture
def config_mk(tmp_path, monkeypatch):
    """A function that puts a text in the place of config.mk."""

    def replace(text):
        (tmp_path / "config.mk").write_text(text)
        monkeypatch.setattr(settings, "ROOT", str(tmp_path))
        settings.knobs.cache_clear()

    yield replace
    settings.knobs.cache_clear()


def as_make_reads(root, *words, **environment):
    """name -> value of every setting, as make reads config.mk below `root`."""
    names = list(settings.defaults())
    makefile = "include config.mk\n" + "".join(f"$(info {name}=$(strip $({name})))\n" for name in names) + "all:;\n"
    printed = subprocess.run(["make", "-s", "-f", "-", *words], input=makefile, cwd=root, text=True, check=True,
                             capture_output=True, env={"PATH": os.environ["PATH"], **environment}).stdout
    return dict(line.split("=", 1) for line in printed.splitlines())


def test_scripts_and_make_read_the_same_defaults():
    assert as_make_reads(ROOT) == settings.defaults()


LINES = [["WORK = data/conf"], ["YEAR=2024"], ["MAX_NEW := 4# a few"], ["SHARD_LAYOUT ::= parquet  "],
         ["export WORK = data/conf"], ["  export\tDELAY\t?=\t7"], ["MAX_NEW = 1", "MAX_NEW = 2"],
         ["YEAR ?=", "YEAR = 2024"], ["YEAR = 2024", "YEAR ?= 2023"], ["YEAR ?= 2023", "YEAR ?= 2024"],
         ["YEAR = 2024", "YEAR ="],
         ["ROOMS ?= 00a9", "ROOMS += 00b9 # too"], ["# WORK = x", "WORK ?= y"], ["WORK ?= x", "MY_NAS = /nas"],
         ["PYTHON = python3.12"], ["PYTHON ?= a", "PYTHON ?= b"], ["PYTHON := a # b", "PYTHON := c # d"]]


@pytest.mark.parametrize("lines", LINES)
def test_a_line_may_set_as_make_lets_it_and_all_who_read_it_agree(config_mk, tmp_path, monkeypatch, lines):
    config_mk(config_with(*lines))
    found = settings.defaults()
    assert as_make_reads(tmp_path) == found and set(found) == settings.NAMES
    monkeypatch.setattr(wording, "_ROOT", str(tmp_path))
    wording._default.cache_clear()
    try:
        assert wording._default() == found["WORK"]
    finally:
        wording._default.cache_clear()
    text = (ROOT / "bin" / "make-venv").read_text()
    reader = text[text.index("in_config() {"):text.index("python=${named")] + "in_config"
    assert subprocess.run(["bash", "-euo", "pipefail", "-c", reader], cwd=tmp_path, text=True, capture_output=True,
                          check=True).stdout == found["PYTHON"] + "\n"


@pytest.mark.parametrize("line", ["DELAY ?= 6", "DELAY = 6", "export DELAY = 6", "export DELAY ?= 6"])
@pytest.mark.parametrize("exported", [{}, {"DELAY": "7"}])
@pytest.mark.parametrize("words", [[], ["DELAY=8"]])
def test_scripts_that_make_calls_find_what_make_means(tmp_path, line, exported, words):
    for name in ("lib", "bin"):
        os.symlink(ROOT / name, tmp_path / name)
    (tmp_path / "config.mk").write_text(config_with(line))
    code = "import sys; sys.path[0:0] = ['.']; from lib.cli import settings; settings.ROOT = '.'; "
    code += "print(settings.get('DELAY'), *settings.origins.environment(settings.defaults()))"
    makefile = f'include config.mk\nall:; @echo $(DELAY); {sys.executable} -c "{code}"\n'
    done = subprocess.run(["make", "-s", "-f", "-", *words], input=makefile, cwd=tmp_path, text=True, check=True,
                          capture_output=True, env={"PATH": os.environ["PATH"], **exported})
    expected = words[0][-1] if words else "7" if exported and "?" in line else "6"
    told = ["DELAY"] * (expected == "7")
    assert done.stdout == f"{expected}\n{' '.join([expected, *told])}\n", done.stderr


@pytest.mark.parametrize(("name", "found"), [("IDS", ""), ("MAX_NEW", ""), ("RETRY", ""), ("DELAY", "7")])
def test_what_may_be_empty_is_emptied_on_make_s_command_line(config_mk, monkeypatch, name, found):
    config_mk(config_with(f"{name} = 7"))
    assert settings.get(name) == "7"
    monkeypatch.setenv("MAKELEVEL", "1")
    monkeypatch.setenv("MAKEFLAGS", f" -- {name}=")
    assert settings.get(name) == found


@pytest.mark.parametrize(("lines", "told"), [
    (["MAXNEW ?= 5"], "config.mk, line {}: MAXNEW is not a setting; MAX_NEW is one"),
    (["year = 2024"], "config.mk, line {}: year is not a setting; YEAR is one"),
    (["export SHARD_LAYOT = parquet"], "config.mk, line {}: SHARD_LAYOT is not a setting; SHARD_LAYOUT is one")])
def test_a_setting_that_is_misspelt_in_config_mk_is_refused_with_its_line(config_mk, lines, told):
    config_mk(config_with(*lines))
    with pytest.raises(Usage) as e:
        settings.check()
    assert str(e.value) == told.format(config_with(*lines).count("\n"))


def test_variables_of_the_user_s_own_are_left_alone(config_mk):
    config_mk(config_with("MY_NAS = /nas", "export http_proxy = http://127.0.0.1:1", "export TMPDIR ?= /tmp",
                          "MAKEFLAGS += -j2", "export OMP_NUM_THREADS = 1", "export PYTHONPATH ="))
    settings.check()
    assert set(settings.defaults()) == settings.NAMES


@pytest.mark.parametrize("name", sorted(settings.NAMES))
def test_a_line_that_was_deleted_from_config_mk_is_missed_by_name(config_mk, name):
    config_mk(config_with(f"{name} ?=").rpartition(f"{name} ")[0])
    with pytest.raises(Usage) as e:
        settings.work()
    assert str(e.value) == f"config.mk has no line that sets {name}; put it back: {name} ?= and its value"


def test_every_knob_is_one_line_that_says_what_it_is():
    with open(os.path.join(ROOT, "config.mk"), encoding="utf-8") as f:
        knobs = [line for line in f if not line.startswith("#")]
    assert len(knobs) == len(settings.defaults())
    for line in knobs:
        assert re.fullmatch(r"[A-Z_]+ +\?= .*  # \S.*\n", line), line


def test_a_knob_without_value_or_comment_leaves_the_next_line_alone(config_mk):
    config_mk(config_with("IDS ?=", "JOBS ?= 5", "HOSTS?=x y # why", "FROM ?="))
    assert [settings.defaults()[name] for name in ("IDS", "JOBS", "HOSTS", "FROM")] == ["", "5", "x y", ""]


def test_the_environment_wins_unless_it_is_empty(config_mk, monkeypatch):
    config_mk(config_with("SHARD_ROWS ?= 100  # rows"))
    assert settings.number("SHARD_ROWS") == 100
    monkeypatch.setenv("SHARD_ROWS", " 7 ")
    assert settings.number("SHARD_ROWS") == 7
    monkeypatch.setenv("SHARD_ROWS", " ")
    assert settings.number("SHARD_ROWS") == 100


def test_the_default_work_directory_is_below_the_tree_and_a_given_one_is_not(config_mk, monkeypatch, tmp_path):
    config_mk(config_with("WORK ?= data/x  # where"))
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
