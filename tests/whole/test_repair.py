"""Repair takes nothing away: files go to the trash, rows stay until others take their place, copies are let finish."""

import hashlib
import json
import os
import re
import shutil

import faulty
import pytest
from flows import NOBODY, make, script, stand_in
from support import game, log, put, sha

from lib.logs import adopt as logs_adopt
from lib.manifest import Manifest

G = faulty.game(1)


def rot(work, name=G):
    """Turn a bit of a log around."""
    path = work / "xml" / f"{name}.txt"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    return bytes(data)


def trash(work):
    """All that is in the trash, as bytes."""
    return [path.read_bytes() for path in (work / "trash").iterdir()] if (work / "trash").exists() else []


def rows_of_index(work):
    return json.loads((work / "cache" / "index.json").read_bytes())["total_rows"]


@pytest.fixture
def work(tmp_path, ready):
    """Four games encoded, all logs there."""
    work = faulty.copy(ready("rebuild-index"), tmp_path)
    faulty.ok("rebuild-index", "--work", work)
    shutil.rmtree(work / "trash")  # a duplicate
    return work


def test_a_rotten_log_of_an_encoded_game_goes_to_the_trash_and_its_rows_stay(work, right):
    before, rotten, claim = rows_of_index(work), rot(work), Manifest(work).latest[G]
    assert make("check", f"WORK={work}").returncode == 2
    done = make("check", f"WORK={work}", "REPAIR=1")
    assert done.returncode == 0, done.stderr
    assert trash(work) == [rotten] and not (work / "xml" / f"{G}.txt").exists()
    record = Manifest(work).latest[G]
    assert record["status"] == "corrupt"
    assert {key: record["claim"][key] for key in ("shard", "start", "n_samples", "sha256")} == {
        key: claim[key] for key in ("shard", "start", "n_samples", "sha256")}
    faulty.ok("rebuild-index", "--work", work)
    assert rows_of_index(work) == before and script("manifest-status", "--work", work).stdout.endswith(
        f"\nrows : {before}\nrows kept from corrupt or failed games : {claim['n_samples']} (1 game)\n")
    assert make("check", f"WORK={work}").returncode == 0


def test_rows_that_are_damaged_as_well_as_their_log_do_not_stay_if_the_user_does_what_the_check_says(tmp_path, work):
    before, claim = rows_of_index(work), Manifest(work).latest[G]
    rot(work)
    labels = work / "cache" / claim["shard"] / "labels.npy"
    data = bytearray(labels.read_bytes())
    data[-1] ^= 1
    labels.write_bytes(data)
    with stand_in(tmp_path, "--games", 1) as (url, _):  # which has none of these logs
        server = f"TENHOU_URL={url}", "DELAY=0"
        for _ in range(4):
            done = make("check", f"WORK={work}", "DEEP=1", *server)
            advice = re.findall(r": make (.*)$", done.stdout, re.M)
            if done.returncode == 0:
                break
            for words in advice:
                make(*words.split(), *server)
    assert done.returncode == 0 and Manifest(work).latest[G]["status"] in ("corrupt", "failed"), done.stdout
    assert rows_of_index(work) == before - claim["n_samples"]


def test_compaction_takes_the_rows_of_a_game_along_that_waits_for_its_log(work):
    before = rows_of_index(work)
    rot(work)
    make("check", f"WORK={work}", "REPAIR=1")
    faulty.ok("compact-shards", "--work", work, "--shard-rows", 100_000)
    faulty.ok("rebuild-index", "--work", work)
    record = Manifest(work).latest[G]
    assert record["status"] == "corrupt" and record["claim"]["shard"] == "shard_00004"
    assert rows_of_index(work) == before and make("check", f"WORK={work}").returncode == 0


