"""Hashing many files: each exactly once, only where needed, the longest unchecked first."""

import hashlib
import os
import time

import pytest
from flows import script

from lib.logs import hashes, last_check
from lib.manifest import Manifest
from lib.store import workdir


def fill(work, n):
    """n small files on record, all older than a moment; returns gid -> sha256."""
    workdir.make(work)
    found = {}
    for i in range(n):
        game, data = f"2024010100gm-00a9-0000-{i:08x}", b"log %d" % i
        (work / "xml" / f"{game}.txt").write_bytes(data)
        os.utime(work / "xml" / f"{game}.txt", (1e9, 1e9))
        found[game] = hashlib.sha256(data).hexdigest()
    Manifest(work).append([{"gid": game, "status": "downloaded", "sha256": sha256, "size": 4 + len(str(i))}
                           for i, (game, sha256) in enumerate(found.items())])
    return found


@pytest.mark.parametrize("n", [0, 1, 255, 256, 257, 1030])
@pytest.mark.parametrize("jobs", [1, 3])
def test_each_file_is_hashed_exactly_once(tmp_path, n, jobs):
    found = fill(tmp_path, n)
    results = list(hashes.hash_files(tmp_path, [(game, None) for game in found], jobs))
    assert {game: sha256 for game, sha256, _ in results} == found and len(results) == n


def test_a_file_of_another_size_is_corrupt_without_being_hashed(tmp_path):
    (game, sha256), = fill(tmp_path, 1).items()
    assert [r[1] for r in hashes.hash_files(tmp_path, [(game, 99)], 1)] == [""]
    assert [r[1] for r in hashes.hash_files(tmp_path, [(game, 5)], 1)] == [sha256]


def test_trust_skips_what_looks_as_it_did_and_only_that(tmp_path):
    found = fill(tmp_path, 3)
    assert script("verify-xml", "--work", tmp_path).returncode == 0
    a, b, c = (tmp_path / "xml" / f"{game}.txt" for game in found)
    a.write_bytes(b"LOG 0")
    os.utime(a, (1e9, 1e9))  # same size, same time, same inode: what trust cannot see, and check can
    b.write_bytes(b"LOG 1")
    os.utime(b, (1e9 + 1, 1e9 + 1))
    c.rename(c.with_suffix(".old"))
    c.write_bytes(b"LOG 2")
    os.utime(c, (1e9, 1e9))  # another inode
    trusting = script("verify-xml", "--work", tmp_path, "--trust")
    assert trusting.stdout.count("corrupt\t") == 2 and a.stem not in trusting.stdout
    assert script("verify-xml", "--work", tmp_path).stdout.count("corrupt\t") == 3
    (tmp_path / ".seen").write_text("nonsense")
    assert script("verify-xml", "--work", tmp_path, "--trust").stdout.count("corrupt\t") == 3


def test_a_file_changed_just_before_it_was_hashed_is_not_trusted(tmp_path):
    (game, sha256), = fill(tmp_path, 1).items()
    seen, path = last_check.LastChecks(tmp_path), tmp_path / "xml" / f"{game}.txt"
    os.utime(path)
    seen.put(game, sha256, last_check.stamp(os.stat(path)))
    assert not seen.is_sound(game, sha256, last_check.stamp(os.stat(path)))


def test_samples_go_round(tmp_path):
    found = fill(tmp_path, 6)
    checked = set()
    for _ in range(3):
        done = script("verify-xml", "--work", tmp_path, "--sample", 2)
        assert "xmls (ok) : 2" in done.stderr
        seen = last_check.LastChecks(tmp_path).entries
        assert len(set(seen) - checked) == 2
        checked = set(seen)
        time.sleep(1.1)  # the times are whole seconds
    assert checked == set(found)


def test_a_check_that_runs_out_of_time_says_so(tmp_path):
    fill(tmp_path, 600)
    done = script("verify-xml", "--work", tmp_path, "--max-seconds", "0")
    assert done.returncode == 0 and "stopped after 0 s; the next check begins with" in done.stderr
