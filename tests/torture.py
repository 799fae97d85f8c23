#!/usr/bin/env python3
"""Kill and fail every writer, hundreds of times, and compare the cache with that of an undisturbed run, row by row.

    $ make torture
    $ make torture TORTURE=long

Five rounds: each call of each writer that changes a file is the last one before a kill, once; at each of them the disk
is full, or the work directory gone, once; each kind of file cannot be read, by each script, once; the other trials of
tests/trials.py, and whole runs killed at random moments, several times in a row, until the time is over, or, if long,
until there were 10,000 kills and faults; and the fault tests are run with as much chance as they can take. Ends with
one line of totals. Exit status: 0 nothing lost and nothing wrong, 1 something was.
"""

import argparse
import collections
import contextlib
import itertools
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import faulty
import trials
from flows import ROOT, environment, make_words, stand_in

# of a hundred trials by chance so many are of this kind; the others kill whole runs
OFTEN = {"hidden": 20, "unreadable": 15, "bad_log": 8, "dying_workers": 6, "half_copied": 6, "upgraded": 4,
         "elsewhere": 4, "many": 2}
FAULT_TESTS = "full_disk", "damage", "together", "interleavings", "midway", "hostile"
_torture = None  # in a process of the pool: what all trials share


class Torture:
    """What the rounds share: the logs, the right rows, a work directory made ready for each writer."""

    def __init__(self, directory, urls):
        """urls: of stand-ins for Tenhou that serve the same games."""
        self.directory, self.urls, self.logs = Path(directory), urls, faulty.logs()
        calm = self.directory / "calm"
        faulty.ready_to_adopt(calm, self.logs)
        faulty.finish(calm, self.logs)
        faulty.assert_clean(calm)
        self.right = faulty.rows(calm)
        for writer, (_, make_ready) in faulty.WRITERS.items():
            make_ready(self.directory / writer.replace(" ", "_"), self.logs)
        self.many = trials.many_logs()
        faulty.put(self.directory / "many", self.many)
        faulty.finish(shutil.copytree(self.directory / "many", self.directory / "calm many"), {})
        self.right_many = faulty.rows(self.directory / "calm many")
        for layout in ("", " parquet"):
            trials.only_rows(self.directory / f"only_rows{layout.replace(' ', '_')}", self.logs, layout[1:] or "dense")
        for writer in (*faulty.DOWNLOADERS, None):
            faulty.download(self.directory / (writer or "downloaded"), urls[0], writer)
        self.downloaded = {path.stem: path.read_bytes() for path in self.directory.glob("downloaded/xml/2*")}
        faulty.finish(self.directory / "downloaded", {})
        self.right_download = faulty.rows(self.directory / "downloaded")

    @contextlib.contextmanager
    def scratch(self):
        """An empty directory, removed after the block if that went well."""
        path = tempfile.mkdtemp(dir=self.directory)
        yield Path(path)
        shutil.rmtree(path)

    def calls(self, writer):
        """The calls of a writer that change a file of its work directory, by their names."""
        with self.scratch() as directory:
            work, trace = self.ready(writer, directory), directory / "trace"
            faulty.struck(*faulty.call(writer, work), trace=trace, **self.settings())
            lines = [line.split(" ", 1) for line in trace.read_text().splitlines()]
            return [name for name, path in lines if path.startswith(f"{work}/")]

    def ready(self, writer, directory):
        """A copy of the work directory that is ready for a writer."""
        return faulty.copy(self.directory / writer.replace(" ", "_"), directory)

    def settings(self):
        """Where to download; each process of the pool has a server of its own, since only one may ask it."""
        number = (multiprocessing.current_process()._identity or (1,))[0]
        return {"TENHOU_URL": self.urls[number % len(self.urls)], "DELAY": "0"}

    def strike(self, writer, what, call, n):
        """Strike the nth call named `call`, then do it all again; returns the totals of this trial."""
        with self.scratch() as directory:
            work = self.ready(writer, directory)
            done = faulty.struck(*faulty.call(writer, work), fault=f"{what} {call} {work}/* {n}", **self.settings())
            killed = done.returncode == -signal.SIGKILL
            if not killed:
                faulty.assert_one_line(done)
            right, found = self.right, self.logs
            if writer in faulty.DOWNLOADERS:
                right, found = self.right_download, self.downloaded
            if what != "vanish":  # and with it all that there was
                faulty.assert_nothing_half_done(work, found, writer != "recover-manifest" and what != "half")
                faulty.assert_durable(work, writer, done.stdout)
                faulty.ok(*faulty.call(writer, work), **self.settings())
            if writer in faulty.DOWNLOADERS:
                faulty.download(work, self.settings()["TENHOU_URL"])
                found = {}
            return self.finish(work, found, right, kills=killed, failures=not killed)

    def kill_at_random(self, seed):
        """Kill a script, or a make and all its scripts, at a random moment, several times; then do it all again."""
        chance = random.Random(seed)
        with self.scratch() as directory:
            if chance.random() < 0.5:
                work, kills = self.kill_makes(directory / "w", chance)
                return self.finish(work, self.logs, self.right, kills=kills)
            writer = chance.choice(list(faulty.WRITERS))
            work, kills = self.ready(writer, directory), 0
            name, *options = faulty.call(writer, work)
            for _ in range(3):
                kills += run_and_kill([sys.executable, ROOT / "bin" / name, *options], chance.uniform(0.08, 0.3))
            faulty.ok(name, *options)
            return self.finish(work, self.logs, self.right, kills=kills)

    def kill_makes(self, work, chance):
        faulty.ready_to_adopt(work, self.logs)
        kills = 0
        for _ in range(4):
            target = chance.choice(["run", "run", "compact", "recover"])
            settings = [f"WORK={work}", f"SHARD_ROWS={chance.choice([1, 500, 65536])}", f"JOBS={chance.choice([1, 2])}",
                        f"SHARD_LAYOUT={chance.choice(['dense', 'parquet'])}"]
            kills += run_and_kill(make_words(target, *settings), chance.uniform(0.1, 1.2))
        for name, *options in (["recover-manifest"], ["adopt-xml"], ["encode-batch", "--queued"], ["compact-shards"]):
            faulty.ok(name, "--work", work, *options)
        return work, kills

    def harm(self, name, seed, *arguments):
        """One of the trials, then what a user does after it."""
        with self.scratch() as directory:
            made = vars(trials)[name](self, directory, random.Random(seed), *arguments)
            if not made:
                return collections.Counter(skipped=1)
            work, found, right, counts = made
            return self.finish(work, found, right, **counts)

    def by_chance(self, seed, only=None):
        """A trial as `run` takes it: a method and its arguments. only: the name of a trial of tests/trials.py."""
        name, = random.Random(seed).choices([*OFTEN, "kill"], [*OFTEN.values(), 100 - sum(OFTEN.values())])
        name = only or name
        return (Torture.harm, (name, seed)) if name != "kill" else (Torture.kill_at_random, (seed,))

    def finish(self, work, found, right, **counts):
        """Do again what is left to do, and count what is lost or wrong then."""
        faulty.finish(work, found)
        lost, wrong = faulty.difference(work, right)
        faulty.assert_clean(work)
        return collections.Counter(lost=lost, wrong=wrong, **counts)


