"""make run with nothing to do: it starts nothing that looks at games; and whatever has changed, it sees as ever."""

import os
import shutil
import subprocess
import sys
import time

import pytest
from flows import MEASURE, NOBODY, ROOT, environment, make

from lib.demo import months
from lib.demo.selfplay import play
from lib.manifest import Manifest

pytestmark = pytest.mark.slow
GAMES = [f"202401010{i}gm-00e1-0000-0000000{i}" for i in range(3)]
AGAIN = "run: nothing has changed since the last run: nothing to do\n"
# python imports it at its start
SPY = """import sys
with open({!r}, "a") as f:
    f.write(" ".join(sys.orig_argv[1:3]) + "\\n")
"""


def run(work, *args, **settings):
    """(status, stdout, stderr) of a make run, with `W` for the work directory."""
    done = make(*args, "run", f"WORK={work}", f"TENHOU_URL={NOBODY}", "DELAY=0", settings=settings)
    return done.returncode, done.stdout.replace(str(work), "W"), done.stderr.replace(str(work), "W")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A work directory of which a run has found that there is nothing to do."""
    work = tmp_path_factory.mktemp("made") / "w"
    (work / "xml").mkdir(parents=True)
    for i, game in enumerate(GAMES):
        (work / "xml" / f"{game}.txt").write_bytes(play(i, hanchan=False))
    assert run(work)[0] == 0
    settle(work)
    return work


def settle(work):
    """Let files grow so old that they are relied on, and have a run find that there is nothing to do."""
    time.sleep(2.1)
    assert run(work)[0] == 0
    status, _, told = run(work)
    assert (status, told) == (0, AGAIN)


@pytest.fixture
def work(made, tmp_path):
    """Another such work directory."""
    work = shutil.copytree(made, tmp_path / "w")
    settle(work)
    return work


def test_it_starts_no_script_that_looks_at_games_and_prints_the_same_table(made, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(SPY.format(str(tmp_path / "started")))
    _, printed, told = run(made, PYTHONPATH=str(tmp_path))
    assert told == AGAIN and f"\nencoded : 3\ngames : 3\nrows : {rows(made)}\nmake: " in printed
    started = (tmp_path / "started").read_text().splitlines()
    assert [os.path.basename(words) for words in started] == [
        "-m lib.cli.makeline", "with-lock --create", "-m lib.report.settled"]


def rows(work):
    return sum(record["n_samples"] for record in Manifest(work).latest.values())


def test_it_says_nothing_at_all_under_make_s(made):
    assert run(made, "-s") == (0, "", "")


def replace(path, data):
    """Write over a file without a change of its size or of its time."""
    info = path.stat()
    path.write_bytes(data[:info.st_size].ljust(info.st_size))
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


def shard(work):
    return work / "cache" / "shard_00000"


CHANGES = {
    "a new log": lambda work: (work / "xml" / f"{GAMES[0][:-1]}9.txt").write_bytes(play(9, hanchan=False)),
    "a file that is no log": lambda work: (work / "xml" / "notes.txt").write_text("mine"),
    "a damaged log": lambda work: (work / "xml" / f"{GAMES[1]}.txt").write_bytes(b"junk"),
    "a lost log and its rows": lambda work: (shutil.rmtree(shard(work)), (work / "xml" / f"{GAMES[1]}.txt").unlink()),
    "another meta.json": lambda work: replace(shard(work) / "meta.json", b'{"games": ['),
    "a cache that is not mounted": lambda work: (os.rename(work / "cache", work / "away"), (work / "cache").mkdir()),
    "xml/ not mounted": lambda work: (os.rename(work / "xml", work / "away"), (work / "xml").mkdir()),
    "a torn line": lambda work: (work / "manifest.jsonl").open("a").write('{"gid": "2024'),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_has_changed_is_told_and_done_as_if_nothing_had_been_kept(work, tmp_path, change):
    plain = shutil.copytree(work, tmp_path / "plain")
    (plain / ".settled").unlink()
    for each in (work, plain):
        CHANGES[change](each)
    found = [(status, out, sorted(err.splitlines())) for status, out, err in (run(work), run(plain))]  # at once, some
    assert found[0] == found[1] and AGAIN.strip() not in found[0][2]


def test_its_memory_does_not_grow_with_the_games(tmp_path):
    used = []
    for games in (1_000, 40_000):
        work = tmp_path / str(games)
        months.fill(work, games)
        time.sleep(2.1)
        assert run(work)[0] == 0
        done = subprocess.run([sys.executable, "-c", MEASURE, sys.executable, "-m", "lib.report.settled"], cwd=ROOT,
                              env=environment(WORK=str(work), TENHOU_URL=NOBODY, DELAY="0"), capture_output=True,
                              text=True)
        assert done.returncode == 0 and done.stderr.startswith(AGAIN), done.stderr
        used.append(int(done.stderr.split()[-1]) // 1024)
    assert used[1] < used[0] + 8, used  # MB; the records of so many games take thirty
