"""As on a Mac: no /proc, a Python without what Linux alone has, and tools that refuse what only GNU's know."""

import datetime
import os
import shutil
import signal
import stat
import subprocess
import sys

import pytest
from flows import ROOT, environment, make, records, stand_in
from machines import until

from lib.cli import settings
from lib.store import locks

pytestmark = pytest.mark.slow

NOW = str(datetime.datetime.now(settings.JAPAN).year)
# with these words, or parts of one argument, a tool of macOS fails, or means something else
GNU_ONLY = {
    "stat": "*", "readlink": "-f -e -m -n* -z", "date": "-d -I* -r *%N*", "mktemp": "-p -p*", "xargs": "-d -d* -a -r",
    "sed": r"-i -z -s -u -*r* *\\t* *\\n* *\\+* *\\\?* *\\\|* *\\w* *\\s* *\\b*", "grep": "-*P*", "head": "-n-* -z",
    "tail": "-z", "cp": "-t -T -a -u", "ln": "-r* -t -T -*T*", "mv": "-t -T -u", "find": "-printf -regextype",
    "touch": "-d", "ls": "-v", "sort": "-V -z", "wc": "-L", "cut": "-z", "du": "-b* -h*", "ps": "-f*"}
AS_THEY_ARE = ["bash", "sh", "cat", "rm", "mkdir", "chmod", "sleep", "tr", "uniq", "expr", "dirname", "basename", "env",
               "cksum", "id", "uname", "seq", "tee", "hostname", "expand"]
SHIM = """#!/bin/bash
for word; do
  case $word in --) break ;; --[a-z]*) bad=$word ;; {patterns}) bad=$word ;; esac
done
[ -z "${{bad-}}" ] || {{ echo "{name}: illegal option: $bad" | tee -a "{refused}" >&2; exit 1; }}
exec {real} "$@"
"""
# without a way to hide /proc the rest is tried all the same
HIDE = "unshare", "--mount", "bash", "-c", 'mount -t tmpfs none /proc && exec "$@"', "bash"
hide = HIDE if not subprocess.run([*HIDE, "true"], capture_output=True).returncode else ()


