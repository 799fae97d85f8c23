"""What `make bench` measures: each figure against something that does the bare minimum, at the same time."""

import collections
import contextlib
import functools
import hashlib
import os
import resource
import shutil
import subprocess
import sys
import time
import zipfile

import MahjongPyWrapper as pm

from ..cli import settings
from ..mahjong import exports, game, judge
from ..manifest import Manifest
from ..rows import decisions, encoder, folded
from ..shards import writing
from ..store import workdir
from .selfplay import play

_REPEATS = 3


def games(n):
    """n self-played games, every third a tonpuu, as (gid, log) pairs."""
    return [(f"2024010100gm-00a9-0000-{i:08x}", play(i, i % 3 != 2)) for i in range(n)]


def real_games(folder, n):
    """The first n logs in a folder that can be encoded, as `games` gives them; none where there is no folder."""
    found = []
    for name in sorted(os.listdir(folder)) if folder else ():
        gid, end = os.path.splitext(name)
        if len(found) < n and end == ".txt":
            with open(os.path.join(folder, name), "rb") as f:
                log = f.read()
            with contextlib.suppress(encoder.Unencodable):
                encoder.encode_folded(log)
                found.append((gid, log))
    return found


class _Recorder:
    """In the place of the judge's PaipuReplayer: plays on, and notes how it was set up and what was selected."""

    def __init__(self):
        self._engine, self.selections = pm.PaipuReplayer(), []

    def init(self, *setup):
        self.setup = setup
        self._engine.init(*setup)

    def make_selection(self, i):
        self.selections.append(i)
        return self._engine.make_selection(i)

    def make_selection_from_action(self, action, tiles):
        i = self._engine.get_selection_from_action(action, tiles)
        return i >= 0 and self.make_selection(i)

    def __getattr__(self, name):
        return getattr(self._engine, name)


def plan(hands):
    """What the bare engine has to do for a game's Hands: a list of (arguments of init, selections)."""
    plans = []
    for hand in hands:
        recorder = _Recorder()
        recorder.init(*judge.setup(hand, hand.points))
        judge.lead(recorder, hand.events, judge.SEATS)
        plans.append((recorder.setup, recorder.selections))
    return plans


def bare_engine(hands):
    """Play a plan, and nothing else."""
    for setup, selections in hands:
        engine = pm.PaipuReplayer()
        engine.init(*setup)
        for i in selections:
            engine.make_selection(i)


class _Blind:
    """In the place of a Board: sees nothing, so that only the table and the rules take time."""

    def row(self, *_):
        self.asked += 1

    def __init__(self, *_):
        self.asked = 0

    def __getattr__(self, _):
        return lambda *_: None


def decide(hands):
    """Play the Hands of a game by the rules alone; returns how many decisions there were."""
    return sum(decisions.Decisions(hand, _Blind).run().board.asked for hand in hands)


def encode_against_engine(work, logs, one_in):
    """Seconds on one core, game by game in turn, of: engine, judged, unjudged, written, rules; and rows, decisions.

    judged, unjudged: encoding with and without the judge; sampled: with it at one game in `one_in`; written: with the
    judge, and the shard; rules: the table kept and all masks made, without tokens.
    """
    workdir.make(work)
    totals = collections.Counter()
    writer = writing.Writer(work)

    def encode(log, judged):
        for _ in folded.pieces(encoder.encode_folded(log, judged)):
            pass

    def write(gid, log):
        rows = encoder.encode_folded(log)
        writer.add(gid, "", rows, rows.pop("final"))

    for gid, log in logs:
        hands = game.read(log).hands
        measures = {
            "engine": (bare_engine, plan(hands)), "judged": (encode, log, True), "unjudged": (encode, log, False),
            "written": (write, gid, log), "rules": (decide, hands),
        }
        seconds = best(*(functools.partial(cpu, *measure) for measure in measures.values()))
        totals.update(dict(zip(measures, seconds, strict=True)))
        totals["decisions"] += decide(hands)
    totals["sampled"] = totals["unjudged"] + (totals["judged"] - totals["unjudged"]) / one_in
    # the end of a shard of rows that were all written _REPEATS times
    totals["written"] += cpu(writer.finish, encoder.ENCODER) / _REPEATS
    totals["rows"] = writer.n_rows // _REPEATS
    writer.discard()
    return totals


def export(work):
    """Seconds of processor time that it takes to export the games of a work directory, from the start."""
    folder = workdir.path(work, "mjai")
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder)
    games, kinds = [(gid, None) for gid, _ in workdir.xml_files(work)], []
    seconds = cpu(lambda: kinds.extend(kind for _, kind, _ in exports.export(work, games, 1)))
    assert kinds == ["exported"] * len(games)
    return seconds


def cpu(function, *args):
    """Seconds of processor time that a call takes."""
    start = time.process_time()
    function(*args)
    return time.process_time() - start


def script(name, *args, **options):
    """Seconds that bin/name takes."""
    return command([sys.executable, os.path.join(settings.ROOT, "bin", name), *args], **options)


def command(words, **options):
    """Seconds that a command takes; raises CalledProcessError when it fails."""
    start = time.perf_counter()
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   **options)
    return time.perf_counter() - start


def processor(words, **environment):
    """Seconds of processor time that a command takes, with all that it starts; raises CalledProcessError when it fails.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command(words, env=os.environ | environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def run(work):
    """Seconds of processor time that `make run` takes."""
    words = ["make", "-s", "-C", settings.ROOT, "run", f"WORK={work}", "YEAR=", "IDS=", "TENHOU_URL=http://127.0.0.1:9"]
    return processor(words, MAKEFLAGS="", MAKELEVEL="0")


def layouts(work):
    """What bin/bench-cache prints of the rows in `work`, one dict of texts a layout."""
    words = [sys.executable, os.path.join(settings.ROOT, "bin", "bench-cache"), "--work", work]
    script("rebuild-index", "--work", work)
    head, *lines = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return [dict(zip(head.split("\t"), line.split("\t"), strict=True)) for line in lines]


def best(*measures):
    """The least of `_REPEATS` values of each of several functions, called in turn, so that all see the same machine."""
    rounds = [[measure() for measure in measures] for _ in range(_REPEATS)]
    return [min(values) for values in zip(*rounds, strict=True)]


def fill_with_logs(work, logs, n):
    """n files in xml/, all different, and their records."""
    workdir.make(work)
    records = []
    for i in range(n):
        game, data = f"2024010100gm-00a9-0000-{i:08x}", logs[i % len(logs)][1] + b"<!-- %d -->" % i
        with open(workdir.xml(work, game), "wb") as f:
            f.write(data)
        sha256 = hashlib.sha256(data).hexdigest()
        records.append({"gid": game, "status": "downloaded", "sha256": sha256, "size": len(data)})
    Manifest(work).append(records)


def fill_zip(path, logs, n):
    """A zip of n logs, all different, named by their ids."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        for i in range(n):
            z.writestr(f"logs/2024010100gm-00a9-0000-{i:08x}.xml", b"<!-- %d -->" % i + logs[i % len(logs)][1])


def fresh(folder, measure, *args):
    """What measure(*args) measures, with `folder` empty before it."""
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder)
    return measure(*args)
