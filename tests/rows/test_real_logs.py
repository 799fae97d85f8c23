"""Every row of real logs is the same from dense and Parquet shards, and after conversion: `PAIPU=folder make test`."""

import os
from pathlib import Path

import made_rows as make
import numpy as np
import pytest

from lib.manifest import Manifest
from lib.rows import encoder, folded
from lib.shards import commit, compaction, index, policy, reading, writing
from lib.store import workdir
from lib.train.reader import Cache

PAIPU = os.environ.get("PAIPU")


def encoded():
    for path in sorted(Path(PAIPU).glob("*.txt")):
        try:
            yield path.stem, encoder.encode_folded(path.read_bytes())
        except encoder.Unencodable:
            continue


def write(work, layout, games):
    """A cache of several shards."""
    workdir.make(work)
    manifest = Manifest(work)
    for start in range(0, len(games), 40):
        writer = writing.Writer(work, layout)
        for gid, rows in games[start:start + 40]:
            writer.add(gid, make.DIGEST, {k: v for k, v in rows.items() if k != "final"}, rows["final"])
        writer.finish(encoder.ENCODER)
        name = writer.move_into_place(work, commit.used_numbers(manifest))
        manifest.append([policy.claim(game, name) for game in writer.games])
    index.rebuild(work, manifest.latest)


def converted(work, layout):
    manifest = Manifest(work)
    for name in reading.names(work):
        assert compaction.merge(work, manifest, [name], layout)
        compaction.remove(work, manifest, [name])


@pytest.mark.skipif(not PAIPU, reason="PAIPU, a folder of real logs, is not set")
def test_rows_are_the_same_from_all_layouts(tmp_path):
    games, works = list(encoded()), {layout: str(tmp_path / layout) for layout in ("dense", "parquet")}
    for layout, work in works.items():
        write(work, layout, games)
    n = sum(len(rows["labels"]) for _, rows in games)
    size = sum(file.stat().st_size for file in Path(works["parquet"], "cache").rglob("rows.parquet"))
    assert size <= 80 * n
    names = ["tokens", "scalars", "attention_mask", "action_mask", "labels", "origin", "outcome", "deltas", "row"]
    dense = Cache(f"{works['dense']}/cache")

    def compare():
        cache = Cache(f"{works['parquet']}/cache")
        assert len(cache) == len(dense) == n and (cache.games() == dense.games()).all()
        for start in range(0, n, 4096):
            rows = np.arange(start, min(start + 4096, n))
            make.assert_equal(cache.rows(rows, names), dense.rows(rows, names))
        return {reading.read_meta(works["parquet"], name)["layout"] for name in cache.shards}

    first = folded.unfold(games[0][1])
    make.assert_equal(dense.rows(np.arange(len(first["labels"])), list(first)), first)
    assert compare() == {"parquet"}
    for layout in ("dense", "parquet"):  # there and back
        converted(works["parquet"], layout)
        assert compare() == {layout}
