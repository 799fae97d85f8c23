"""A log that cannot be read, forbidden or on a bad spot of the disk, costs its own game only; a bad disk stops all."""

import os
import pickle
import re

import faulty
import pytest
from flows import make, records
from support import game, log, put, sha

from lib.logs import hashes, verify
from lib.manifest import Manifest
from lib.store import files, workdir

VICTIM = faulty.game(1)
WHY = {"EACCES": "Permission denied", "EIO": "Input/output error"}


def struck(name, work, error, *args, glob=f"*/xml/{VICTIM}.txt"):
    """Run a script that cannot read what `glob` names."""
    done = faulty.struck(name, "--work", work, *args, fault=f"{error} read {glob} 1")
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.mark.parametrize("error", WHY)
def test_adopting_reports_it_takes_in_the_others_and_takes_it_in_once_it_can_be_read(tmp_path, ready, logs, error):
    work = faulty.copy(ready("adopt-xml"), tmp_path)
    done = struck("adopt-xml", work, error)
    assert done.returncode == 0 and set(done.stdout.split()) == logs.keys() - {VICTIM}
    assert done.stderr == (f"adopt-xml: {work}/xml/{VICTIM}.txt: {WHY[error]}; not adopted\n"
                           "adopt-xml: 3 adopted, 1 duplicate\n")
    assert faulty.ok("adopt-xml", "--work", work).stdout.split() == [VICTIM]


def test_a_copy_of_a_log_that_cannot_be_read_is_no_duplicate_for_that_one_may_be_lost(tmp_path, ready):
    work = faulty.copy(ready("adopt-xml"), tmp_path)
    struck("adopt-xml", work, "EIO", faulty.game(0))
    done = struck("adopt-xml", work, "EIO", faulty.game(7), glob=f"*/xml/{faulty.game(0)}.txt")
    assert done.stdout.split() == [faulty.game(7)] and (work / "xml" / f"{faulty.game(7)}.txt").exists()


@pytest.mark.parametrize("error", WHY)
@pytest.mark.parametrize("jobs", [1, 2])
def test_encoding_names_it_in_one_line_leaves_it_as_it_is_and_encodes_the_others(
        tmp_path, ready, logs, right, error, jobs):
    work = faulty.copy(ready("encode-batch"), tmp_path)
    before = records(work)[VICTIM]
    done = struck("encode-batch", work, error, "--queued", "--jobs", jobs)
    assert done.returncode == 1 and set(done.stdout.split()) == logs.keys() - {VICTIM}
    assert [line for line in done.stderr.splitlines() if VICTIM in line] == [
        f"encode-batch: {VICTIM}: its log cannot be read ({WHY[error]}), so the game stays as it is"]
    assert "3 encoded, 0 failed, 0 corrupt" in done.stderr and records(work)[VICTIM] == before
    assert faulty.ok("encode-batch", "--work", work, "--queued").stdout.split() == [VICTIM]
    faulty.ok("rebuild-index", "--work", work)
    assert faulty.difference(work, right) == (0, 0)


@pytest.mark.parametrize("error", WHY)
@pytest.mark.parametrize("options", [[], ["--repair"], [VICTIM]])
def test_the_check_names_it_and_says_what_to_do_and_checks_the_others(tmp_path, ready, error, options):
    work = faulty.copy(ready("encode-batch"), tmp_path)
    manifest = (work / "manifest.jsonl").read_bytes()
    done = struck("verify-xml", work, error, *options)
    assert done.returncode == 1 and done.stdout == f"unreadable\t{VICTIM}\n"
    assert re.findall(r"^(xmls .*) : (\d+)$", done.stderr, re.M) == [
        ("xmls (ok)", "0" if VICTIM in options else "3"), ("xmls (corrupt)", "0"), ("xmls (missing)", "0"),
        ("xmls (unknown)", "0")]
    assert "verify-xml: 1 file cannot be read: check the permissions and the disk\n" in done.stderr
    assert (work / "manifest.jsonl").read_bytes() == manifest and (work / "xml" / f"{VICTIM}.txt").exists()


def test_a_run_goes_on_without_it_and_ends_as_one_that_could_not_do_all(tmp_path, ready, logs):
    work = faulty.copy(ready("encode-batch"), tmp_path)
    settings = {"PYTHONPATH": str(faulty.ROOT / "tests" / "faults"),
                "TENHOU_FAULT": f"EACCES read *{work}/xml/{VICTIM}.txt 1"}
    done = make("run", f"WORK={work}", settings=settings)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert f"unreadable\t{VICTIM}" in done.stdout and f"{VICTIM}: its log cannot be read" in done.stderr
    found = {name: record["status"] for name, record in records(work).items()}
    assert found.pop(VICTIM) == "downloaded" and {found[name] for name in logs if name != VICTIM} == {"encoded"}


@pytest.mark.parametrize("name", ["adopt-xml", "encode-batch", "verify-xml"])
def test_a_manifest_on_a_bad_disk_still_stops_the_work(tmp_path, ready, name):
    work = faulty.copy(ready("encode-batch"), tmp_path)
    done = struck(name, work, "EIO", glob="*/manifest.jsonl")
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr == f"{name}: {work}/manifest.jsonl: Input/output error\n"


def test_a_disk_that_fails_in_the_middle_of_a_file_names_the_file(work, monkeypatch):
    path = put(work, 1, log(1))
    put(work, 2, log(2))
    real, bad = os.read, os.stat(path).st_ino

    def read(fd, size):
        if os.fstat(fd).st_ino == bad:
            raise OSError(5, "Input/output error")
        return real(fd, size)

    monkeypatch.setattr(os, "read", read)
    Manifest(work).append([{"gid": game(n), "status": "downloaded", "sha256": sha(log(n))} for n in (1, 2)])
    assert list(verify.check(work, Manifest(work))) == [("unreadable", game(1)), ("ok", game(2))]
    (_, error, _), _ = hashes.hash_files(work, [(game(1), None), (game(2), None)], 1)
    again = pickle.loads(pickle.dumps(error))  # as from a process that hashes
    assert isinstance(again, files.Unreadable) and again.filename == workdir.xml(work, game(1)) == path


def test_what_is_not_one_file_s_fault_is_not_taken_for_it(tmp_path):
    for number in (24, 28):  # no file descriptor, no space left
        with pytest.raises(OSError) as caught, files.reading(str(tmp_path / "x")):
            raise OSError(number, "all files")
        assert not isinstance(caught.value, files.Unreadable)
