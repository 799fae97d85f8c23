"""make setup: which interpreters it takes, and when it makes .venv anew. Stand-ins for Python; nothing is installed."""

import fcntl
import os
import shlex
import shutil
import subprocess
import sys

import pytest
from flows import ROOT, environment

# what it is asked for its version, or to make a venv, it does; what the script has it run, the real one runs
FAKE = """#!/bin/bash
case "$*" in
  "-c import sys"*) echo {version} ;;
  "-m venv "*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; echo made with {version} ;;
  --version) echo Python {version} ;;
  "-m pip install"*) sleep 0.2; echo "$PWD ${{@:5}} CXXFLAGS:$CXXFLAGS" >>pip.log;
    cat pip-says >&2 2>/dev/null; [ ! -e no-network ] ;;
  "-m lib.cli.makeline") ;;
  *) exec {real} "$@" ;;
esac
"""


@pytest.fixture
def start(tmp_path):
    """A function that starts `make setup` in a copy of the tree, with stand-ins called python<version>."""
    for name in ("Makefile", "config.mk", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("bin", "lib"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "path").mkdir()
    for name, version in [("python3", "3.11"), *((f"python{v}", v) for v in ("2.7", "3.9", "3.10", "3.13", "3.14"))]:
        (tmp_path / "path" / name).write_text(FAKE.format(version=version, real=sys.executable))
        (tmp_path / "path" / name).chmod(0o755)
    (tmp_path / "path" / "jq").symlink_to("python3")

    def run(*args, **settings):
        env = environment(**settings)
        return subprocess.Popen(["make", "setup", *args], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, env=env | {"PATH": f"{tmp_path / 'path'}:{env['PATH']}"})

    return run


@pytest.fixture
def setup(start):
    """A function that runs `make setup` there; returns the CompletedProcess."""

    def run(*args, **settings):
        with start(*args, **settings) as process:
            out, err = process.communicate()
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    return run


@pytest.mark.parametrize(("python", "why"), [
    ("python3.9", "Python 3.9 is too old"), ("python2.7", "Python 2.7 is too old"),
    ("python3.14", "Python 3.14 is too new"), ("/no/such/python", "PYTHON=/no/such/python does not run")])
def test_an_interpreter_that_will_not_do_is_refused_in_a_line_and_costs_no_venv(setup, tmp_path, python, why):
    for there in (False, True):  # a good .venv is left alone
        before = os.path.realpath(tmp_path / ".venv")
        done = setup(f"PYTHON={python}")
        line, make = done.stderr.splitlines()
        assert line == f"setup: {why}: 3.10 to 3.13 is needed, e.g. make setup PYTHON=python3.12"
        assert done.returncode == 2 and make.startswith("make: ***") and done.stdout == ""
        assert os.path.realpath(tmp_path / ".venv") == before and (tmp_path / ".venv").exists() == there
        assert setup("PYTHON=python3.13").returncode == 0


def test_a_venv_is_made_once_and_anew_when_another_version_is_named(setup):
    assert setup().stdout.startswith("made with 3.11\n") and "made" not in setup().stdout
    assert "made" not in setup("PYTHON=python3").stdout
    assert setup("PYTHON=python3.13").stdout.startswith("made with 3.13\nPython 3.13 in .venv, with the packages of")
    assert "made" not in setup().stdout and "made" not in setup(PYTHON="python3.13").stdout
    assert setup(PYTHON="python3.10").stdout.startswith("made with 3.10\n")


def test_a_venv_is_made_anew_when_the_pinned_packages_change_and_not_when_a_rule_of_the_linter_does(setup, tmp_path):
    setup()
    text = (tmp_path / "pyproject.toml").read_text()
    (tmp_path / "pyproject.toml").write_text(text.replace("line-length = 120", "line-length = 100"))
    assert "made" not in setup().stdout
    (tmp_path / "pyproject.toml").write_text(text.replace("tqdm==", "tqdm>="))
    assert "made" in setup().stdout


def test_what_cannot_be_finished_leaves_the_venv_of_before_and_is_tried_again(setup, tmp_path):
    (tmp_path / "no-network").touch()
    assert setup("PYTHON=python3.10").returncode == 2 and not (tmp_path / ".venv").exists()
    (tmp_path / "no-network").unlink()
    assert setup().stdout.startswith("made with 3.11\n")
    before = os.path.realpath(tmp_path / ".venv")
    (tmp_path / "no-network").touch()
    assert setup("PYTHON=python3.10").returncode == 2 and os.path.realpath(tmp_path / ".venv") == before
    assert setup().returncode == 0


def test_a_venv_of_the_time_when_it_was_no_link_is_replaced(setup, tmp_path):
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    for name in ("python", "python3"):
        shutil.copy(tmp_path / "path" / "python3", tmp_path / ".venv" / "bin" / name)
    done = setup()
    assert done.returncode == 0 and (tmp_path / ".venv").is_symlink(), done.stderr


def test_two_that_set_up_at_the_same_time_make_one_venv(start, tmp_path):
    with start() as one, start() as other:
        printed = one.communicate()[0] + other.communicate()[0]
    assert one.returncode == other.returncode == 0
    assert printed.count("made with") == 1 and printed.count("Python 3.11 in .venv") == 2


def test_a_venv_that_a_script_uses_stays_until_it_has_ended(setup, tmp_path):
    setup()
    used = os.path.realpath(tmp_path / ".venv")
    with open(f"{used}/.in-use") as f:
        fcntl.flock(f, fcntl.LOCK_SH)
        for version in ("3.13", "3.10", "3.13"):
            assert setup(f"PYTHON=python{version}").returncode == 0
        assert os.path.realpath(tmp_path / ".venv") != used and os.path.exists(used)
    setup("PYTHON=python3.10")
    assert not os.path.exists(used) and len([e for e in os.scandir(tmp_path / ".venvs") if e.is_dir()]) == 2


def test_a_venv_is_made_with_the_interpreter_of_the_system_and_not_with_that_of_the_one_before(setup, tmp_path):
    setup()
    venv = tmp_path / ".venv" / "bin"
    (venv / "python3").symlink_to("python")
    (tmp_path / "path" / "python3").write_text(FAKE.format(version="3.12", real=sys.executable))
    pins = (tmp_path / "pyproject.toml").read_text()
    (tmp_path / "pyproject.toml").write_text(pins.replace("tqdm==", "tqdm>="))
    done = setup()
    assert done.returncode == 0 and "made with 3.12" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(("says", "why"), [
    ("ERROR: Failed to build 'pymahjong' when installing build dependencies", "has no wheel for Python 3.11 on Linux"),
    ("  ERROR: Failed building wheel for pymahjong\nERROR: Failed", "needs g++ and Python's headers (apt install"),
    ("ERROR: no route to host", "setup: pip could not install the packages: its lines above say why")])
def test_packages_that_cannot_be_had_are_told_in_a_last_line_that_says_what_to_do(setup, tmp_path, says, why):
    (tmp_path / "no-network").touch()
    (tmp_path / "pip-says").write_text(says + "\n")
    done = setup()
    *before, last, _ = done.stderr.splitlines()
    assert done.returncode == 2 and says.splitlines() == before[-len(says.splitlines()):]
    assert why in last and last.startswith("setup: ") and last.endswith("; then run it again"), done.stderr
    assert not (tmp_path / ".venv").exists()


def as_nobody():
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_a_tree_that_one_may_not_write_is_a_line_only_if_something_has_to_be_made_there(setup, tmp_path):
    for path in (tmp_path, *tmp_path.parents[:3]):
        path.chmod(0o755)
    words = "bin/make-venv", "test"

    def make_venv():
        return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, preexec_fn=as_nobody,
                              env={"PATH": f"{tmp_path / 'path'}:/usr/bin:/bin"})

    for owner_does in (lambda: None, setup, lambda: subprocess.run(words, cwd=tmp_path, check=True)):
        owner_does()
        done = make_venv()
        if (tmp_path / ".venv" / ".made-test").exists():
            assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        else:
            assert (done.returncode, done.stdout) == (1, "")
            assert done.stderr.startswith(f"setup: the user nobody cannot write in {tmp_path}; have its owner run: "
                                          f"{tmp_path}/bin/make-venv")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_what_the_owner_has_to_run_can_be_pasted_where_the_path_of_the_tree_has_a_space(setup, tmp_path):
    tree = tmp_path / "a tree"
    for path in (tmp_path, *tmp_path.parents[:3]):
        path.chmod(0o755)
    shutil.copytree(tmp_path / "bin", tree / "bin")
    for name in ("config.mk", "pyproject.toml"):
        shutil.copy(tmp_path / name, tree)
    done = subprocess.run([tree / "bin" / "make-venv", "test"], capture_output=True, text=True, preexec_fn=as_nobody,
                          env={"PATH": f"{tmp_path / 'path'}:/usr/bin:/bin"})
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert shlex.split(done.stderr.split("have its owner run: ")[1]) == [f"{tree}/bin/make-venv", "test"]


def test_what_is_built_from_source_has_a_char_with_a_sign_on_arm_too(setup, tmp_path):
    setup(CXXFLAGS="-O2")
    log = (tmp_path / "pip.log").read_text().splitlines()
    assert log and all(line.endswith("CXXFLAGS:-O2 -fsigned-char") for line in log)