def test_the_same_bytes_fetched_again_renew_the_claim_without_encoding(tmp_path, work, logs):
    (names := os.listdir(work / "cache")).sort()
    rot(work)
    make("check", f"WORK={work}", "REPAIR=1")
    with served(tmp_path, {G: logs[G]}) as url:
        done = make("run", f"WORK={work}", f"TENHOU_URL={url}", "DELAY=0")
    assert done.returncode == 0 and "1 downloaded" in done.stderr, done.stderr
    assert "0 encoded" in done.stderr and "1 renewed" in done.stderr
    assert sorted(os.listdir(work / "cache")) == names and Manifest(work).latest[G]["status"] == "encoded"
    faulty.assert_clean(work)


def test_other_bytes_fetched_take_the_place_of_the_rows_only_once_they_are_encoded(tmp_path, work, logs):
    before = rows_of_index(work)
    rot(work)
    make("check", f"WORK={work}", "REPAIR=1")
    with served(tmp_path, {G: logs[G] + b"\n"}) as url:
        faulty.ok("fetch-paipu", "--work", work, "--queued", TENHOU_URL=url, DELAY="0")
    faulty.ok("rebuild-index", "--work", work)
    assert rows_of_index(work) == before and Manifest(work).latest[G]["status"] == "downloaded"
    faulty.ok("encode-batch", "--work", work, "--queued", "--jobs", 1)
    faulty.ok("rebuild-index", "--work", work)
    record = Manifest(work).latest[G]
    assert record["shard"] == "shard_00004" and record["sha256"] == hashlib.sha256(logs[G] + b"\n").hexdigest()
    assert rows_of_index(work) == before


@pytest.mark.parametrize("bytes_of", ["nothing", "no log"])
def test_rows_stay_if_the_server_has_the_log_no_more_or_another_that_is_none(tmp_path, work, logs, bytes_of):
    before = rows_of_index(work)
    rot(work)
    make("check", f"WORK={work}", "REPAIR=1")
    with served(tmp_path, {} if bytes_of == "nothing" else {G: logs[G].replace(b"owari", b"iraow")}) as url:
        faulty.ok("fetch-paipu", "--work", work, "--queued", TENHOU_URL=url, DELAY="0")
    faulty.ok("encode-batch", "--work", work, "--queued", "--jobs", 1)
    faulty.ok("rebuild-index", "--work", work)
    assert Manifest(work).latest[G]["status"] == "failed" and rows_of_index(work) == before


def served(tmp_path, found):
    """A server that has these logs and no others."""
    import contextlib
    import http.server
    import threading

    from flows import forget

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            data = found.get(self.path.rpartition("?")[2])
            self.send_response(200 if data else 404)
            self.send_header("Content-Length", str(len(data or b"")))
            self.end_headers()
            self.wfile.write(data or b"")

        def log_message(self, *args):
            pass

    @contextlib.contextmanager
    def serve():
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield url
        finally:
            server.shutdown()
            forget(url)

    return serve()


def test_a_log_that_a_download_replaces_goes_to_the_trash(tmp_path, work, logs):
    rotten = rot(work)
    Manifest(work).append([{"gid": G, "status": "corrupt"}])
    with served(tmp_path, {G: logs[G]}) as url:
        faulty.ok("fetch-paipu", "--work", work, G, TENHOU_URL=url, DELAY="0")
    assert trash(work) == [rotten] and (work / "xml" / f"{G}.txt").read_bytes() == logs[G]


def test_a_copy_that_a_download_finds_to_be_a_duplicate_s_goes_to_the_trash(tmp_path, work, logs):
    put(str(work), 77, b"<mjloggm damaged")
    Manifest(work).append([{"gid": game(77), "status": "corrupt"}])
    with served(tmp_path, {game(77): logs[G]}) as url:
        faulty.ok("fetch-paipu", "--work", work, game(77), TENHOU_URL=url, DELAY="0")
    assert Manifest(work).latest[game(77)]["status"] == "duplicate" and trash(work) == [b"<mjloggm damaged"]


