"""make setup: which interpreters it takes, and when it makes .venv anew. Stand-ins for Python; nothing is installed."""

import shutil
import subprocess

import pytest
from flows import ROOT, environment

FAKE = """#!/bin/bash
case "$*" in
  -c*) echo {version} ;;
  "-m venv .venv") mkdir -p .venv/bin; cp "$0" .venv/bin/python; echo made with {version} ;;
  --version) echo Python {version} ;;
  "-m pip install"*) [ ! -e no-network ] ;;
esac
"""


@pytest.fixture
def setup(tmp_path):
    """A function that runs `make setup` in a copy of the tree, with stand-ins called python<version>."""
    for name in ("Makefile", "config.mk", "requirements.txt"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "path").mkdir()
    for name, version in [("python3", "3.11"), *((f"python{v}", v) for v in ("2.7", "3.9", "3.10", "3.13", "3.14"))]:
        (tmp_path / "path" / name).write_text(FAKE.format(version=version))
        (tmp_path / "path" / name).chmod(0o755)
    (tmp_path / "path" / "jq").symlink_to("python3")

    def run(*args, **settings):
        env = environment(**settings)
        return subprocess.run(["make", "setup", *args], cwd=tmp_path, capture_output=True, text=True,
                              env=env | {"PATH": f"{tmp_path / 'path'}:{env['PATH']}"})

    return run


@pytest.mark.parametrize(("python", "why"), [
    ("python3.9", "Python 3.9 is too old"), ("python2.7", "Python 2.7 is too old"),
    ("python3.14", "Python 3.14 is too new"), ("/no/such/python", "PYTHON=/no/such/python does not run")])
def test_an_interpreter_that_will_not_do_is_refused_in_a_line_and_costs_no_venv(setup, tmp_path, python, why):
    for there in (False, True):  # a good .venv is left alone
        done = setup(f"PYTHON={python}")
        line, make = done.stderr.splitlines()
        assert line == f"setup: {why}: 3.10 to 3.13 is needed, e.g. make setup PYTHON=python3.12"
        assert done.returncode == 2 and make.startswith("make: ***") and done.stdout == ""
        assert (tmp_path / ".venv" / ".ready").exists() == (tmp_path / ".venv").exists() == there
        assert setup("PYTHON=python3.13").returncode == 0


def test_a_venv_is_made_once_and_anew_when_another_version_is_named(setup):
    assert setup().stdout.startswith("made with 3.11\n") and "made" not in setup().stdout
    assert "made" not in setup("PYTHON=python3").stdout
    assert setup("PYTHON=python3.13").stdout.startswith("made with 3.13\nPython 3.13 in .venv, with the packages of")
    assert "made" not in setup().stdout and "made" not in setup(PYTHON="python3.13").stdout
    assert setup(PYTHON="python3.10").stdout.startswith("made with 3.10\n")


def test_a_half_made_venv_is_made_anew(setup, tmp_path):
    (tmp_path / "no-network").touch()
    assert setup("PYTHON=python3.10").returncode == 2 and not (tmp_path / ".venv" / ".ready").exists()
    (tmp_path / "no-network").unlink()
    (tmp_path / ".venv" / "left-over").touch()
    assert setup().stdout.startswith("made with 3.11\n") and not (tmp_path / ".venv" / "left-over").exists()
