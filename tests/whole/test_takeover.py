"""A work directory as the tree made it before there were identities, encoder versions and kept claims: all is taken
over, nothing is lost, nothing is encoded again."""

import hashlib
import json

import faulty
import numpy as np
import pytest
from flows import NOBODY, make, script

from lib.manifest import Manifest
from lib.rows import encoder, schema
from lib.shards import reading

WHEN = "2024-05-01T12:00:00Z"


def write_old_shard(work, name, games, logs, version="1"):
    """A dense shard, its meta.json and its events as they were written then."""
    shard, entries, arrays, start, digests = work / "cache" / name, [], [], 0, {}
    shard.mkdir(parents=True)
    for number, gid in enumerate(games):
        rows = encoder.encode_game(logs[gid])
        rows["origin"]["game"] = number
        arrays.append(rows)
        n = len(rows["labels"])
        entries.append({"gid": gid, "sha256": hashlib.sha256(logs[gid]).hexdigest(), "start": start, "n_rows": n})
        start += n
    for array in schema.ARRAYS:
        data = np.concatenate([rows[array] for rows in arrays])
        np.save(shard / f"{array}.npy", data)
        digests[array] = hashlib.sha256(data.tobytes()).hexdigest()
    (shard / "meta.json").write_text(json.dumps({
        "schema_version": 3, "layout": "dense", "n_rows": start, "max_seq_len": 360,
        "encoder": {"name": "paipu", "version": version}, "sha256": digests, "games": entries}) + "\n")
    return [{"ts": WHEN, "gid": g["gid"], "status": "encoded", "shard": name, "n_samples": g["n_rows"],
             "sha256": g["sha256"], "start": g["start"]} for g in entries]


@pytest.fixture
def work(tmp_path, logs):
    """Two shards; of the games one has no log any more, one is `corrupt` since its log rotted, one waits."""
    work = tmp_path / "w"
    (work / "xml").mkdir(parents=True)
    (work / "raw").mkdir()
    a, b, c, d = sorted(logs)
    events = [{"ts": WHEN, "gid": gid, "status": "downloaded", "sha256": hashlib.sha256(logs[gid]).hexdigest(),
               "size": len(logs[gid])} for gid in (a, b, c, d)]
    events += write_old_shard(work, "shard_00000", [a, b], logs)
    events += write_old_shard(work, "shard_00001", [c], logs)
    events += [{"ts": WHEN, "gid": c, "status": "corrupt"}]
    faulty.put(work, {gid: logs[gid] for gid in (b, d)})
    (work / "manifest.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    spans = {"shard_00000": [[0, events[4]["n_samples"] + events[5]["n_samples"]]]}
    total = spans["shard_00000"][0][1]
    (work / "cache" / "index.json").write_text(json.dumps({
        "schema": schema.DESCRIPTION, "total_rows": total, "row_ranges": spans,
        "shards": [{"path": "shard_00000", "n_rows": total, "cumulative": total}]}) + "\n")
    return work


def test_a_check_finds_nothing_wrong_with_it(work):
    done = make("check", f"WORK={work}")
    assert done.returncode == 0, done.stdout
    assert not (work / "format.json").exists()


def test_a_run_takes_it_over_and_encodes_only_what_waited(work, logs, right):
    done = make("run", f"WORK={work}", f"TENHOU_URL={NOBODY}", "MAX_REFUSALS=9", "DELAY=0")
    assert done.returncode == 0 and "1 encoded, 0 failed, 0 corrupt" in done.stderr, done.stderr
    assert (work / "format.json").exists() and reading.names(str(work)) == ["shard_00000", "shard_00001", "shard_00002"]
    there = faulty.rows(work)
    a, b, c, d = sorted(logs)
    assert there == {gid: right[gid] for gid in (a, b, d)}
    assert Manifest(work).latest[c]["status"] == "failed"  # no server answers


def test_recover_brings_back_the_rows_of_a_game_that_was_taken_for_lost_and_its_log_renews_them(work, logs, right):
    c = sorted(logs)[2]
    assert make("recover", f"WORK={work}").returncode == 0
    record = Manifest(work).latest[c]
    assert record["status"] == "corrupt" and record["claim"]["shard"] == "shard_00001"
    assert {gid: rows for gid, rows in faulty.rows(work).items() if gid == c} == {c: right[c]}
    faulty.put(work, {c: logs[c]})
    done = make("run", f"WORK={work}", f"TENHOU_URL={NOBODY}")
    assert done.returncode == 0 and "1 renewed" in done.stderr
    assert faulty.difference(work, right) == (0, 0)
    faulty.assert_clean(work)


def test_compaction_keeps_the_rows_of_a_game_that_was_taken_for_lost(work):
    assert make("compact", f"WORK={work}").returncode == 0
    assert "shard_00001" not in reading.names(str(work)) and (work / "trash" / "shard_00001" / "meta.json").exists()


def test_rows_of_before_count_as_outdated_once_the_encoder_has_another_version(tmp_path, logs):
    work = tmp_path / "w"
    (work / "xml").mkdir(parents=True)
    a = sorted(logs)[0]
    events = write_old_shard(work, "shard_00000", [a], logs, version="0")
    (work / "manifest.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    faulty.put(work, {a: logs[a]})
    assert "outdated rows : " in script("verify-shards", "--work", work).stderr
    assert make("run", f"WORK={work}", "OUTDATED=1", f"TENHOU_URL={NOBODY}").returncode == 0
    assert Manifest(work).latest[a]["encoder"] == encoder.ENCODER["version"]
