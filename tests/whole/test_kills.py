"""Every writer killed at chosen points and at random moments: the next run ends with the rows of an undisturbed one."""

import os
import random
import signal
import subprocess
import sys
import time

import faulty
import pytest
from flows import ROOT, environment, make, script, stand_in, start_make

pytestmark = pytest.mark.slow

HALF, UNSYNCED, SYNCED = (f"{how} */manifest.jsonl" for how in ("half write", "before fsync", "after fsync"))
XML_ASIDE, XML_RENAMED = "before rename */xml/2*.txt", "after rename */xml/2*.txt"
SHARD_HALF, SHARD_ASIDE = "before fsync */cache/.tmp-*.npy", "before rename */cache/shard_*"
SHARD_RENAMED = "after rename */cache/shard_*"
INDEX_ASIDE, INDEX_RENAMED = "before rename */index.json", "after rename */index.json"
EVENT = "before write */manifest.jsonl"

POINTS = [  # (writer, fault, at which of the calls)
    *(("adopt-xml", fault, n) for fault, n in ((HALF, 1), (UNSYNCED, 2), (SYNCED, 3), (EVENT, 4))),
    *(("import-logs", fault, n) for fault, n in (
        ("before fsync */xml/.tmp-*", 2), (XML_ASIDE, 1), ("before rename */trash/2*", 1),
        ("after rename */trash/2*", 1),
        (XML_RENAMED, 1), (XML_RENAMED, 2), (XML_RENAMED, 4), (EVENT, 1), (HALF, 1), (UNSYNCED, 1), (SYNCED, 1))),
    ("adopt-xml", "before rename */trash/2*", 1), ("adopt-xml", "after rename */trash/2*", 1),
    *(("encode-batch", fault, n) for fault, n in (
        (SHARD_HALF, 3), ("before fsync *-meta.json", 2), (SHARD_ASIDE, 1), (SHARD_RENAMED, 2), (EVENT, 3), (HALF, 1),
        (UNSYNCED, 2), (SYNCED, 4))),
    ("encode-batch --layout parquet", HALF, 2),  # two games in one write
    ("encode-batch --layout parquet", "before fsync */rows.parquet", 1),
    ("verify-xml --repair", "after rename */trash/2*", 1), ("verify-xml --repair", HALF, 2),
    ("rebuild-index", INDEX_ASIDE, 1), ("rebuild-index", INDEX_RENAMED, 1),
    *(("compact-shards", fault, n) for fault, n in (
        (HALF, 1), (SHARD_ASIDE, 1), (SHARD_RENAMED, 1), (EVENT, 2), (HALF, 2), (SYNCED, 2), (INDEX_ASIDE, 1),
        ("after rename */cache/.tmp-*-shard_*", 2), ("after unlink *.npy", 3))),
    ("recover-manifest", "before fsync */.tmp-*", 1), ("recover-manifest", "after rename */manifest.jsonl.2*", 1),
    ("recover-manifest", "before rename */manifest.jsonl", 1), ("recover-manifest", "after rename */manifest.jsonl", 1),
]  # fmt: skip


@pytest.mark.parametrize(("writer", "fault", "n"), POINTS)
def test_killed_at_a_chosen_point_nothing_is_lost_and_nothing_wrong(tmp_path, ready, logs, right, writer, fault, n):
    work = faulty.copy(ready(writer), tmp_path)
    killed = faulty.struck(*faulty.call(writer, work), fault=f"{fault} {n}")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    faulty.assert_nothing_half_done(work, logs, writer != "recover-manifest" and "half" not in fault)
    faulty.assert_durable(work, writer, killed.stdout)
    faulty.ok(*faulty.call(writer, work))
    faulty.finish(work, logs)
    assert faulty.difference(work, right) == (0, 0)
    faulty.assert_clean(work)