def test_a_user_s_own_copy_of_a_log_goes_to_the_trash_and_is_not_deleted(tmp_path, logs):
    work = tmp_path / "w"
    faulty.put(work, {**logs, faulty.game(7): logs[G]})
    faulty.ok("adopt-xml", "--work", work)
    assert trash(work) == [logs[G]] and not (work / "xml" / f"{faulty.game(7)}.txt").exists()


def test_two_files_of_one_name_have_both_room_in_the_trash(work):
    first = rot(work)
    make("check", f"WORK={work}", "REPAIR=1")
    second = first + b" again"
    (work / "xml" / f"{G}.txt").write_bytes(second)
    Manifest(work).append([{"gid": G, "status": "downloaded", "sha256": "0" * 64}])
    make("check", f"WORK={work}", "REPAIR=1")
    assert sorted(trash(work)) == sorted([first, second])


def test_purge_empties_the_trash_and_status_tells_its_size(work):
    rot(work)
    make("check", f"WORK={work}", "REPAIR=1")
    assert "trash " in make("status", f"WORK={work}").stdout
    assert json.loads(script("manifest-status", "--work", work, "--json").stdout)["disk"]["trash"] > 0
    faulty.ok("empty-trash", "--work", work, "--all")
    assert trash(work) == [] and make("check", f"WORK={work}").returncode == 0
    assert make("purge", f"WORK={work}").returncode == 0


def test_purge_keeps_a_log_that_is_the_only_copy_of_its_game_until_asked_in_so_many_words(tmp_path, work, logs):
    rotten = rot(work)
    make("check", f"WORK={work}", "REPAIR=1")
    (work / "trash" / "other").write_bytes(b"x")
    done = make("purge", f"WORK={work}")
    assert done.returncode == 0 and trash(work) == [rotten] and "1 file deleted" in done.stderr
    advice = "1 log kept, because xml/ has no other log of its game; to delete it too: "
    assert done.stderr.endswith(f"{advice}bin/empty-trash --all --work {work}\n")
    (work / "xml" / f"{G}.txt").write_bytes(logs[G])  # the game has a log again
    assert "kept" not in make("purge", f"WORK={work}").stderr and trash(work) == []
    faulty.ok("adopt-xml", "--work", work)
    rot(work)
    make("check", f"WORK={work}", "REPAIR=1")
    assert len(trash(work)) == 1
    faulty.ok("empty-trash", "--work", work, "--all")
    assert trash(work) == []


def test_purge_keeps_the_log_of_a_duplicate_only_if_the_other_one_is_gone(tmp_path, logs):
    work = tmp_path / "w"
    faulty.put(work, {**logs, faulty.game(7): logs[G]})
    faulty.ok("adopt-xml", "--work", work)
    kept = work / "trash" / f"{faulty.game(7)}.txt"
    copy = kept.read_bytes()
    faulty.ok("empty-trash", "--work", work)
    assert not kept.exists()
    kept.parent.mkdir()
    kept.write_bytes(copy)
    (work / "xml" / f"{G}.txt").unlink()
    faulty.ok("empty-trash", "--work", work)
    assert kept.read_bytes() == copy


def test_nothing_is_purged_while_xml_is_not_mounted(work):
    rot(work)
    make("check", f"WORK={work}", "REPAIR=1")
    (work / "xml").rename(work / "elsewhere")
    (work / "xml").mkdir()
    assert script("empty-trash", "--work", work).returncode == 1 and len(trash(work)) == 1


def test_purge_leads_nowhere_else(work, tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "x").write_bytes(b"x")
    (work / "trash").symlink_to(tmp_path / "precious")
    make("purge", f"WORK={work}")
    assert (tmp_path / "precious" / "x").exists()


# Logs that are still being copied

WHOLE = log(1)
HALF = WHOLE[:30]


def adopt(work, n=1):
    return logs_adopt.take_in(work, Manifest(work), game(n))