@pytest.fixture
def mac(tmp_path):
    """A function that runs a command in a copy of the tree, on a Mac; all that a tool refused is an error."""
    tree, tools, refused = tmp_path / "tree", tmp_path / "tools", tmp_path / "refused"
    for name in ("bin", "lib"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("Makefile", "config.mk", "pyproject.toml"):
        shutil.copy(ROOT / name, tree)
    (tree / ".venv").symlink_to(os.path.realpath(ROOT / ".venv"))
    tools.mkdir()
    for name in AS_THEY_ARE:
        (tools / name).symlink_to(shutil.which(name))
    for name, words in GNU_ONLY.items():
        tool = SHIM.format(name=name, patterns=" | ".join(words.split()), refused=refused, real=shutil.which(name))
        (tools / name).write_text(tool)
    (tools / "gmake").write_text(f'#!/bin/bash\nexec -a gmake {shutil.which("make")} "$@"\n')
    (tools / "python3").write_text(f'#!/bin/bash\nexec {sys.executable} "$@"\n')
    (tools / "wc").write_text(f'#!/bin/bash\nset -o pipefail\n{shutil.which("wc")} "$@" | while read -r line; do\n'
                              '  printf "%8s\\n" "$line"; done\n')
    for tool in tools.iterdir():
        if not tool.is_symlink():
            tool.chmod(tool.stat().st_mode | stat.S_IXUSR)

    def run(*words, start=False, **settings):
        kept = environment(**settings)
        kept |= {"PATH": str(tools), "PYTHONPATH": str(ROOT / "tests" / "macos"), "PYTHONDONTWRITEBYTECODE": "1"}
        words = [*hide, "env", f"PATH={tools}", *words]
        if start:
            return subprocess.Popen(words, cwd=tree, env=kept | {"PATH": os.environ["PATH"]}, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        done = subprocess.run(words, cwd=tree, env=kept | {"PATH": os.environ["PATH"]}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True)
        assert not refused.exists(), refused.read_text()
        return done

    run.tools = tools
    return run


def test_the_tools_of_this_test_refuse_what_those_of_macos_refuse(mac):
    for words in (["stat", "-c", "%Y", "."], ["readlink", "-f", "."], ["sed", r"s/a/\t/"], ["date", "-d", "now"],
                  ["xargs", "-d", "x"], ["grep", "-oP", "x"], ["ln", "-sT", "a", "b"], ["ls", "--color"]):
        with pytest.raises(AssertionError, match="illegal option"):
            mac(*words)
        (mac.tools.parent / "refused").unlink()
    assert mac("setsid", "true").returncode == 127 and mac("realpath", ".").returncode == 127
    assert mac("sed", "s/a/b/", "config.mk").returncode == 0
    seen = mac("python3", "-c", "import os, sys; print(sys.platform, hasattr(os, 'pipe2'), os.listdir('/proc')[:1])")
    assert seen.stdout == ("darwin False []\n" if hide else seen.stdout)


@pytest.mark.parametrize("goals", [[], ["run"], ["-s", "check"], ["help"]])
def test_make_3_is_told_in_one_line_which_make_to_take(tmp_path, goals):
    done = make("MAKE_VERSION=3.81", *goals)
    goal = goals[-1] if goals else "run"
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert done.stderr.endswith(f"needs GNU make 4 or later: brew install make, then gmake {goal}.  Stop.\n")


def test_a_year_comes_in_whole_on_a_mac_and_a_damaged_log_is_found_and_fetched_again(mac, tmp_path):
    work = tmp_path / "w"
    with stand_in(tmp_path, "--games", 5) as (url, _):
        words = [f"WORK={work}", f"TENHOU_URL={url}", "DELAY=0"]
        for goal in ("setup", "help"):
            done = mac("gmake", goal)
            assert done.returncode == 0, done.stderr
        assert "  run             do everything that is left: check" in done.stdout
        done = mac("gmake", "run", "YEAR=2024", *words)
        assert done.returncode == 0 and "5 encoded" in done.stderr, done.stderr
        assert mac("gmake", "check", *words).returncode == 0
        status = mac("gmake", "status", *words)
        assert status.returncode == 0 and "games : 5\n" in status.stdout and "no run is at work" in status.stdout
        victim = sorted((work / "xml").glob("*.txt"))[0]
        victim.write_bytes(b"damaged")
        assert mac("gmake", "check", *words).returncode == 2
        assert mac("gmake", "check", "REPAIR=1", *words).returncode == 0
        assert mac("gmake", "run", "YEAR=2024", *words).returncode == 0 and victim.exists()
        for goal in ("compact", "rebuild-index", "recover", "export-mjai", "purge", "check"):
            done = mac("gmake", goal, *words)
            assert done.returncode == 0, (goal, done.stderr)


def test_a_running_year_goes_on_growing_on_a_mac(mac, tmp_path):
    work, words = tmp_path / "w", [f"YEAR={NOW}", "DELAY=0"]
    with stand_in(tmp_path, "--games", 2, "--running", "--year", NOW) as (url, _):
        assert mac("gmake", "run", f"WORK={work}", f"TENHOU_URL={url}", *words).returncode == 0
    assert len(records(work)) == 2
    for path in (work / "raw" / ".looked", *work.glob("game_ids_*.txt")):
        os.utime(path, (0, 0))
    with stand_in(tmp_path, "--games", 6, "--running", "--year", NOW) as (url, _):
        assert mac("gmake", "run", f"WORK={work}", f"TENHOU_URL={url}", *words).returncode == 0
    assert len(records(work)) > 2


def test_make_killed_on_a_mac_leaves_nobody_at_work(mac, tmp_path):
    with stand_in(tmp_path, "--games", 40) as (url, _):
        run = mac("gmake", "run", f"WORK={tmp_path / 'w'}", "YEAR=2024", f"TENHOU_URL={url}", "DELAY=0.5", start=True)
        lock = tmp_path / "w" / ".run.lock"
        until(lambda: list((tmp_path / "w" / "xml").glob("2*")))
        assert locks.is_held(lock)
        run.send_signal(signal.SIGKILL)
        run.wait()
        until(lambda: not locks.is_held(lock))


@pytest.mark.slow
def test_the_demo_goes_to_its_end_on_a_mac(mac):
    done = mac("gmake", "demo")
    assert done.returncode == 0, done.stderr
    assert "$ gmake check WORK=data/demo REPAIR=1" in done.stdout and "games : 16" in done.stdout
    assert " games. The same command goes on" in done.stdout and "Killed after 0" not in done.stdout
