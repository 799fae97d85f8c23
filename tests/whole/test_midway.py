"""Encoders and compactors that stop midway, while others do anything to what they are at: what must hold, holds.

tests/whole/test_interleavings.py has whole scripts in any order; here they are cut into pieces, down to the moment at
which one has a shard ready and does not have the lock yet.
"""

import collections
import contextlib
import json
import os
import shutil
import tempfile

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support import SyntheticEncoder, encode_here, game, log, noise, put, sha

from lib.logs import adopt, repair
from lib.logs import verify as logs_verify
from lib.manifest import Manifest
from lib.rows import schema
from lib.shards import batch, commit, compaction, index, reading, recovery, writing
from lib.shards import verify as shards_verify
from lib.store import claims, files, workdir
from lib.store.errors import Problem

GAMES, VERSIONS = 4, 2
ROWS = (3, 5)  # of a game's log, by its version: other bytes, other rows
NUMBERS = st.integers(0, GAMES - 1)
SHARD_ROWS = st.sampled_from([1, 7, 100])


def record_of(line):
    """The record in a line of the manifest, None if it is garbage."""
    try:
        return json.loads(line)
    except ValueError:
        return None


class Midway(RuleBasedStateMachine):
    """One work directory; the handles are read once and then only kept up to date by what they do themselves, like
    those of processes that live long. Encoders and compactors stop in the middle and go on later."""

    @initialize()
    def begin(self):
        self.work = tempfile.mkdtemp()
        workdir.make(self.work)
        self.handles = [Manifest(self.work) for _ in range(2)]
        self.right = {}  # sha256 -> (bytes, how many rows they have)
        self.placed = {}  # number of a game -> the log that its user has last put there
        self.recovered = 0  # how many lines of the manifest the last recovery wrote
        self.damaged = set()  # shards that were damaged, and by this name are so still
        self.encoders, self.compactors = [], []
        self.intruder = None
        self.patches = pytest.MonkeyPatch()
        encode_here(self.patches, SyntheticEncoder())
        finish = writing.Writer.finish
        self.patches.setattr(writing.Writer, "finish", lambda *args: (finish(*args), self.intrude()))

    def intrude(self):
        """Do what is to happen while somebody has a shard ready and does not have the lock yet."""
        intruder, self.intruder = self.intruder, None
        if intruder:
            intruder()

    # what users and disks do

    @rule(number=NUMBERS, version=st.integers(0, VERSIONS - 1))
    def put_log(self, number, version):
        data = log(10 * number + version, ROWS[version])
        self.right[sha(data)] = data, ROWS[version]
        self.placed[number] = data
        put(self.work, number, data)

    @rule(number=NUMBERS)
    def damage_log(self, number):
        with contextlib.suppress(FileNotFoundError), open(workdir.xml(self.work, game(number)), "r+b") as f:
            f.write(b"x")
            f.seek(0)
            data = f.read()
            self.right[sha(data)] = data, self.right[sha(b"<" + data[1:])][1]  # who does not know it better adopts it

    @rule(number=NUMBERS)
    def lose_log(self, number):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(workdir.xml(self.work, game(number)))

    @precondition(lambda self: reading.names(self.work))
    @rule(data=st.data(), how=st.sampled_from(["cut", "flip", "meta", "gone"]))
    def damage_shard(self, data, how):
        name = data.draw(st.sampled_from(reading.names(self.work)))
        path = workdir.path(self.work, "cache", name)
        self.damaged.add(name)
        if how == "gone":
            shutil.rmtree(path)
        elif how == "meta":
            with contextlib.suppress(FileNotFoundError):
                os.truncate(os.path.join(path, "meta.json"), 10)
        else:
            with open(os.path.join(path, "tokens.npy"), "r+b") as f:
                f.seek(-1, os.SEEK_END)
                last = f.read(1)
                f.seek(-1, os.SEEK_END)
                f.truncate() if how == "cut" else f.write(bytes([last[0] ^ 1]))

    @rule(text=st.sampled_from([b"garbage\n", b"\xff\xfe", b'{"gid":"']))
    def damage_manifest(self, text):
        with open(workdir.path(self.work, workdir.MANIFEST), "ab") as f:
            f.write(text)

    # what scripts do

    @rule(who=st.integers(0, 1), number=NUMBERS)
    def adopt(self, who, number):
        adopt.take_in(self.work, self.handles[who], game(number))

    @rule(who=st.integers(0, 1), number=NUMBERS)
    def repair(self, who, number):
        repair.throw_out(self.work, self.handles[who], game(number))

    @rule(who=st.integers(0, 1), rows=SHARD_ROWS, deep=st.booleans())
    def start_encoder(self, who, rows, deep):
        encoder = batch.Batch(self.work, self.handles[who], rows, deep=deep)
        self.encoders.append(encoder.run(encoder.queued()))

    @precondition(lambda self: self.encoders)
    @rule(data=st.data())
    def step_encoder(self, data):
        encoder = data.draw(st.sampled_from(self.encoders))
        try:
            next(encoder)
        except StopIteration:
            self.encoders.remove(encoder)

    @precondition(lambda self: self.encoders)
    @rule(data=st.data())
    def stop_encoder(self, data):
        encoder = data.draw(st.sampled_from(self.encoders))
        self.encoders.remove(encoder)
        encoder.close()

    @rule(who=st.integers(0, 1), rows=SHARD_ROWS)
    def encode_but_the_disk_is_full_at_the_event(self, who, rows):
        handle = self.handles[who]
        encoder = batch.Batch(self.work, handle, rows)
        handle._append = lambda fd, records: (_ for _ in ()).throw(OSError(28, "No space left on device"))
        try:
            with contextlib.suppress(OSError):
                list(encoder.run(encoder.queued()))
        finally:
            del handle._append

    @rule(who=st.integers(0, 1), rows=SHARD_ROWS)
    def start_compactor(self, who, rows):
        self.compactors.append(self.compact(self.handles[who], rows))

    def compact(self, handle, rows):
        """As bin/compact-shards, with a pause after each step."""
        commit.finish_interrupted(self.work, handle, batch.encoder.ENCODER)
        groups, dead = compaction.plan(self.work, handle, rows)
        yield
        self.damaged -= set(compaction.remove(self.work, handle, dead))
        for group in groups:
            yield
            compaction.merge(self.work, handle, group)
            yield
            self.damaged -= set(compaction.remove(self.work, handle, group))

    @precondition(lambda self: self.compactors)
    @rule(data=st.data())
    def step_compactor(self, data):
        compactor = data.draw(st.sampled_from(self.compactors))
        try:
            next(compactor)
        except (StopIteration, Problem, FileNotFoundError, ValueError):  # done, or a shard is damaged, or gone
            self.compactors.remove(compactor)

    @rule(number=NUMBERS, version=st.integers(0, VERSIONS - 1), rows=SHARD_ROWS,
          what=st.sampled_from(["repair", "replace", "encode", "recover"]))
    def plan_intrusion(self, number, version, rows, what):
        """The next one who has a shard ready finds that others were faster."""
        def intruder():
            if what in ("repair", "replace"):
                self.damage_log(number)
                self.repair(1, number)
            if what in ("replace", "encode"):
                self.put_log(number, version)
                self.adopt(1, number)
            if what == "encode":
                encoder = batch.Batch(self.work, Manifest(self.work), rows)
                list(encoder.run(encoder.queued()))
            if what == "recover":
                self.recover_it()
        self.intruder = intruder

    @rule(rows=SHARD_ROWS)
    def run(self, rows):
        """Adopt and encode all, so that there is something to be harmed."""
        for number in range(GAMES):
            self.adopt(0, number)
        encoder = batch.Batch(self.work, self.handles[0], rows)
        list(encoder.run(encoder.queued()))

    @rule(rows=SHARD_ROWS)
    def compact_at_once(self, rows):
        with contextlib.suppress(Problem, FileNotFoundError, ValueError):  # a shard is damaged, or gone
            collections.deque(self.compact(Manifest(self.work), rows), 0)

    @rule(lost=st.booleans())
    def recover(self, lost):
        if lost:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(workdir.path(self.work, workdir.MANIFEST))
        self.recover_it()

    def recover_it(self):
        recovery.recover(self.work)
        with open(workdir.path(self.work, workdir.MANIFEST), "rb") as f:
            self.recovered = f.read().count(b"\n")  # what it wrote is in the order of the shards, not of time

    # what must hold

    @invariant()
    def claims_point_to_their_rows(self):
        """Each current claim, but in damaged shards, is of rows of just that game, made of just those bytes; no row is
        in two claims; the index has just these rows."""
        if not hasattr(self, "work"):
            return
        handle, taken, live = Manifest(self.work), set(), 0
        for gid, record in handle.latest.items():
            record = claims.held(record)
            if not record or record["shard"] in self.damaged:
                continue
            shard, start, n = record["shard"], record["start"], record["n_samples"]
            meta = reading.read_meta(self.work, shard)
            entry, = (g for g in meta["games"] if g["gid"] == gid)
            assert (entry["start"], entry["n_rows"], entry["sha256"]) == (start, n, record["sha256"])
            data, rows = self.right[record["sha256"]]
            found, wanted = reading.rows(self.work, shard, meta, entry), noise(data, rows)
            found["origin"]["game"] = 0
            assert n == rows and all(np.array_equal(found[name].view("u1"), wanted[name].view("u1"))
                                     for name in schema.ARRAYS)
            assert not taken & {(shard, row) for row in range(start, start + n)}
            taken |= {(shard, row) for row in range(start, start + n)}
            live += n
        if not self.damaged:
            assert index.build(self.work, handle.latest)[0]["total_rows"] == live

    @invariant()
    def nothing_is_encoded_that_was_not_due(self):
        """An `encoded` event follows one that says the game is here, or is encoded, with the same bytes."""
        if not hasattr(self, "work") or not os.path.exists(workdir.path(self.work, workdir.MANIFEST)):
            return
        with open(workdir.path(self.work, workdir.MANIFEST), "rb") as f:
            records = list(filter(None, map(record_of, f.read().split(b"\n"))))
        latest = {}
        for i, record in enumerate(records):
            before = latest.get(record["gid"])
            latest[record["gid"]] = record = ({"sha256": before["sha256"]} if before else {}) | record
            if before and i >= self.recovered and record["status"] == "encoded":
                assert before["status"] in ("downloaded", "encoded"), (before, record)
                assert before["sha256"] == record["sha256"], (before, record)

    def teardown(self):
        """Put back the logs, run it all, compact: every game is there, with its rows, and nothing else."""
        if not hasattr(self, "work"):
            return
        try:
            self.intruder = None
            for encoder in self.encoders:
                encoder.close()
            for number, data in self.placed.items():
                put(self.work, number, data)
            self.run_and_compact()
            self.claims_point_to_their_rows()
            handle = Manifest(self.work)
            encoded = {gid for gid, record in handle.latest.items() if record["status"] == "encoded"}
            assert encoded == {game(number) for number in self.placed}
            found = shards_verify.check(self.work, reading.names(self.work), handle, deep=True)
            assert {(f.kind, f.stale) for f in found} <= {("ok", 0)}
            assert sorted(os.listdir(workdir.cache(self.work))) == [".work-id", "index.json", *reading.names(self.work)]
        finally:
            self.patches.undo()
            shutil.rmtree(self.work)

    def run_and_compact(self):
        recovery.recover(self.work)
        handle = Manifest(self.work)
        for number in self.placed:
            kind, = [kind for kind, _ in logs_verify.check(self.work, handle, [game(number)])]
            if kind == "corrupt":  # other bytes than were recorded: thrown out, and put back
                repair.throw_out(self.work, handle, game(number))
                put(self.work, number, self.placed[number])
            adopt.take_in(self.work, handle, game(number))
        encoder = batch.Batch(self.work, handle, 100, deep=True)
        list(encoder.run(encoder.queued()))
        for _ in self.compact(handle, 100):
            pass
        with handle.locked():
            index.rebuild(self.work, handle.latest)
        files.sweep(workdir.cache(self.work))


TestMidway = Midway.TestCase
TestMidway.settings = settings(settings.get_profile("ours"), max_examples=60 * int(os.environ.get("TORTURE", 1)),
                                stateful_step_count=40)
