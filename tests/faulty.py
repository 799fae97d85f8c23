"""Helpers of the fault tests: work directories made ready, scripts struck by a fault, caches compared row by row."""

import collections
import contextlib
import errno
import gzip
import hashlib
import json
import os
import re
import shutil
import signal
import zipfile
from pathlib import Path

import pytest
from flows import ROOT, script
from support import encode_here

from lib.demo.selfplay import play
from lib.logs import adopt, logfile
from lib.logs import verify as logs_verify
from lib.manifest import Manifest
from lib.rows import folded, schema
from lib.shards import index, policy, reading
from lib.shards import verify as shards_verify
from lib.shards.batch import Batch
from lib.store import claims, files, workdir

SEEDS = 38, 31, 24, 6  # self-played tonpuu games with some 200 rows each
SHARD_ROWS = 250  # one game a shard
DISK = errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EACCES, errno.EROFS, errno.ENOENT, errno.EPERM, errno.ENOTDIR


def game(n):
    """The n-th game id of the fault tests."""
    return f"202401010{n}gm-00e1-0000-0000000{n}"


def logs():
    """gid -> bytes of a few small games."""
    return {game(n): play(seed, hanchan=False) for n, seed in enumerate(SEEDS)}


def put(work, found):
    """Put logs into xml/."""
    (work / "xml").mkdir(parents=True, exist_ok=True)
    for name, data in found.items():
        (work / "xml" / f"{name}.txt").write_bytes(data)


def struck(name, *args, fault="", trace=None, **settings):
    """Run bin/name under tests/faults; returns the CompletedProcess. settings: environment variables."""
    settings |= {"PYTHONPATH": str(ROOT / "tests" / "faults"), "TENHOU_FAULT": fault} if fault or trace else {}
    settings |= {"TENHOU_TRACE": str(trace)} if trace else {}
    if not fault:
        settings.pop("TENHOU_FAULT", None)
    return script(name, *args, settings=settings, timeout=300)


# What a writer is called with, and how its work directory is made ready: xml/ has the four logs in each.

def ready_to_adopt(work, found):
    """One log twice: the copy becomes a duplicate; and one packed, by a name that it has elsewhere."""
    put(work, {**found, game(7): found[game(0)]})
    (work / "xml" / f"{game(2)}.txt").unlink()
    (work / "xml" / f"{game(2)}&tw=1.mjlog").write_bytes(gzip.compress(found[game(2)]))


def ready_to_import(work, found):
    """The logs in a zip; one is in xml/ already, damaged."""
    put(work, {game(1): found[game(1)][:-20]})
    with zipfile.ZipFile(work / "from.zip", "w", zipfile.ZIP_DEFLATED) as z:
        for name, data in {**found, game(7): found[game(0)]}.items():
            z.writestr(f"logs/{name}.mjlog", gzip.compress(data))


def ready_to_encode(work, found):
    ready_to_adopt(work, found)
    ok("adopt-xml", "--work", work)


def encoded(work, found, layout="dense"):
    ready_to_encode(work, found)
    ok("encode-batch", "--work", work, "--queued", "--shard-rows", SHARD_ROWS, "--layout", layout)


def ready_to_repair(work, found):
    """Encoded, then one file damaged, and one game with its file queued anew."""
    encoded(work, found)
    ok("rebuild-index", "--work", work)
    for n in (1, 2):
        with open(work / "xml" / f"{game(n)}.txt", "ab") as f:
            f.write(b"x")


def ready_to_compact(work, found):
    """Four small shards and an orphan; the first shard has stale rows, the second is in the other layout."""
    encoded(work, found)
    Manifest(work).append([{"gid": game(0), "status": "corrupt"}])
    ok("adopt-xml", "--work", work)
    ok("encode-batch", "--work", work, "--queued", "--layout", "parquet")
    shutil.copytree(work / "cache" / "shard_00001", work / "cache" / "shard_00009")
    ok("rebuild-index", "--work", work)


