"""A run with nothing to do looks at no game's record; whatever has changed, it looks at all of them."""

import os
import shutil
import subprocess
import types

import pytest
from flows import NOBODY, ROOT, environment, script
from support import downloaded, event, game, npy, put, put_shard

from lib.cli import origins
from lib.download import asked
from lib.manifest import Manifest
from lib.report import settled
from lib.shards import index
from lib.store import clock, workdir

TABLE = "encoded : 2\n"


@pytest.fixture
def work(work, monkeypatch):
    """Two games with their rows, and one whose download has failed; files may be as young as they like."""
    monkeypatch.setattr(settled, "_RACY", -10 ** 9)
    put_shard(work, {1: 2, 2: 3})
    event(work, 3, status="failed", stage="download", retry_at="2099-01-01T00:00:00Z")
    index.rebuild(work, Manifest(work).latest)
    return work


def run(work, quiet=False):
    """True if a run has to look at it all; if it does, it finds nothing to do."""
    looked = settled.begin(work, quiet) == 1
    if looked:
        settled.end(work, TABLE, quiet)
    return looked


def write(path, data, mode="r+b", at=0):
    """Write into a file, whose size and time of change stay as they are if that is possible."""
    info = os.stat(path)
    with open(path, mode) as f:
        f.seek(at)
        f.write(data)
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


def xml(work, n=1):
    return workdir.xml(work, game(n))


def meta(work):
    return npy(work, "x").replace("x.npy", "meta.json")


def listed(work):
    """A list of ids in the work directory."""
    with open(workdir.path(work, "game_ids_2024.txt"), "a") as f:
        f.write(f"{game(9)}\n")


CHANGES = {
    "an event": lambda work: event(work, 4, status="corrupt"),
    "a byte of the manifest": lambda work: write(workdir.path(work, "manifest.jsonl"), b"X", at=50),
    "the manifest is gone": lambda work: os.unlink(workdir.path(work, "manifest.jsonl")),
    "a new log": lambda work: put(work, 4, b"<mjloggm></mjloggm>"),
    "a file that is no log": lambda work: open(workdir.path(work, "xml", "notes.txt"), "w").close(),
    "a log is gone": lambda work: os.unlink(xml(work)),
    "a log has other bytes": lambda work: write(xml(work), b"X"),
    "a log is longer": lambda work: write(xml(work), b"X", "ab"),
    "a log was touched": lambda work: os.utime(xml(work)),
    "a log may not be read": lambda work: os.chmod(xml(work), 0),
    "a log is a link": lambda work: (os.rename(xml(work), work + "/x"), os.symlink(work + "/x", xml(work))),
    "what was left aside": lambda work: open(workdir.path(work, "cache", ".tmp-x"), "w").close(),
    "another meta.json": lambda work: write(meta(work), b"X"),
    "no meta.json": lambda work: os.unlink(meta(work)),
    "a shorter array": lambda work: os.truncate(npy(work, "labels"), 100),
    "a header": lambda work: write(npy(work, "tokens"), b"X", at=20),
    "an array is gone": lambda work: os.unlink(npy(work, "labels")),
    "an array by another name": lambda work: os.rename(npy(work, "labels"), npy(work, "others")),
    "a shard is gone": lambda work: shutil.rmtree(workdir.path(work, "cache", "shard_00000")),
    "a shard nobody knows": lambda work: os.mkdir(workdir.path(work, "cache", "shard_00007")),
    "no index": lambda work: os.unlink(workdir.path(work, "cache", "index.json")),
    "another index": lambda work: write(workdir.path(work, "cache", "index.json"), b"X"),
    "no last checks": lambda work: os.unlink(workdir.path(work, ".seen")),
    "a cache that is not mounted": lambda work: os.unlink(workdir.path(work, "cache", ".work-id")),
    "xml/ of another": lambda work: write(workdir.path(work, "xml", ".work-id"), b"X"),
    "another work directory": lambda work: write(workdir.path(work, "format.json"), b'{"format": 2, "id": "x"}', "wb"),
    "a list of ids": listed,
    "imported links": lambda work: open(workdir.path(work, workdir.LINKS), "w").close(),
    "a conclusion cut short": lambda work: os.truncate(workdir.path(work, workdir.SETTLED), 150),
    "a conclusion that others may have written": lambda work: os.chmod(workdir.path(work, workdir.SETTLED), 0o666),
}


@pytest.fixture
def quiet_work(work):
    """A work directory of which is known that there is nothing to do."""
    open(workdir.path(work, ".seen"), "w").close()
    assert [run(work), run(work), run(work)] == [True, False, False]
    return work


def test_a_run_that_has_nothing_to_do_prints_what_the_last_one_printed(quiet_work, capsys):
    assert not run(quiet_work)
    assert capsys.readouterr() == (TABLE, "run: nothing has changed since the last run: nothing to do\n")
    assert not run(quiet_work, quiet=True)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_has_changed_the_run_looks_at_it_all(quiet_work, change):
    CHANGES[change](quiet_work)
    assert run(quiet_work)


@pytest.mark.parametrize(("name", "value"), [("RETRY", "1"), ("OUTDATED", "1"), ("IDS", __file__), ("YEAR", "2024"),
                                             ("DEEP", "1"), ("DISTRIBUTE", "slurm"), ("REPAIR", "1")])
def test_with_another_setting_the_run_looks_at_it_all(quiet_work, monkeypatch, name, value):
    monkeypatch.setenv(origins.key(name), value)
    assert run(quiet_work)


@pytest.mark.parametrize(("name", "value"), [("DEEP", "1"), ("DISTRIBUTE", "parallel"), ("YEAR", "2024"),
                                             ("IDS", "/dev/null")])
