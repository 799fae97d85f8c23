"""A tree that its user may not write in, installed by another, does all its work in a work directory elsewhere."""

import os
import shutil
import subprocess

import pytest
from flows import NOBODY, ROOT, environment
from support import game, log

MOUNT = 'mount --bind . . && mount -o remount,ro,bind . && cd "$PWD" && exec "$@"'
READ_ONLY = "unshare", "--mount", "bash", "-c", MOUNT, "bash"
can = shutil.which("unshare") and not subprocess.run([*READ_ONLY, "true"], cwd="/tmp", capture_output=True).returncode
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not can, reason="mounts need rights that are missing here")]


@pytest.fixture
def tree(tmp_path):
    """A function that runs a command in a copy of the tree that is mounted read-only."""
    for name in ("bin", "lib"):
        shutil.copytree(ROOT / name, tmp_path / "tree" / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("Makefile", "config.mk", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / "tree")
    (tmp_path / "tree" / ".venv").symlink_to(os.path.realpath(ROOT / ".venv"))

    def run(*words):
        return subprocess.run([*READ_ONLY, *map(str, words)], cwd=tmp_path / "tree", env=environment(),
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)

    return run


def test_all_is_done_in_a_work_directory_elsewhere(tree, tmp_path):
    assert tree("touch", "x").returncode == 1
    work = tmp_path / "w"
    (work / "xml").mkdir(parents=True)
    (work / "xml" / f"{game(1)}.txt").write_bytes(log(1))
    for goal in ("setup", "run", "check", "status", "compact", "rebuild-index", "export-mjai", "recover", "purge"):
        done = tree("make", goal, f"WORK={work}", f"TENHOU_URL={NOBODY}")
        assert done.returncode == 0, (goal, done.stderr)
    assert (work / "cache" / "index.json").exists()
    done = tree("make", "demo", f"WORK={tmp_path / 'demo'}")
    assert done.returncode == 0 and f"make report WORK={tmp_path}/demo\n" in done.stdout


def test_what_needs_a_place_in_the_tree_says_so_in_a_line(tree, tmp_path):
    done = tree("make", "demo")
    assert done.returncode == 2 and done.stderr.splitlines()[:-1] == [
        "demo: data/demo cannot be made anew: name a directory that you may write in, e.g. make demo WORK=/tmp/demo"]
    for words in (["make", "run"], ["bin/import-logs", ROOT / "bin"]):
        done = tree(*words)
        assert done.returncode in (1, 2) and done.stderr.splitlines()[0].endswith(
            f"{tmp_path / 'tree' / 'data'}: Read-only file system; name a directory that you may write in, e.g. "
            f"WORK={os.path.expanduser('~')}/tenhou")
    (tmp_path / "tree" / ".venv").unlink()
    done = tree("make", "setup")
    assert done.returncode == 2 and f" cannot write in {tmp_path}/tree; have its owner run: {tmp_path}" in done.stderr


def test_a_python_that_the_user_may_not_run_is_named(tree, tmp_path):
    made = os.path.realpath(tmp_path / "tree" / ".venv")
    (tmp_path / "tree" / ".venv").unlink()
    (tmp_path / "tree" / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(f"{made}/.made-run", tmp_path / "tree" / ".venv")
    (tmp_path / "python3.11").touch(0o644)
    (tmp_path / "python3").symlink_to("python3.11")
    (tmp_path / "tree" / ".venv" / "bin" / "python").symlink_to(tmp_path / "python3")
    done = tree("make", "setup")
    assert done.returncode == 2 and f"may not run {tmp_path}/tree/.venv/bin/python: " in done.stderr
    assert f"let others use {tmp_path}/python3.11, or" in done.stderr