def ready_to_recover(work, found):
    """Encoded, then every second line of the manifest overwritten."""
    encoded(work, found)
    lines = (work / "manifest.jsonl").read_bytes().splitlines(keepends=True)
    lines[::2] = [b"\xff" * (len(line) - 1) + b"\n" for line in lines[::2]]
    (work / "manifest.jsonl").write_bytes(b"".join(lines))


WRITERS = {
    "adopt-xml": ([], ready_to_adopt),
    "import-logs": ([], ready_to_import),
    "encode-batch": (["--queued", "--shard-rows", SHARD_ROWS, "--jobs", 1], ready_to_encode),
    "encode-batch --layout parquet": (["--queued", "--shard-rows", 2 * SHARD_ROWS, "--jobs", 1], ready_to_encode),
    "verify-xml --repair": (["--repair", "--jobs", 1], ready_to_repair),
    "rebuild-index": ([], encoded),
    "compact-shards": (["--shard-rows", 2 * SHARD_ROWS], ready_to_compact),
    "recover-manifest": ([], ready_to_recover),
    "export-mjai": (["--jobs", 1], encoded),
}


YEAR = "--year", 2024
DOWNLOADERS = "fetch-index", "extract-ids", "fetch-paipu"  # each needs what those before it made


def call(writer, work):
    """The script and the arguments of one of WRITERS or DOWNLOADERS."""
    name, *options = writer.split()
    if name == "fetch-paipu":
        return name, "--work", work, *(work / "game_ids_2024.txt").read_text().split()
    if name == "extract-ids":
        return name, "--work", work, *YEAR, "--output", work / "game_ids_2024.txt"
    options += [work / "from.zip"] if name == "import-logs" else []
    return name, "--work", work, *options, *(WRITERS[writer][0] if writer in WRITERS else YEAR)


def download(work, url, until=None):
    """Call the DOWNLOADERS one after the other, up to `until`, which is not called."""
    work.mkdir(exist_ok=True)
    for name in DOWNLOADERS:
        if name == until:
            return
        ok(*call(name, work), TENHOU_URL=url, DELAY="0")


def copy(ready, directory):
    """A copy of a work directory that was made ready, to be harmed."""
    return Path(shutil.copytree(ready, Path(directory) / "w"))


def kill_group(process):
    """Kill a process and all that it started; returns True if it was still at work."""
    alive = process.poll() is None
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return alive


def ok(name, *args, **settings):
    """Run a script that must end well; returns the CompletedProcess."""
    done = script(name, *args, settings=settings)
    assert done.returncode == 0, (name, args, done.stderr)
    return done


def finish(work, found):
    """What a user does after a fault: put back what is missing, and run it all again. In this process, to be quick."""
    put(work, {name: data for name, data in found.items()
               if not (work / "xml" / f"{name}.txt").exists()})
    workdir.make(work)
    for directory in ("xml", "cache"):
        files.sweep(work / directory)
    manifest = Manifest(work)
    for name, entry in sorted(workdir.xml_files(work), key=lambda pair: pair[1].name):
        adopt.take_in(work, manifest, name) if name else adopt.take_in_renamed(work, manifest, entry.name)
    with pytest.MonkeyPatch.context() as patch:
        encode_here(patch)
        batch = Batch(work, manifest, SHARD_ROWS)
        collections.deque(batch.run(batch.queued()), 0)
    with manifest.locked():
        index.rebuild(work, manifest.latest)


