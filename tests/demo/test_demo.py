"""The demo plays in the directory that it is given, and deletes nothing that it did not make itself."""

import subprocess

import pytest
from flows import ROOT, environment
from support import game, log


def demo(cwd, work, make="false"):
    """Runs the demo; it comes no further than `make` does."""
    return subprocess.run([ROOT / "bin" / "demo"], cwd=cwd, env=environment(WORK=str(work), MAKE=make), text=True,
                          capture_output=True, stdin=subprocess.DEVNULL)


def of_a_demo(work, *games):
    """Makes a directory that a demo of these games left."""
    (work / "xml").mkdir(parents=True)
    (work / ".demo").touch()
    (work / "game_ids_2024.txt").write_text("".join(f"{gid}\n" for gid in games))
    for gid in games:
        (work / "xml" / f"{gid}.txt").write_bytes(log(1))


@pytest.mark.parametrize("before", ["new", "empty", "a link", "a demo"])
def test_the_demo_is_played_in_the_directory_that_is_named(tmp_path, before):
    work = tmp_path / "w"
    if before == "a demo":
        of_a_demo(work, game(1))
    elif before == "a link":
        (tmp_path / "elsewhere").mkdir()
        work.symlink_to("elsewhere")
    elif before == "empty":
        work.mkdir()
    done = demo(tmp_path, "w")
    assert f"$ false run WORK={work} YEAR=2024 " in done.stdout and work.is_symlink() == (before == "a link")
    assert [path.name for path in work.iterdir()] == [".demo"]


@pytest.mark.parametrize("before", ["a file of another", "a log that was imported into a demo", "no list of ids yet"])
def test_the_demo_deletes_nothing_that_no_demo_made(tmp_path, before):
    work = tmp_path / "w"
    if before == "a file of another":
        (work / "xml").mkdir(parents=True)
        (work / "manifest.jsonl").touch()
    else:
        of_a_demo(work, game(1))
        (work / "xml" / f"{game(2)}.txt").write_bytes(log(2))
        if before == "no list of ids yet":
            (work / "game_ids_2024.txt").unlink()
    there = sorted(work.rglob("*"))
    done = demo(tmp_path, work)
    assert (done.returncode, done.stdout, sorted(work.rglob("*"))) == (2, "", there)
    assert done.stderr == (f"demo: {work} has things in it that no demo made: name a new or empty directory, "
                           f"e.g. make demo WORK={work}-2\n")


def test_a_place_where_nothing_can_be_written_is_one_line(tmp_path):
    (tmp_path / "w").symlink_to("nowhere")
    done = demo(tmp_path, "w")
    assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"demo: {tmp_path}/w cannot be made anew: ")
