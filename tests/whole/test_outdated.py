"""What was made carries its maker: rows of an older encoder are told, counted, selected, kept apart, and made anew."""

import json
import os

import faulty
import pytest
from flows import NOBODY, make, script
from support import ENCODER, edit_meta, game, log, put_shard

from lib.manifest import Manifest
from lib.rows import encoder as real
from lib.shards import compaction, index, reading
from lib.train.reader import Cache, CacheError


@pytest.fixture
def work(tmp_path, ready):
    """Four shards of a game each; the first two were made by an older encoder, one of them by a tree that did not write
    its version into events."""
    work = faulty.copy(ready("rebuild-index"), tmp_path)
    age(work, "shard_00000", with_events=True)
    age(work, "shard_00001", with_events=False)
    faulty.ok("rebuild-index", "--work", work)
    return work


def age(work, name, with_events):
    """Make a shard one of version 0."""
    def change(meta):
        meta["encoder"]["version"] = "0"
        for g in meta["games"]:
            g["encoder"] = "0"
            if not with_events:
                del g["encoder"]

    edit_meta(work, change, name)
    path, lines = work / "manifest.jsonl", []
    for line in path.read_text().splitlines():
        record = json.loads(line)
        if record.get("shard") == name:
            del record["encoder"]
            record |= {"encoder": "0"} if with_events else {}
        lines.append(json.dumps(record) + "\n")
    path.write_text("".join(lines))


def versions(work):
    """gid -> the version of the encoder that made its rows, by its shard's meta.json."""
    found = {}
    for name, record in Manifest(work).latest.items():
        if record["status"] == "encoded":
            meta = reading.read_meta(work, record["shard"])
            entry, = (g for g in meta["games"] if g["gid"] == name)
            found[name] = entry.get("encoder", meta["encoder"]["version"])
    return found


def old_rows(work):
    return sum(len(rows) for name, rows in faulty.rows(work).items() if versions(work)[name] == "0")


def test_events_meta_json_and_index_say_which_version_made_the_rows(tmp_path, ready):
    work = faulty.copy(ready("rebuild-index"), tmp_path)
    faulty.ok("rebuild-index", "--work", work)
    now = real.ENCODER["version"]
    encoded = [r for r in Manifest(work).latest.values() if r["status"] == "encoded"]
    assert len(encoded) == 4 and {r["encoder"] for r in encoded} == {now} == set(versions(work).values())
    assert all("encoder" in g for name in reading.names(work) for g in reading.read_meta(work, name)["games"])
    assert json.loads((work / "cache" / "index.json").read_bytes())["encoders"] == dict.fromkeys(
        reading.names(work), now)


def test_check_and_status_count_the_rows_of_an_older_encoder_and_say_what_makes_them_anew(work):
    n = old_rows(work)
    done = make("check", f"WORK={work}")
    assert done.returncode == 0 and f"outdated rows : {n}\n" in done.stdout and (
        f": make run OUTDATED=1 WORK={work}\n" in done.stdout)
    assert f"outdated rows : {n}\n" in make("status", f"WORK={work}").stdout
    assert json.loads(script("manifest-status", "--work", work, "--json").stdout)["outdated_rows"] == n


def test_only_when_asked_for_they_are_encoded_again_and_then_no_more(work, right):
    before = Manifest(work).latest
    assert make("run", f"WORK={work}", f"TENHOU_URL={NOBODY}").returncode == 0
    assert Manifest(work).latest == before
    done = make("run", f"WORK={work}", "OUTDATED=1", f"TENHOU_URL={NOBODY}")
    assert done.returncode == 0 and "2 encoded, 0 failed" in done.stderr, done.stderr
    assert set(versions(work).values()) == {real.ENCODER["version"]}
    assert faulty.difference(work, right) == (0, 0)
    done = make("run", f"WORK={work}", "OUTDATED=1", f"TENHOU_URL={NOBODY}")
    assert "encode-batch: nothing to do" in done.stderr
    assert "outdated rows" not in make("check", f"WORK={work}").stdout


def test_rows_whose_log_is_gone_stay_though_they_are_outdated(work, right):
    (work / "xml" / f"{faulty.game(0)}.txt").unlink()
    done = make("run", f"WORK={work}", "OUTDATED=1", f"TENHOU_URL={NOBODY}")
    assert done.returncode == 0 and "1 encoded, 0 failed, 0 corrupt" in done.stderr, done.stderr
    assert versions(work)[faulty.game(0)] == "0" and faulty.difference(work, right) == (0, 0)


