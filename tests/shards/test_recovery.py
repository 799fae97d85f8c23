"""Recovery: a manifest that knows every row of every sound shard, from one that is lost, torn or full of garbage."""

import os

import pytest
from support import broken, downloaded, edit_meta, event, findings, game, log, put_shard, sha

from lib.manifest import Manifest
from lib.shards import compaction, reading, recovery
from lib.store import workdir
from lib.store.errors import Problem


def manifest_path(work):
    return os.path.join(work, workdir.MANIFEST)


def test_lines_that_are_no_records_are_gone_afterwards_and_all_others_are_kept(work):
    downloaded(work, 1, log(1))
    with open(manifest_path(work), "ab") as f:
        f.write(b'garbage\n\xff\xfe\n{}\n{"gid": "../../x"}\n{"gid": "%s", "status": []}\n' % game(1).encode())
    event(work, 2, status="of next year", more=[1])
    before = Manifest(work)
    after, kept = recovery.recover(work)
    assert len(before.bad) == 5 and after.bad == [] and after.latest == before.latest
    with open(kept, "rb") as f:
        assert f.read().count(b"\n") == 7


def test_a_lost_manifest_comes_back_from_the_shards(work):
    put_shard(work, {1: 2, 2: 3})
    put_shard(work, {2: 3, 3: 1})
    before = Manifest(work).latest
    os.unlink(manifest_path(work))
    after, kept = recovery.recover(work)
    assert kept is None and set(after.latest) == set(before)
    for name, record in before.items():
        assert {k: record[k] for k in ("shard", "start", "n_samples", "sha256")}.items() <= after.latest[name].items()
    assert findings(work)[0] == {"shard_00000": ("ok", 3), "shard_00001": ("ok", 0)}


def test_a_game_whose_last_record_is_of_a_shard_that_compaction_removed_gets_its_rows_back(work):
    put_shard(work, {1: 2})
    put_shard(work, {2: 3})
    size = os.path.getsize(manifest_path(work))
    handle = Manifest(work)
    compaction.merge(work, handle, reading.names(work))
    compaction.remove(work, handle, ["shard_00000", "shard_00001"])
    os.truncate(manifest_path(work), size)
    after, _ = recovery.recover(work)
    assert {r["shard"] for r in after.latest.values()} == {"shard_00002"}
    assert findings(work)[0] == {"shard_00002": ("ok", 0)} and not broken(work, after)


def test_a_game_that_has_other_bytes_by_now_keeps_its_record(work):
    put_shard(work, {1: 2})
    os.truncate(manifest_path(work), 0)
    downloaded(work, 1, log(1, 5))
    after, _ = recovery.recover(work)
    assert after.latest[game(1)]["status"] == "downloaded" and after.latest[game(1)]["sha256"] == sha(log(1, 5))


def test_recovering_what_is_whole_changes_no_record(work):
    put_shard(work, {1: 2})
    downloaded(work, 2, log(2))
    before = Manifest(work).latest
    assert recovery.recover(work)[0].latest == before


def test_the_manifest_keeps_its_mode_and_its_group_and_so_does_the_old_one(work):
    downloaded(work, 1, log(1))
    path = manifest_path(work)
    os.chmod(path, 0o640)
    if os.geteuid() == 0:
        os.chown(path, 12345, 12346)
    before = os.stat(path)
    _, kept = recovery.recover(work)
    for there in (path, kept):
        info = os.stat(there)
        assert (info.st_mode, info.st_uid, info.st_gid) == (before.st_mode, before.st_uid, before.st_gid)


def test_nothing_is_recovered_while_a_shard_cannot_be_read(work, monkeypatch):
    put_shard(work, {1: 2})
    with open(manifest_path(work), "rb") as f:
        before = f.read()
    edit_meta(work, lambda meta: meta.update(schema_version=9))
    with pytest.raises(Problem, match="shard_00000"):
        recovery.recover(work)
    with open(manifest_path(work), "rb") as f:
        assert f.read() == before