@pytest.mark.parametrize("half", [HALF, b"", HALF + bytes(len(WHOLE) - 30)], ids=["half", "nothing", "room made"])
def test_a_log_adopted_while_it_was_being_copied_ends_encoded_by_itself_once_it_is_whole(tmp_path, logs, half):
    work, data = tmp_path / "w", logs[G]
    half = data[:len(half)] if half != HALF + bytes(len(WHOLE) - 30) else data[:300] + bytes(len(data) - 300)
    faulty.put(work, {G: half})
    faulty.ok("adopt-xml", "--work", work)
    (work / "xml" / f"{G}.txt").write_bytes(data)
    assert script("verify-xml", "--work", work).returncode == 0
    assert make("run", f"WORK={work}", f"TENHOU_URL={NOBODY}").returncode == 0
    assert Manifest(work).latest[G]["status"] == "encoded"
    faulty.assert_clean(work)


def test_a_log_that_becomes_whole_between_adopting_and_encoding_is_encoded_by_the_same_run(tmp_path, logs):
    work, data = tmp_path / "w", logs[G]
    faulty.put(work, {G: data[:1000]})
    faulty.ok("adopt-xml", "--work", work)
    (work / "xml" / f"{G}.txt").write_bytes(data)
    done = faulty.ok("encode-batch", "--work", work, "--queued", "--jobs", 1)
    assert done.stdout.split() == [G] and Manifest(work).latest[G]["status"] == "encoded"


def test_a_half_log_in_whose_place_another_game_s_log_is_put_is_told_as_a_duplicate(tmp_path, logs):
    work, other = tmp_path / "w", faulty.game(0)
    faulty.put(work, {G: logs[other][:1000], other: logs[other]})
    faulty.ok("adopt-xml", "--work", work)
    faulty.put(work, {G: logs[other]})
    done = faulty.ok("encode-batch", "--work", work, "--queued", "--jobs", 1)
    assert f"{G} has the very same log as {other}" in done.stderr and "copied" not in done.stderr
    assert Manifest(work).latest[G]["status"] == "duplicate" and trash(work) == [logs[other]]


def test_a_log_that_is_still_growing_is_left_as_it_is(tmp_path, logs):
    work, data = tmp_path / "w", logs[G]
    faulty.put(work, {G: data[:1000]})
    faulty.ok("adopt-xml", "--work", work)
    (work / "xml" / f"{G}.txt").write_bytes(data[:2000])
    faulty.ok("encode-batch", "--work", work, "--queued", "--jobs", 1)
    assert Manifest(work).latest[G]["status"] == "downloaded"
    (work / "xml" / f"{G}.txt").write_bytes(data)
    assert make("run", f"WORK={work}", f"TENHOU_URL={NOBODY}").returncode == 0
    assert Manifest(work).latest[G]["status"] == "encoded"


def test_a_log_that_an_older_version_took_for_corrupt_while_it_was_copied_is_taken_in(tmp_path, logs):
    work, data = tmp_path / "w", logs[G]
    faulty.put(work, {G: data})
    Manifest(work).append([
        {"gid": G, "status": "downloaded", "sha256": sha(data[:1000]), "size": 1000},
        {"gid": G, "status": "corrupt", "found": sha(data)}])
    assert make("run", f"WORK={work}", f"TENHOU_URL={NOBODY}").returncode == 0
    assert Manifest(work).latest[G]["status"] == "encoded"


def test_a_rotten_log_is_still_told_and_left(tmp_path, logs):
    work = tmp_path / "w"
    faulty.put(work, {G: logs[G]})
    faulty.ok("adopt-xml", "--work", work)
    rotten = rot(work)
    done = script("verify-xml", "--work", work)
    assert done.returncode == 1 and done.stdout == f"corrupt\t{G}\n"
    done = make("run", f"WORK={work}", f"TENHOU_URL={NOBODY}", "MAX_REFUSALS=1")
    assert "corrupt" in done.stdout + done.stderr and Manifest(work).latest[G]["status"] != "encoded"
    assert (work / "xml" / f"{G}.txt").read_bytes() == rotten