def test_killed_while_downloading_nothing_is_lost_and_nothing_left_behind(tmp_path):
    work, calm, n = tmp_path / "w", tmp_path / "calm", 5
    ids = ["--year", 2024, "--output", work / "game_ids_2024.txt"]
    with stand_in(tmp_path, "--games", n, "--duplicates", 1) as (url, _):
        server = {"TENHOU_URL": url, "DELAY": "0"}
        for name, options, fault in (
            ("fetch-index", ["--year", 2024], "before rename */scraw2024.zip 1"),
            ("fetch-index", ["--year", 2024], "after rename */scraw2024.zip 1"),
            ("extract-ids", ids, "before rename */game_ids_2024.txt 1"),
            ("extract-ids", ids, "after rename */game_ids_2024.txt 1"),
            *(("fetch-paipu", [], fault) for fault in (
                f"{XML_ASIDE} 1", f"{XML_RENAMED} 1", f"{EVENT} 1", f"{HALF} 2", f"{UNSYNCED} 1", f"{SYNCED} 1",
                f"{XML_ASIDE} 1")),
        ):
            settings = server | {"PYTHONPATH": str(ROOT / "tests" / "faults"), "TENHOU_FAULT": fault}
            listed = work / "game_ids_2024.txt" if name == "fetch-paipu" else os.devnull
            with open(listed) as stdin:
                killed = script(name, "--work", work, *options, settings=settings, stdin=stdin)
            assert killed.returncode == -signal.SIGKILL, (name, fault, killed.stderr)
            faulty.assert_durable(work, name, killed.stdout)
        for each in (work, calm):
            assert make("run", f"WORK={each}", "YEAR=2024", settings=server).returncode == 0
    assert faulty.difference(work, faulty.rows(calm)) == (0, 0) and len(faulty.rows(work)) == n - 1
    assert (work / "game_ids_2024.txt").read_bytes() == (calm / "game_ids_2024.txt").read_bytes()
    faulty.assert_clean(work)


def test_killed_again_and_again_at_random_moments_until_all_is_done(tmp_path, logs, right):
    """The scripts of a run one after the other, each killed with all its processes while it works."""
    chance, kills, work = random.Random(3), 0, tmp_path / "w"
    faulty.ready_to_adopt(work, logs)
    for name, *options in (["adopt-xml"], ["encode-batch", "--queued", "--shard-rows", 1, "--jobs", 2],
                           ["compact-shards"], ["rebuild-index"], ["recover-manifest"], ["compact-shards"]):
        for _ in range(2):
            command = [sys.executable, ROOT / "bin" / name, "--work", work, *options]
            victim = subprocess.Popen([*map(str, command)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL, env=environment(), start_new_session=True)
            time.sleep(chance.uniform(0.1, 0.35))
            kills += faulty.kill_group(victim)
        faulty.ok(name, "--work", work, *options)
    faulty.finish(work, logs)
    assert kills and faulty.difference(work, right) == (0, 0)
    faulty.assert_clean(work)


def test_make_compact_and_make_recover_can_be_killed_at_any_moment(tmp_path, logs, right):
    kills, work = 0, tmp_path / "w"
    faulty.ready_to_compact(work, logs)
    for after in (0.1, 0.2, 0.3, 0.5, 0.7):  # seconds: somewhere on the way, on a fast machine and on a slow one
        for target in ("compact", "recover"):
            victim = start_make(target, f"WORK={work}")
            time.sleep(after)
            kills += faulty.kill_group(victim)
    for target in ("recover", "run", "compact"):
        assert make(target, f"WORK={work}").returncode == 0
    assert kills and faulty.difference(work, right) == (0, 0)
    faulty.assert_clean(work)


@pytest.mark.parametrize("writer", list(faulty.WRITERS))
def test_a_loss_of_power_finds_on_disk_what_an_event_speaks_of(tmp_path, ready, writer):
    """What is renamed has been synced, its new name is synced before the next event, and so is the event itself."""
    work, trace = faulty.copy(ready(writer), tmp_path), tmp_path / "trace"
    faulty.struck(*faulty.call(writer, work), trace=trace)
    unsynced, unnamed, renames = set(), set(), 0
    for line in trace.read_text().splitlines():
        call, path = line.split(" ", 1)
        if call == "open" and ".tmp-" in path:
            unsynced.add(path)
        elif call == "write" and not path.startswith("pipe:"):  # to a worker
            assert not unnamed
            unsynced.add(path)
        elif call == "fsync":
            unsynced.discard(path)
            unnamed = {name for name in unnamed if os.path.dirname(name) != path}
        elif call == "rename" and ".tmp-" not in os.path.basename(path):
            assert not unsynced
            renames += 1
            unnamed.add(path)
    assert not unsynced and not unnamed
    assert renames or writer in ("adopt-xml", "verify-xml --repair")  # which only append