def test_a_run_that_has_more_to_do_than_to_look_does_it_each_time(work, monkeypatch, name, value):
    monkeypatch.setenv(origins.key(name), value)
    assert [run(work), run(work)] == [True, True]


def test_ids_from_a_pipe_are_left_for_the_run_to_read(work, monkeypatch, tmp_path):
    read, write = os.pipe()
    monkeypatch.setenv("IDS", f"/dev/fd/{read}")
    os.write(write, b"ids")
    assert run(work) and os.read(read, 9) == b"ids"


def test_an_own_list_of_ids_counts_with_each_byte(work, monkeypatch, tmp_path):
    (tmp_path / "ids").write_text(game(1))
    monkeypatch.setenv("IDS", str(tmp_path / "ids"))
    assert [run(work), run(work)] == [True, False]
    (tmp_path / "ids").write_text(game(9))
    assert run(work)


@pytest.mark.parametrize("what", ["_PROGRAM", "sys", "os"])
def test_another_program_python_or_user_looks_at_it_all(quiet_work, monkeypatch, what):
    others = {"_PROGRAM": ("lib/*.py",), "sys": types.SimpleNamespace(version="another"),
              "os": types.SimpleNamespace(**{**vars(os), "geteuid": lambda: 54321})}
    monkeypatch.setattr(settled, what, others[what])
    assert run(quiet_work)


def test_the_file_of_ids_that_an_earlier_run_was_to_download_is_looked_at(work, tmp_path):
    (tmp_path / "ids").write_text(f"{game(1)}\n")
    asked.note(work, str(tmp_path / "ids"), None)
    assert [run(work), run(work)] == [True, False]
    (tmp_path / "ids").write_text(f"{game(1)}\n{game(9)}\n")
    assert run(work)


def test_a_game_that_has_become_due_is_asked_for_again(quiet_work, monkeypatch):
    monkeypatch.setattr(clock, "now", lambda: "2098-12-31T23:59:59Z")
    assert not run(quiet_work)
    monkeypatch.setattr(clock, "now", lambda: "2099-01-01T00:00:00Z")
    assert [run(quiet_work), run(quiet_work)] == [True, True]


def test_what_a_quiet_run_did_not_tell_is_told_by_the_next_that_is_not(work):
    assert [run(work, quiet=True), run(work, quiet=True), run(work), run(work), run(work, quiet=True)] == [
        True, False, True, False, False]


def test_any_byte_of_the_conclusion_that_is_wrong_makes_it_none(quiet_work):
    path = workdir.path(quiet_work, workdir.SETTLED)
    with open(path, "rb") as f:
        kept = f.read()
    for i in range(len(kept)):
        with open(path, "wb") as f:
            f.write(kept[:i] + bytes([kept[i] ^ 1]) + kept[i + 1:])
        assert settled.begin(quiet_work, True) == 1
    with open(path, "wb") as f:
        f.write(kept)
    assert settled.begin(quiet_work, True) == 0


@pytest.mark.parametrize("change", [lambda work: put(work, 4, b"x"), lambda work: event(work, 4, status="corrupt"),
                                    lambda work: settled.script.note_news(work)])
def test_a_run_that_did_something_or_told_something_leaves_no_conclusion(work, change):
    assert settled.begin(work, False) == 1
    change(work)
    settled.end(work, TABLE, False)
    assert not os.path.exists(workdir.path(work, workdir.SETTLED))


def test_a_run_may_mend_what_it_keeps_to_be_quicker(work):
    os.unlink(workdir.path(work, "cache", "index.json"))
    assert settled.begin(work, False) == 1
    index.rebuild(work, Manifest(work).latest)
    settled.end(work, TABLE, False)
    assert not run(work)


def test_files_so_young_that_they_may_change_without_showing_it_are_not_relied_on(work, monkeypatch):
    monkeypatch.setattr(settled, "_RACY", 3600 * 10 ** 9)
    assert [run(work), run(work)] == [True, True]


@pytest.mark.parametrize(("name", "make_odd", "news"), [
    ("adopt-xml", None, False), ("encode-batch", None, False), ("fetch-paipu", None, False),
    ("rebuild-index", None, False), ("manifest-status", None, False),
    ("adopt-xml", lambda work: open(workdir.path(work, "xml", "notes.txt"), "w").close(), True),
    ("encode-batch", lambda work: (downloaded(work, 5, b"x"), os.unlink(xml(work, 5))), True),
    ("fetch-paipu", listed, True),
    ("manifest-status", lambda work: write(workdir.path(work, "manifest.jsonl"), b"junk\n", "ab"), True)])
def test_a_script_notes_that_it_told_news(work, name, make_odd, news):
    if make_odd:
        make_odd(work)
    note = workdir.path(work, workdir.NO_NEWS)
    open(note, "w").close()
    options = ["--queued"] if name in ("encode-batch", "fetch-paipu") else []
    done = script(name, *options, settings={"WORK": work, "IN_RUN": "1", "TENHOU_URL": NOBODY})
    assert done.returncode == 0 and os.path.exists(note) != news, done.stderr
    assert done.stderr or name == "manifest-status"


@pytest.mark.parametrize(("change", "wrong"), [
    (lambda work: None, False), (lambda work: put(work, 9, b"x"), False), (lambda work: write(xml(work), b"X"), True),
    (lambda work: os.truncate(npy(work, "labels"), 100), True)])
def test_check_first_says_by_its_status_if_it_found_anything_wrong(work, change, wrong):
    change(work)
    found = subprocess.run(["bash", ROOT / "bin" / "check-first"], env=environment(WORK=work), capture_output=True)
    assert found.returncode == wrong, found.stdout
