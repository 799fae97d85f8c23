"""Every row of real logs is the same from dense, packed and re-packed shards: `PAIPU=folder make test`."""

import os
from pathlib import Path

import made_rows as make
import pytest

from lib.manifest import Manifest
from lib.rows import encoder
from lib.shards import compaction, reading
from lib.train.reader import Cache

PAIPU = os.environ.get("PAIPU")


def encoded():
    for path in sorted(Path(PAIPU).glob("*.txt")):
        try:
            yield path.stem, encoder.encode_game(path.read_bytes())
        except encoder.Unencodable:
            continue


@pytest.mark.skipif(not PAIPU, reason="PAIPU, a folder of real logs, is not set")
def test_rows_are_the_same_from_all_layouts(tmp_path):
    games, works = list(encoded()), {layout: str(tmp_path / layout) for layout in ("dense", "packed")}
    names = {layout: make.add_shard(work, layout, games) for layout, work in works.items()}
    size = (tmp_path / "packed/cache" / names["packed"] / "packed.bin").stat().st_size
    caches = {layout: Cache(f"{work}/cache") for layout, work in works.items()}
    n = len(caches["dense"])
    assert size < 80 * n
    work = works["packed"]
    for layout in ("dense", "packed"):  # there and back
        manifest = Manifest(work)
        old = reading.names(work)
        compaction.merge(work, manifest, old, layout)
        compaction.remove(work, manifest, old)
    repacked = Cache(f"{work}/cache")
    assert repacked.shards != caches["packed"].shards
    for start in range(0, n, 4096):
        rows = caches["dense"][start:start + 4096]
        make.assert_equal(repacked[start:start + 4096], rows)
    assert len(repacked) == n == sum(len(rows["labels"]) for _, rows in games)