def run_and_kill(command, seconds):
    """Start a command and kill it, with all that it started, after some time; True if it was still at work."""
    victim = subprocess.Popen([*map(str, command)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, env=environment(), start_new_session=True)
    time.sleep(seconds)
    return faulty.kill_group(victim)


def strikes(torture):
    """All trials of the first two rounds, as arguments of Torture.strike."""
    for writer in (*faulty.WRITERS, *faulty.DOWNLOADERS):
        seen = collections.Counter()
        for call in torture.calls(writer):
            seen[call] += 1
            yield writer, "before", call, seen[call]
            if call not in ("unlink", "remove", "rmdir"):
                yield writer, "ENOSPC", call, seen[call]
                if seen.total() % 3 == 0:
                    yield writer, "vanish", call, seen[call]
            if call == "write":
                yield writer, "half", call, seen[call]
                yield writer, "after", call, seen[call]


def unreadable():
    """The trials of the third round, as arguments of Torture.harm."""
    for i, (step, kind, error) in enumerate(itertools.product(trials.STEPS, trials.KINDS, ("EIO", "EACCES"))):
        yield "unreadable", i, step, kind, error


def share(torture):
    """Make the Torture known to a process of the pool."""
    global _torture
    _torture = torture


def run(trial):
    """(name of a trial, its totals); `broken` counts those that ended with an exception, which is shown."""
    method, arguments = trial
    try:
        found = method(_torture, *arguments)
    except Exception:
        found = collections.Counter(broken=1)
        traceback.print_exc()
    return (method.__name__, *arguments), found


def harm(totals):
    """How many kills and faults there were."""
    return totals["kills"] + totals["failures"] + totals["faults"]


def told_of(totals):
    """The totals in words."""
    return (f"{totals['kills']} kills, {totals['failures']} failed calls, {totals['faults']} other faults,"
            f" {totals['lost']} games lost, {totals['wrong']} rows wrong, {totals['broken']} trials broken,"
            f" {totals['skipped']} skipped")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seconds", type=float, default=400, help="when no new random trial begins (%(default)s)")
    p.add_argument("--harm", type=int, default=10_000 if os.environ.get("TORTURE") == "long" else 1200,
                   help="go on until there were as many kills and faults (%(default)s)")
    p.add_argument("--seed", type=int, default=int(time.time()), help="of the random moments (default: the time)")
    p.add_argument("--jobs", type=int, default=os.cpu_count(), help="trials at a time (%(default)s)")
    p.add_argument("--only", metavar="TRIAL", choices=[*OFTEN, "kill"], help="no other trials than these, by chance")
    args = p.parse_args()
    start = told = time.monotonic()
    totals, bad = collections.Counter(), []
    directory = tempfile.mkdtemp(prefix="tenhou-torture-")
    servers = contextlib.ExitStack()
    urls = [servers.enter_context(stand_in(Path(directory), "--games", 4))[0] for _ in range(args.jobs + 1)]
    torture = Torture(directory, urls)
    chosen = iter([] if args.only else [*((Torture.strike, trial) for trial in strikes(torture)),
                   *((Torture.harm, trial) for trial in unreadable())])
    by_chance = (torture.by_chance(args.seed + i, args.only) for i in itertools.count())
    with multiprocessing.get_context("fork").Pool(args.jobs, initializer=share, initargs=(torture,)) as pool:
        # by pieces: imap would take the endless ones all at once
        while (piece := list(itertools.islice(chosen, 4 * args.jobs))) or (
                time.monotonic() - start < args.seconds or harm(totals) < args.harm):
            for trial, found in pool.imap_unordered(run, piece or list(itertools.islice(by_chance, 4 * args.jobs))):
                totals.update(found)
                if found["lost"] or found["wrong"] or found["broken"]:
                    bad.append(trial)
                    print(f"torture: FAILED {trial}: {dict(found)}", flush=True)
            if time.monotonic() - told > 60:
                told = time.monotonic()
                print(f"torture: so far {told_of(totals)}", flush=True)
    servers.close()
    if not bad:
        shutil.rmtree(directory)
    seconds = time.monotonic() - start
    tests = [ROOT / "tests" / "whole" / f"test_{name}.py" for name in FAULT_TESTS]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *tests]
    failed = not args.only and subprocess.run(command, cwd=ROOT, env=os.environ | {"TORTURE": "5"}).returncode
    print(f"torture: seed {args.seed}: {told_of(totals)}, {seconds:.0f} s; "
          f"fault tests {'FAILED' if failed else 'passed'}, {time.monotonic() - start - seconds:.0f} s")
    return 1 if bad or failed else 0


if __name__ == "__main__":
    sys.exit(main())
