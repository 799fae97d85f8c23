"""What `make bench` measures: each figure against something that does the bare minimum, at the same time."""

import functools
import hashlib
import json
import os
import subprocess
import sys
import time

import MahjongPyWrapper as pm

from ..cli import settings
from ..manifest import Manifest
from ..rows import encoder, replay
from ..shards import writing
from ..store import workdir
from .selfplay import play

_REPEATS = 3


def games(n):
    """n self-played games, every third a tonpuu, as (gid, log) pairs."""
    return [(f"2024010100gm-00a9-0000-{i:08x}", play(i, i % 3 != 2)) for i in range(n)]


class _Recorder:
    """In the place of the engine's PaipuReplayer: plays on, and notes how it was set up and what was selected."""

    plans = ()

    def __init__(self):
        self._engine, self._selections = pm.PaipuReplayer(), []

    def init(self, *setup):
        self.plans.append((setup, self._selections))
        self._engine.init(*setup)

    def make_selection(self, i):
        self._selections.append(i)
        return self._engine.make_selection(i)

    def make_selection_from_action(self, action, tiles):
        i = self._engine.get_selection_from_action(action, tiles)
        return i >= 0 and self.make_selection(i)

    def __getattr__(self, name):
        return getattr(self._engine, name)


def plan(log):
    """What the bare engine has to do for a game: a list of (arguments of init, selections) of its hands."""
    _Recorder.plans = []
    replay.new_engine = _Recorder
    try:
        encoder.encode_game(log)
    finally:
        replay.new_engine = pm.PaipuReplayer
    return _Recorder.plans


def bare_engine(hands):
    """Play a plan, and nothing else."""
    for setup, selections in hands:
        engine = pm.PaipuReplayer()
        engine.init(*setup)
        for i in selections:
            engine.make_selection(i)


def encode_against_engine(work, logs):
    """(seconds of the engine, of encoding, of encoding and writing, rows) on one core, game by game in turn."""
    workdir.make(work)
    totals = [0, 0, 0]
    writer = writing.Writer(work)

    def write(game, log):
        for rows in encoder.pieces(encoder.encode_folded(log)):
            writer.add(game, "", rows)

    for game, log in logs:
        measures = (bare_engine, plan(log)), (encoder.encode_game, log), (write, game, log)
        for i, least in enumerate(best(*(functools.partial(cpu, *measure) for measure in measures))):
            totals[i] += least
    end = cpu(writer.finish, encoder.ENCODER)  # of rows that were all written _REPEATS times
    n = writer.n_rows
    writer.discard()
    engine, encode, both = totals
    return engine, encode, both + end / _REPEATS, n // _REPEATS


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


def fill_manifest(work, events, ids):
    """A manifest of so many events over so many ids, as months of runs leave it."""
    workdir.make(work)
    with open(workdir.path(work, workdir.MANIFEST), "w", encoding="ascii") as f:
        for i in range(events):
            game, turn = i % ids, i // ids
            record = {"ts": "2024-05-01T12:00:00Z", "gid": f"2024010100gm-00a9-0000-{game:08x}"}
            if turn == 0:
                record |= {"status": "downloaded", "sha256": f"{game:064x}", "size": 14246}
            elif turn % 2:
                record |= {"status": "encoded", "shard": f"shard_{game // 109:05d}", "n_samples": 600,
                           "sha256": f"{game:064x}", "start": game % 109 * 600}
            else:
                record |= {"status": "corrupt"}
            f.write(json.dumps(record) + "\n")