def rows(work):
    """gid -> a digest of each row that the manifest claims for it, straight from the shards; asserts what must always
    hold: a claim's rows are that game's, of the bytes claimed, and no row is claimed twice."""
    manifest, metas, found, taken = Manifest(work), {}, {}, collections.Counter()
    for name, record in manifest.latest.items():
        if not (record := claims.held(record)):
            continue
        shard = record["shard"]
        if shard not in metas:
            metas[shard] = reading.read_meta(work, shard)
        entry, = (g for g in metas[shard]["games"] if g["gid"] == name)
        assert policy.matches(entry, record), (entry, record)
        if os.path.exists(work / "xml" / f"{name}.txt"):
            assert logfile.read(work, name)[1] == record["sha256"]
        taken.update((shard, row) for row in range(entry["start"], entry["start"] + entry["n_rows"]))
        arrays = reading.rows(work, shard, metas[shard], entry)
        arrays = folded.unfold(arrays) if "text" in arrays else arrays
        numbers = {g["gid"]: i for i, g in enumerate(metas[shard]["games"])}
        assert (arrays["origin"]["game"] == numbers[name]).all()
        arrays["origin"]["game"] = 0  # its number in its shard
        found[name] = [hashlib.sha256(b"".join(arrays[a][i].tobytes() for a in schema.ARRAYS)).digest()
                       for i in range(entry["n_rows"])]
    assert max(taken.values(), default=1) == 1
    return found


def difference(work, right):
    """(games lost, rows wrong) of a cache against the right `rows`."""
    there = rows(work)
    wrong = sum(len(there[name]) for name in there.keys() - right.keys())
    for name in there.keys() & right.keys():
        wrong += sum(a != b for a, b in zip(there[name], right[name], strict=False))
        wrong += abs(len(there[name]) - len(right[name]))
    return len(right.keys() - there.keys()), wrong


def assert_nothing_half_done(work, found, manifest_is_sound=True):
    """What must hold at every moment, also right after a kill: whole files under final names, whole lines."""
    with contextlib.suppress(FileNotFoundError):
        lines = (work / "manifest.jsonl").read_bytes().split(b"\n")
        assert not manifest_is_sound or all(json.loads(line) for line in lines[:-1] if line)
    for path in (work / "xml").glob("2*.txt"):
        data, right = path.read_bytes(), found.get(path.stem) or found[game(0)]
        assert data in (right, right + b"x", right[:-20]), path
    for name in reading.names(work):
        assert reading.damage(work, name, reading.read_meta(work, name), deep=True) is None, name
    with contextlib.suppress(FileNotFoundError):
        json.loads((work / "cache" / "index.json").read_bytes())


def assert_durable(work, writer, printed):
    """A writer prints an id only once its event is on disk."""
    status = {"encode-batch": "encoded", **dict.fromkeys(("adopt-xml", "import-logs", "fetch-paipu"), "downloaded")}
    status = status.get(writer.split()[0])
    latest = Manifest(work).latest
    assert status is None or {latest[name]["status"] for name in printed.split()} <= {status}


def assert_one_line(done, *words):
    """The script ended with status 1 and one line that says what and where, or was not hindered; never a traceback."""
    lines = [line for line in done.stderr.splitlines() if any(os.strerror(n) in line for n in DISK)]
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr, done.stderr
    assert done.returncode in (0, 1), (done.returncode, done.stderr)
    if done.returncode:
        assert len(lines) == 1 and re.fullmatch(r"[a-z-]+: /\S+: .*", lines[0]), done.stderr
    assert all(word in done.stderr for word in words), done.stderr


def assert_clean(work):
    """What must hold when all is done: the index is the sum of the claims, nothing is wrong, nothing left aside."""
    manifest = Manifest(work)
    assert index.check(work, manifest.latest) is None
    live = sum(claim["n_samples"] for claim in map(claims.held, manifest.latest.values()) if claim)
    built = json.loads((work / "cache" / "index.json").read_bytes())
    assert built["total_rows"] == live == sum(b - a for spans in built["row_ranges"].values() for a, b in spans)
    kinds = {found[:2]: found.why for found in shards_verify.check(work, reading.names(work), manifest, deep=True)}
    assert {kind for kind, _ in kinds} <= {"ok"}, kinds
    assert {kind for kind, _ in logs_verify.check(work, manifest)} <= {"ok", "absent"}
    assert not list(Path(work).rglob(".tmp-*"))
