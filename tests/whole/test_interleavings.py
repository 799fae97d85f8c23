"""Any interleaving of adopting, downloading, encoding, damage, repair, compaction and recovery keeps what was promised:
each current claim points to rows of that game made of those bytes, no row is claimed twice, no game is lost."""

import contextlib
import os
import shutil
import tempfile

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from support import ENCODER, SyntheticEncoder, encode_here, findings, game, log, noise, npy, put, sha

from lib.logs import adopt, repair
from lib.logs import verify as logs_verify
from lib.manifest import Manifest
from lib.shards import batch, commit, compaction, index, policy, reading, recovery
from lib.store import claims, files, workdir
from lib.store.errors import Problem

GAMES = st.integers(0, 3)
HANDLES = st.integers(0, 1)
SHARD_ROWS = 7
PLAIN = ("labels", "tokens", "outcome")


class Pipeline(RuleBasedStateMachine):
    """Four games in one work directory, and two processes whose knowledge of the manifest may be old."""

    def __init__(self):
        super().__init__()
        self.work = tempfile.mkdtemp()
        workdir.make(self.work)
        self.handles = [Manifest(self.work), Manifest(self.work)]
        self.bytes, self.broken = {}, set()
        self.patch = pytest.MonkeyPatch()
        encode_here(self.patch, SyntheticEncoder())

    def teardown(self):
        try:
            self.end_well()
        finally:  # or the synthetic encoder stays for all tests to come
            self.patch.undo()
            shutil.rmtree(self.work)

    def log(self, n, rows):
        data = log(n, rows)
        self.bytes[sha(data)] = data
        return data

    @rule(n=GAMES, rows=st.integers(0, 3))
    def put_a_log_into_xml(self, n, rows):
        put(self.work, n, self.log(n, rows))

    @rule(n=GAMES, other=GAMES)
    def put_the_log_of_another_game_into_xml(self, n, other):
        put(self.work, n, self.log(other, 2))

    @rule(n=GAMES)
    def put_a_log_that_cannot_be_encoded_into_xml(self, n):
        put(self.work, n, b"<mjloggm></mjloggm>")

    @rule(n=GAMES)
    def damage_a_file(self, n):
        with contextlib.suppress(FileNotFoundError), open(workdir.xml(self.work, game(n)), "r+b") as f:
            data = f.read() + b"x"
            f.write(b"x")
            self.bytes[sha(data)] = data  # who does not know the game yet adopts it like this

    @rule(n=GAMES)
    def lose_a_file(self, n):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(workdir.xml(self.work, game(n)))

    @rule(n=GAMES, rows=st.integers(0, 3), who=HANDLES)
    def download(self, n, rows, who):
        data, manifest = self.log(n, rows), self.handles[who]
        with manifest.locked() as append:
            record = manifest.latest.get(game(n), {})
            if record.get("status") in ("encoded", "duplicate"):
                return
            put(self.work, n, data)
            append([{"gid": game(n), "status": "downloaded", "sha256": sha(data), "size": len(data)}])

    @rule(who=HANDLES)
    def adopt(self, who):
        for name, _ in sorted(workdir.xml_files(self.work), key=lambda pair: pair[0]):
            adopt.take_in(self.work, self.handles[who], name)

    @rule(who=HANDLES)
    def repair(self, who):
        for kind, name in list(logs_verify.check(self.work, self.handles[who])):
            if kind == "corrupt":
                repair.throw_out(self.work, self.handles[who], name)

    @rule(who=HANDLES, ids=st.lists(GAMES, max_size=4))
    def encode(self, who, ids):
        work = batch.Batch(self.work, self.handles[who], SHARD_ROWS)
        said = list(work.run(map(game, ids)))
        assert len(set(said)) == len(said)

    @rule(who=HANDLES, ids=st.lists(GAMES, min_size=1, max_size=4))
    def encode_and_die_before_the_event(self, who, ids):
        def die(*args):
            raise OSError("as if killed")

        with self.patch.context() as patch, contextlib.suppress(OSError):
            work = batch.Batch(self.work, self.handles[who], SHARD_ROWS)
            patch.setattr(policy, "claim", die)
            list(work.run(map(game, ids)))

    @rule(who=HANDLES, ids=st.lists(GAMES, max_size=4), rival=st.lists(GAMES, max_size=4))
    def encode_while_a_rival_does(self, who, ids, rival):
        def stream():
            yield from map(game, ids)
            self.patch.setattr(files, "HOST", "rival")  # one process cannot write two shards aside at once
            self.encode(1 - who, rival)
            self.patch.setattr(files, "HOST", host)

        host = files.HOST
        list(batch.Batch(self.work, self.handles[who], SHARD_ROWS).run(stream()))

    @precondition(lambda self: reading.names(self.work))
    @rule(data=st.data(), how=st.sampled_from(["array", "meta", "directory"]))
    def break_a_shard(self, data, how):
        name = data.draw(st.sampled_from(reading.names(self.work)))
        if how != "directory" or name in Manifest(self.work).claims:
            self.broken.add(name)
        else:
            self.broken.discard(name)  # nothing knows its number: it is free again
        if how == "array":
            os.truncate(npy(self.work, "labels", name), 100)
        elif how == "meta":
            files.write(workdir.path(self.work, "cache", name, reading.META), b"{")
        else:
            shutil.rmtree(workdir.path(self.work, "cache", name))

    @rule(who=HANDLES)
    def compact(self, who):
        manifest = self.handles[who]
        with contextlib.suppress(Problem):  # a damaged shard is not compacted
            commit.finish_interrupted(self.work, manifest, ENCODER)
            groups, dead = compaction.plan(self.work, manifest, SHARD_ROWS)
            compaction.remove(self.work, manifest, dead)
            for group in groups:
                compaction.merge(self.work, manifest, group)
                compaction.remove(self.work, manifest, group)

    @rule(keep=st.booleans())
    def lose_the_manifest_or_some_of_it_and_recover(self, keep):
        path = os.path.join(self.work, workdir.MANIFEST)
        if not keep and os.path.exists(path) and not self.broken:
            os.truncate(path, os.path.getsize(path) * 2 // 3)
        recovery.recover(self.work)

    @rule(who=HANDLES)
    def rebuild_the_index(self, who):
        index.rebuild(self.work, self.handles[who].latest)

    @invariant()
    def claims_point_to_rows_of_their_game_and_no_row_is_claimed_twice(self):
        manifest, taken = Manifest(self.work), set()
        for name, record in manifest.latest.items():
            record = claims.held(record)  # a game whose damaged log is fetched again keeps its rows
            if record is None or record["shard"] in self.broken:
                continue
            meta = reading.read_meta(self.work, record["shard"])
            entry, = (g for g in meta["games"] if g["gid"] == name)
            start, stop = entry["start"], entry["start"] + entry["n_rows"]
            assert (entry["sha256"], start, entry["n_rows"]) == (record["sha256"], record["start"], record["n_samples"])
            expected = noise(self.bytes[record["sha256"]], entry["n_rows"])
            for array in PLAIN:
                rows = np.load(npy(self.work, array, record["shard"]), mmap_mode="r")[start:stop]
                assert rows.tobytes() == expected[array].tobytes()
            rows = {(record["shard"], row) for row in range(start, stop)}
            assert not rows & taken
            taken |= rows
        built, _ = index.build(self.work, manifest.latest)
        ranges = {(name, row) for name, spans in built["row_ranges"].items() for span in spans for row in range(*span)}
        assert {(name, row) for name, row in ranges if name not in self.broken} == taken
        assert built["total_rows"] == len(ranges)

    @invariant()
    def the_check_blames_no_shard_that_nobody_broke(self):
        kinds, whys = findings(self.work)
        wrong = {name for name, (kind, _) in kinds.items() if kind == "mismatch"}
        assert wrong <= self.broken, whys

    @invariant()
    def nothing_is_left_aside(self):
        assert not [name for name in os.listdir(workdir.cache(self.work)) if name.startswith(".tmp-")]

    def end_well(self):
        """Put every file right; then one run encodes every game once, and compaction leaves only live rows."""
        for n in range(4):
            put(self.work, n, self.log(n, 1))
        self.download_all()
        self.encode(0, [*range(4), *range(4)])
        self.broken &= {r.get("shard") for r in Manifest(self.work).latest.values() if r["status"] == "encoded"}
        assert not self.broken
        self.claims_point_to_rows_of_their_game_and_no_row_is_claimed_twice()
        latest = Manifest(self.work).latest
        assert {latest[game(n)]["status"] for n in range(4)} <= {"encoded", "duplicate"}
        self.compact(0)
        kinds, _ = findings(self.work)
        assert set(kinds.values()) <= {("ok", 0)}
        self.claims_point_to_rows_of_their_game_and_no_row_is_claimed_twice()

    def download_all(self):
        for n in range(4):
            record = Manifest(self.work).latest.get(game(n), {})
            if record.get("status") != "duplicate":
                data = log(n, 1)
                with self.handles[0].locked() as append:
                    if record.get("status") == "encoded" and record["shard"] not in self.broken:
                        continue
                    append([{"gid": game(n), "status": "downloaded", "sha256": sha(data), "size": len(data)}])


Pipeline.TestCase.settings = hypothesis.settings(max_examples=40, stateful_step_count=25, deadline=None)
TestPipeline = Pipeline.TestCase