def test_rows_stay_if_the_new_encoder_refuses_the_game(work):
    path = work / "xml" / f"{faulty.game(0)}.txt"
    data = path.read_bytes().replace(b"owari", b"iraow")
    path.write_bytes(data)
    record = Manifest(work).latest[faulty.game(0)]
    Manifest(work).append([{**record, "sha256": faulty.hashlib.sha256(data).hexdigest()}])
    edit_meta(work, lambda meta: meta["games"][0].update(sha256=faulty.hashlib.sha256(data).hexdigest()))
    before = json.loads((work / "cache" / "index.json").read_bytes())["total_rows"]
    make("run", f"WORK={work}", "OUTDATED=1", f"TENHOU_URL={NOBODY}")
    assert Manifest(work).latest[faulty.game(0)]["status"] == "failed"
    assert json.loads((work / "cache" / "index.json").read_bytes())["total_rows"] == before


def test_what_a_newer_encoder_made_is_not_made_older(tmp_path, ready):
    work = faulty.copy(ready("rebuild-index"), tmp_path)
    path = work / "manifest.jsonl"
    path.write_text(path.read_text().replace(f'"encoder": "{real.ENCODER["version"]}"', '"encoder": "99"'))
    for name in reading.names(work):
        edit_meta(work, lambda meta: [g.update(encoder="99") for g in meta["games"]], name)
    done = faulty.ok("encode-batch", "--work", work, "--queued", "--outdated")
    assert "nothing to do" in done.stderr and "outdated" not in script("verify-shards", "--work", work).stderr


def test_compaction_keeps_versions_apart(work, right):
    kept = versions(work)
    faulty.ok("compact-shards", "--work", work, "--shard-rows", 100_000)
    assert len(reading.names(work)) == 2 and versions(work) == kept
    for name in reading.names(work):
        meta = reading.read_meta(work, name)
        assert {g.get("encoder") for g in meta["games"]} == {meta["encoder"]["version"]}
    assert faulty.difference(work, right) == (0, 0)


def test_shards_of_which_one_has_rows_of_several_versions_are_not_merged(work):
    edit_meta(work, lambda meta: meta.update(encoder={"name": "several", "version": "", "encoders": []}))
    with pytest.raises(compaction.Problem, match="several encoder versions"):
        compaction.merge(work, Manifest(work), ["shard_00000", "shard_00001"])
    assert len(reading.names(work)) == 4


def test_a_reader_is_told_the_versions_and_may_ask_for_one(work):
    cache, now, n = Cache(work / "cache"), real.ENCODER["version"], old_rows(work)
    assert cache.encoders == {"0": n, now: len(cache) - n}
    old, new = Cache(work / "cache", encoder="0"), Cache(work / "cache", encoder=now)
    assert (len(old), len(new)) == (n, len(cache) - n) and old.encoders == cache.encoders
    assert {*old.games()["gid"]} | {*new.games()["gid"]} == {*cache.games()["gid"]}
    assert {*old.games()["gid"]} == {name for name, version in versions(work).items() if version == "0"}
    assert sum(len(rows["labels"]) for rows in old.batches(50, seed=1)) == n
    with pytest.raises(CacheError, match="no rows of encoder version '7'"):
        Cache(work / "cache", encoder="7")


def test_an_index_without_versions_is_read_and_is_no_fault(work):
    path = work / "cache" / "index.json"
    found = json.loads(path.read_bytes())
    del found["encoders"]
    path.write_text(json.dumps(found))
    assert index.check(work, Manifest(work).latest) is None
    assert list(Cache(work / "cache").encoders) == [None]


def test_an_index_that_tells_another_version_than_the_shard_is_found(work):
    path = work / "cache" / "index.json"
    found = json.loads(path.read_bytes())
    found["encoders"]["shard_00000"] = "5"
    path.write_text(json.dumps(found))
    assert "an encoder version of shard_00000 that differs" in index.check(work, Manifest(work).latest)


def test_a_claim_that_is_renewed_is_not_one_that_is_to_be_made_anew(work, logs):
    """OUTDATED=1 encodes the log that has come back, though there are rows of it."""
    gid = faulty.game(0)
    record = Manifest(work).latest[gid]
    claim = {key: record[key] for key in ("shard", "start", "n_samples", "sha256", "encoder")}
    event = {"gid": gid, "status": "downloaded", "sha256": record["sha256"], "size": len(logs[gid]), "claim": claim}
    Manifest(work).append([event])
    done = faulty.ok("encode-batch", "--work", work, "--queued", "--outdated", "--jobs", 1)
    assert "2 encoded" in done.stderr and versions(work)[gid] == real.ENCODER["version"]


def test_rows_of_a_version_that_is_not_known_count_as_old(tmp_path):
    work = os.fspath(tmp_path)
    os.makedirs(work + "/cache")
    os.makedirs(work + "/xml")
    put_shard(work, {0: 2})
    edit_meta(work, lambda meta: (meta.update(encoder={"name": "several", "version": "", "encoders": []}),
                                  meta["games"][0].pop("encoder")))
    assert index.build(work, Manifest(work).latest)[0]["encoders"] == {"shard_00000": None}
    from lib.shards import verify
    found, = verify.check(work, reading.names(work), Manifest(work), encoder=ENCODER)
    assert found.outdated == 2 and found.kind == "ok" and log(0, 2) and game(0)
