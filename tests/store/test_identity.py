"""A work directory's identity: a folder without it is not mounted, another format is not read, and none is lost by a
kill while it is made."""

import json
import os
import threading

import faulty
import pytest
from flows import NOBODY, script
from support import downloaded, game, log, put_shard, tree

from lib.manifest import Manifest
from lib.store import files, identity, workdir
from lib.store.errors import Problem


def marker(work, folder):
    return os.path.join(work, folder, identity.MARKER)


def old(work):
    """Make a work directory one that an older version made: without an identity."""
    for path in (os.path.join(work, identity.FILE), marker(work, "cache"), marker(work, "xml")):
        os.unlink(path)


def test_a_new_work_directory_has_a_format_and_an_id_that_its_folders_repeat(work):
    with open(os.path.join(work, identity.FILE)) as f:
        found = json.load(f)
    assert found == {"format": 1, "id": identity.read(work)} and len(found["id"]) == 32
    for folder in ("cache", "xml"):
        with open(marker(work, folder)) as f:
            assert f.read() == found["id"] + "\n"
    identity.must_be_here(work, "cache", "xml")


def test_two_work_directories_have_two_ids(tmp_path):
    ids = []
    for name in "ab":
        workdir.make(str(tmp_path / name))
        ids.append(identity.read(tmp_path / name))
    assert ids[0] != ids[1]


@pytest.mark.parametrize("folder", ["cache", "xml"])
def test_a_folder_without_its_marker_or_with_another_s_is_not_this_directory_s(work, tmp_path, folder):
    os.unlink(marker(work, folder))
    for act in (lambda: identity.must_be_here(work, folder), lambda: workdir.make(work),
                lambda: workdir.make(work, folder)):
        with pytest.raises(Problem, match=f"{folder} is not mounted, or belongs to another"):
            act()
    workdir.make(work, {"cache": "xml", "xml": "cache"}[folder])  # who needs only the other goes on
    workdir.make(str(tmp_path / "other"))
    os.rename(marker(str(tmp_path / "other"), folder), marker(work, folder))
    with pytest.raises(Problem, match="belongs to another work directory"):
        workdir.make(work)


def test_what_the_message_says_makes_a_lost_folder_anew(work):
    os.unlink(marker(work, "cache"))
    os.rmdir(os.path.join(work, "cache"))
    with pytest.raises(Problem) as caught:
        workdir.make(work)
    assert "/cache is gone, not mounted, or belongs to" in str(caught.value)
    assert os.system(str(caught.value).rpartition(": ")[2]) == 0
    workdir.make(work)
    with open(marker(work, "cache")) as f:
        assert f.read().strip() == identity.read(work)


def test_another_format_is_refused_by_every_script_and_nothing_is_changed(work):
    files.write(os.path.join(work, identity.FILE), b'{"format": 2, "id": "x"}')
    before = tree(work)
    for name in ("adopt-xml", "encode-batch", "verify-xml", "verify-shards", "rebuild-index", "compact-shards",
                 "recover-manifest", "manifest-latest", "manifest-status", "fetch-paipu"):
        done = script(name, "--work", work, settings={"TENHOU_URL": NOBODY})
        assert done.returncode == 1 and "has format 2, but this version knows" in done.stderr, (name, done.stderr)
    assert tree(work) == before


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"format": "1", "id": "x"}', b'{"format": 1}', b"\xff"])
def test_a_damaged_format_json_is_told_and_comes_back_with_the_id_of_the_folders(work, data):
    known, path = identity.read(work), os.path.join(work, identity.FILE)
    with open(path, "wb") as f:
        f.write(data)
    with pytest.raises(Problem, match="delete it"):
        workdir.make(work)
    os.unlink(path)
    workdir.make(work)
    assert identity.read(work) == known


def test_of_several_that_make_one_at_the_same_time_all_have_the_same_id(tmp_path):
    for number in range(20):
        work, errors = str(tmp_path / str(number)), []

        def make(work=work, errors=errors):
            try:
                workdir.make(work)
            except BaseException as e:
                errors.append(e)

        threads = [threading.Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        identity.must_be_here(work, "cache", "xml")


@pytest.mark.slow
@pytest.mark.parametrize("what", ["before", "after"])
def test_killed_at_any_call_while_it_is_made_the_next_run_goes_on(tmp_path, what):
    """Each call of the making that changes a file, one after the other."""
    for n in range(1, 60):
        work = tmp_path / f"{what}{n}" / "above" / "w"
        fault = f"{what} * {tmp_path}/{what}{n}* {n}"
        done = faulty.struck("with-lock", "--create", "--work", work, "true", fault=fault)
        again = script("with-lock", "--create", "--work", work, "true")
        assert again.returncode == 0, (n, again.stderr)
        identity.must_be_here(work, "cache", "xml")
        assert not list(work.rglob(".tmp-*"))
        if done.returncode == 0:
            break
    assert n > 10


def test_the_folders_above_a_new_work_directory_are_synced(tmp_path):
    work, trace = tmp_path / "a" / "b" / "w", tmp_path / "trace"
    faulty.struck("with-lock", "--create", "--work", work, "true", trace=trace)
    done = [line.split(" ") for line in trace.read_text().splitlines()]
    for made in (tmp_path / "a", tmp_path / "a" / "b", work, work / "cache", work / "xml"):
        at = done.index(["mkdir", str(made)])
        assert ["fsync", str(made.parent)] in done[at:]


# Work directories of older versions

def test_an_old_one_is_taken_over_and_all_in_it_stays(work):
    put_shard(work, {0: 2})
    downloaded(work, 1, log(1))
    old(work)
    before = tree(work)
    assert identity.read(work) is None
    for name in ("verify-xml", "verify-shards", "manifest-status"):
        assert script(name, "--work", work).returncode == 0
    assert tree(work).keys() - {".seen"} == before.keys()  # a check changes nothing
    workdir.make(work)
    after = tree(work)
    assert {name: after[name] for name in before} == before
    identity.must_be_here(work, "cache", "xml")


@pytest.mark.parametrize("folder", ["cache", "xml"])
def test_an_old_one_whose_folder_is_not_mounted_is_not_taken_over(work, tmp_path, folder):
    put_shard(work, {0: 2})
    downloaded(work, 1, log(1))
    old(work)
    os.rename(os.path.join(work, folder), tmp_path / "away")
    os.mkdir(os.path.join(work, folder))
    for name in ("encode-batch", "adopt-xml", "rebuild-index"):
        done = script(name, "--work", work)
        assert done.returncode == 1 and f"{work}/{folder} is not mounted" in done.stderr
    assert os.listdir(os.path.join(work, folder)) == [] and identity.read(work) is None
    os.rmdir(os.path.join(work, folder))
    os.rename(tmp_path / "away", os.path.join(work, folder))
    workdir.make(work)
    assert identity.read(work) and len(Manifest(work).latest) == 2 and game(1) in Manifest(work).latest


def test_an_old_one_whose_encoded_games_have_no_log_any_more_is_taken_over(work):
    put_shard(work, {0: 2})
    os.unlink(workdir.xml(work, game(0)))
    old(work)
    workdir.make(work)
    assert identity.read(work)
