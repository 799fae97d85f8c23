"""The trials of `make torture` that are neither a kill at a call nor a failing call: what cannot be seen for a while,
logs that hang or crash the engine, or are half copied, many logs, upgrades, another PID namespace.

Each takes a Torture (see tests/torture.py), a directory of its own and a random.Random. It harms a work directory,
looks at what must hold at each moment, and leaves the work to be finished as a user would. It returns (work directory,
logs that the user has, the rows that must be there in the end, counts of kills and faults).
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time

import faulty
from flows import ROOT, environment, make, start_make
from handwritten import hand, log, won
from machines import below, until

from lib.manifest import Manifest
from lib.shards import reading
from lib.store import claims, locks, workdir

NEW_PIDS = "unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", '"$@"; exit $?', "sh"
ONLY_ROWS = faulty.game(0), faulty.game(1)  # of these games the logs are gone: their rows are all that there is
MANY = 1100

# what a user may do to a work directory of which a part cannot be seen, or read
STEPS = (
    ["adopt-xml"], ["encode-batch", "--queued", "--jobs", 1], ["encode-batch", "--queued", "--jobs", 2],
    ["verify-xml", "--jobs", 1], ["verify-xml", "--repair", "--jobs", 1], ["verify-shards"],
    ["verify-shards", "--deep"], ["compact-shards"], ["compact-shards", "--shard-rows", 2 * faulty.SHARD_ROWS],
    ["rebuild-index"], ["rebuild-index", "--check"], ["recover-manifest"], ["manifest-status", "--full"],
)  # fmt: skip
FLOWS = ["run"], ["run", "REPAIR=1"], ["check"], ["check", "REPAIR=1"], ["compact"], ["rebuild-index"], ["recover"]
# kinds of files, and the folders that they are in
KINDS = ("*/manifest.jsonl", "*/format.json", "*/.snapshot*", "*/.seen", "*/xml", "*/xml/.work-id", "*/xml/2*.txt",
         "*/cache", "*/cache/.work-id", "*/cache/index.json", "*/cache/shard_0*", "*/cache/shard_0*/meta.json",
         "*/cache/shard_0*/labels.npy", "*/cache/shard_0*/tokens.npy", "*/cache/shard_0*/rows.parquet")  # fmt: skip


def only_rows(work, found, layout="dense"):
    """Make a work directory in which of some games nothing but the rows is left, because the user needed the room."""
    faulty.encoded(work, found, layout)
    faulty.ok("rebuild-index", "--work", work)
    for name in ONLY_ROWS:
        (work / "xml" / f"{name}.txt").unlink()


def many_logs():
    """gid -> bytes of so many logs that they are hashed by several processes: three of some length, the others of a
    hand that is won with its first tile."""
    end = won(0, 0, "250,480,250,-160,250,-160,250,-160", "730,0.0,90,0.0,90,0.0,90,0.0")
    short = log(hand("0+1s", end, deals=["123m406p789s99m23s"], indicator="0s"))
    found = {f"2024020100gm-00e1-0000-{n:08x}": short.replace(b'n0="a"', b'n0="a%d"' % n) for n in range(MANY - 3)}
    return found | dict(list(faulty.logs().items())[:3])


def call(name, *args, fault="", **settings):
    """Run a script of bin/ that may be hindered, but must neither fall on its face nor say more than it should."""
    done = faulty.struck(name, *args, fault=fault, **settings)
    _assert_decent(done)
    return done


def flow(work, target, *more, **settings):
    """Run make, as `call` does with a script."""
    done = make(target, f"WORK={work}", "JOBS=2", *more, settings=settings)
    _assert_decent(done, 2)
    return done


def _assert_decent(done, most=1):
    assert 0 <= done.returncode <= most and "Traceback" not in done.stderr, (done.args, done.returncode, done.stderr)


def _claims(work):
    """gid -> where the rows are, of the games of which nothing but the rows is left. A `corrupt` event keeps them."""
    latest = Manifest(work).latest
    held = {name: claims.held(latest.get(name) or {}) or {} for name in ONLY_ROWS}
    return {name: [claim.get(key) for key in ("shard", "start", "n_samples", "sha256")] for name, claim in held.items()}


def _assert_kept(work, before, moved=False):
    """What cannot be seen is not gone: the rows are claimed as they were, or, once they have been moved, elsewhere."""
    now = _claims(work)
    assert (not moved and now == before) or (moved and all(
        claim[0] and claim[2:] == before[name][2:] for name, claim in now.items())), (before, now)


def hidden(torture, directory, chance):
    """A shard, the cache or xml/ is not there for a while, or only the place where it is mounted; then it is back."""
    work = torture.ready(chance.choice(["only rows", "only rows parquet"]), directory)
    before, what = _claims(work), chance.choice(["cache", "xml", "shard", "shard"])
    path = work / what if what != "shard" else work / "cache" / chance.choice(reading.names(work))
    path.rename(directory / "elsewhere")
    if what != "shard" and chance.random() < 0.5:
        path.mkdir()
    repaired = moved = False
    for _ in range(chance.randint(1, 3)):
        step = chance.choice([*STEPS, *FLOWS])
        repaired |= "--repair" in step or "REPAIR=1" in step
        moved |= step[0].startswith("compact")
        (flow(work, *step) if step in FLOWS else call(step[0], "--work", work, *step[1:]))
    if path.exists():
        assert what != "shard", "a shard's name was used twice"
        shutil.rmtree(path)  # it is below what is mounted there
    (directory / "elsewhere").rename(path)
    _assert_kept(work, before, moved)
    # who asked for repair of what is lost has its games queued: then they are downloaded again
    return work, torture.logs if repaired else {}, torture.right, {"faults": 1}


def unreadable(torture, directory, chance, step=None, kind=None, error=None, nth=1):
    """Files of one kind cannot be read for a while, the first of them or one later on; then they can."""
    step, kind = step or chance.choice(STEPS), kind or chance.choice(KINDS)
    error, nth = error or chance.choice(["EIO", "EACCES", "ESTALE"]), nth or chance.randint(1, 4)
    work = torture.ready("only rows parquet" if kind.endswith("rows.parquet") else "only rows", directory)
    before, struck = _claims(work), directory / "struck"
    call(step[0], "--work", work, *step[1:], fault=f"{error} read {kind.replace('*', str(work), 1)} {nth}",
         TENHOU_STRUCK=str(struck))
    _assert_kept(work, before, step[0] == "compact-shards")
    repaired = "--repair" in step
    return work, torture.logs if repaired else {}, torture.right, {"faults": int(struck.exists())}


def bad_log(torture, directory, chance):
    """A log crashes the engine, or it never comes to an end with it; then an engine that can do it is there."""
    work, victim = torture.ready("encode-batch", directory), chance.choice(sorted(torture.logs))
    fault = {"fault": f"{chance.choice(['crash', 'hang'])} read {work}/xml/{victim}.txt 1", "TENHOU_DEADLINE": "0.5",
             "TENHOU_STRUCK": str(directory / "struck")}
    done = call("encode-batch", "--work", work, "--queued", "--shard-rows", faulty.SHARD_ROWS,
                "--jobs", chance.choice([1, 2]), **fault)
    record = Manifest(work).latest[victim]
    assert done.returncode == 0 and len(done.stdout.split()) == len(torture.logs) - 1, done.stderr
    assert record["status"] == "failed" and record["error"].startswith("the encoder died on it"), record
    return work, {}, torture.right, {"faults": len((directory / "struck").read_text().splitlines())}


def dying_workers(torture, directory, chance):
    """What encodes games is killed again and again, as by a system that is short of memory."""
    work, kills = torture.ready("encode-batch", directory), 0
    command = [sys.executable, ROOT / "bin" / "encode-batch", "--work", work, "--queued", "--jobs", "2"]
    encode = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True, env=environment())
    while encode.poll() is None and kills < 4:
        time.sleep(chance.uniform(0.02, 0.2))
        for pid in below(encode.pid)[1:]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                kills += 1
    said = encode.communicate()[1]
    # one that is killed while it starts is told as what keeps it from starting
    assert encode.returncode in (0, 1) and "Traceback" not in said, said
    return work, {}, torture.right, {"kills": kills}


def elsewhere(torture, directory, chance):
    """Two encoders on one work directory, one of them where process numbers are others; that one is killed."""
    if not CAN_UNSHARE:
        return None
    work = torture.ready("encode-batch", directory)
    settings = environment(RUN_PID=f"{os.getpid()}@another machine")
    encode = [sys.executable, ROOT / "bin" / "encode-batch", "--work", work, "--queued", "--shard-rows", "1"]
    there = subprocess.Popen([*NEW_PIDS, *encode], env=settings, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, start_new_session=True)
    here = subprocess.Popen(encode, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True)
    time.sleep(chance.uniform(0.1, 0.8))
    killed = faulty.kill_group(there)
    said = here.communicate()[1]
    assert here.returncode == 0, said
    for left in work.rglob(".tmp-*"):  # of another machine, as it seems: swept when it is a day old
        for path in (*left.glob("*"), left):
            os.utime(path, (time.time() - 90000,) * 2)
    return work, {}, torture.right, {"kills": int(killed)}


def many(torture, directory, chance):
    """A run over more than a thousand logs is killed: make alone, or with all that it started."""
    work, kills = torture.ready("many", directory), 0
    for _ in range(2):
        run = start_make("run", f"WORK={work}", "JOBS=2", "SHARD_ROWS=300")
        time.sleep(chance.uniform(0.2, 4))
        if chance.random() < 0.5:
            kills += faulty.kill_group(run)
        else:
            kills += run.poll() is None
            run.kill()
            run.wait()
        until(lambda: not locks.is_held(workdir.path(work, workdir.RUN_LOCK)))
    return work, torture.many, torture.right_many, {"kills": kills}


def half_copied(torture, directory, chance):
    """Runs take in a log while it is still being copied; the copy goes on, and the log is whole in the end."""
    work = directory / "w"
    (work / "xml").mkdir(parents=True)
    for name, data in torture.logs.items():
        path, cut = work / "xml" / f"{name}.txt", chance.randrange(len(data))
        with open(path, "wb", buffering=0) as f:
            f.write(data[:cut])
            for _ in range(chance.randint(0, 2)):
                step = chance.choice([["run"], ["run"], ["check", "REPAIR=1"], ["run", "REPAIR=1"]])
                flow(work, *step)
            f.write(data[cut:])
        if not path.exists():  # taken out as damaged, which it was: it must be somewhere
            kept = [each for each in work.rglob("*") if each.is_file() and each.read_bytes() == data]
            assert kept, f"{name}: what a user put there is destroyed"
            shutil.copy(kept[0], path)
    for _ in range(2):
        flow(work, "run")
    records = Manifest(work).latest
    assert {name: records[name]["status"] for name in torture.logs} == dict.fromkeys(torture.logs, "encoded")
    return work, {}, torture.right, {"faults": len(torture.logs)}


def upgraded(torture, directory, chance):
    """The tree becomes another version's while a run is at work: no shard has rows of one that says it is another's."""
    tree, work = directory / "tree", torture.ready("encode-batch", directory)
    for name in ("bin", "lib"):
        shutil.copytree(ROOT / name, tree / name)
    shutil.copy(ROOT / "config.mk", tree)
    encode = subprocess.Popen([sys.executable, tree / "bin" / "encode-batch", "--work", work, "--queued", "--jobs", "2",
                               "--shard-rows", str(faulty.SHARD_ROWS)], stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment())
    time.sleep(chance.uniform(0, 0.8))
    with open(tree / "lib" / "rows" / "encoder.py", "a", encoding="utf-8") as f:
        f.write('\n\nENCODER = ENCODER | {"version": "of another time"}\n_before = encode_folded\n\n\n'
                'def encode_folded(*args):\n    folded = _before(*args)\n    folded["outcome"]["final_score"] += 1\n'
                '    return folded\n')
    for pid in below(encode.pid)[1:]:  # others have to be started
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    said = encode.communicate()[1]
    assert encode.returncode in (0, 1) and "Traceback" not in said, said
    for name in reading.names(work):
        meta = reading.read_meta(work, name)
        scores = [score for game in meta["games"]
                  for score in reading.rows(work, name, meta, game)["outcome"]["final_score"].tolist()]
        others = {score % 100 for score in scores} != {0}
        assert others == (meta["encoder"]["version"] == "of another time"), name
        if others:  # sound, and of that version: for the rows that must be there this is none of ours
            shutil.rmtree(work / "cache" / name)
    return work, torture.logs, torture.right, {"faults": 1}


CAN_UNSHARE = shutil.which("unshare") and not subprocess.run([*NEW_PIDS, "true"], capture_output=True).returncode
