"""The packed layout gives back every row that the schema can have, in few bytes, and its page is enough to read it."""

import struct
import tracemalloc
import zlib
from itertools import groupby

import made_rows as make
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.rows import schema
from lib.shards import dense, packed, ragged, reading


def pack(path, *parts):
    """Write the parts one by one; returns the meta that belongs to them."""
    writer = packed.Writer(path)
    for part in parts:
        writer.add(part)
    return {"n_rows": sum(len(part["labels"]) for part in parts), **writer.finish()}


def everything(path, meta):
    return packed.rows(path, meta, np.arange(meta["n_rows"]))


@st.composite
def any_rows(draw):
    """Rows that only have the form of rows: any tokens, any bits for scalars, any origin; some alike, as in a hand."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.sampled_from([0, 1, 2, 5, 40, 300]))
    most = draw(st.sampled_from([0, 1, 9, schema.MAX_SEQ_LEN])) if n < 300 else 9
    values = draw(st.sampled_from([2, 35, 256]))
    rows = ragged.empty(n)
    stands = np.arange(schema.MAX_SEQ_LEN) < rng.integers(0, most + 1, (n, 1))
    rows["attention_mask"][...] = stands
    rows["tokens"][stands] = rng.integers(0, values, (stands.sum(), schema.TOKEN_FEATURES))
    bits = rng.integers(0, 2**32, (stands.sum(), schema.SCALAR_DIM), np.uint32)
    bits[rng.random(bits.shape) < draw(st.sampled_from([0, 0.9, 1]))] = 0
    bits[rng.random(bits.shape) < 0.1] = 0x80000000  # -0.0
    rows["scalars"].view(np.uint32)[stands] = bits
    rows["action_mask"][...] = rng.integers(0, 2, rows["action_mask"].shape)
    fields = [rows[name][key] for name in ("origin", "outcome") for key in rows[name].dtype.names]
    for array in (rows["labels"], *fields):
        low, high = np.iinfo(array.dtype).min, np.iinfo(array.dtype).max
        array[...] = rng.integers(low, high, n, array.dtype, endpoint=True)
    if draw(st.booleans()):
        rows["origin"]["game"], rows["origin"]["hand"] = 0, np.arange(n) // 250
    return rows


@settings(max_examples=60, deadline=None)
@given(rows=any_rows(), data=st.data())
def test_any_rows_come_back_bit_for_bit(tmp_path_factory, rows, data):
    path = tmp_path_factory.mktemp("shard")
    n = len(rows["labels"])
    cut = data.draw(st.integers(0, n))
    meta = pack(path, *({name: array[part] for name, array in rows.items()} for part in (slice(cut), slice(cut, n))))
    make.assert_equal(everything(path, meta), rows)
    some = np.array(sorted(data.draw(st.sets(st.integers(0, max(n - 1, 0)), max_size=min(n, 8)))), np.int64)
    make.assert_equal(packed.rows(path, meta, some), {name: array[some] for name, array in rows.items()})


@pytest.mark.parametrize(("name", "place", "value"), [
    ("attention_mask", (3, 2), 0), ("attention_mask", (3, 0), 2), ("tokens", (3, 359, 1), 1),
    ("scalars", (3, 359, 0), -0.0), ("action_mask", (3, 7), 2),
])
def test_rows_that_the_schema_has_not_are_refused(tmp_path, name, place, value):
    rows = make.of(make.games(1)[0][1])
    rows[name][place] = value
    with pytest.raises(ValueError, match="mask"):
        pack(tmp_path, rows)


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """(path, meta, rows) of a shard of six self-played games."""
    path = tmp_path_factory.mktemp("played")
    parts = [make.of(log) for _, log in make.games(6)]
    for number, part in enumerate(parts):
        part["origin"]["game"] = number
    return path, pack(path, *parts), make.join(parts)


def test_played_rows_take_few_bytes_and_come_back(played):
    path, meta, rows = played
    make.assert_equal(everything(path, meta), rows)
    assert (path / packed.FILE).stat().st_size < 40 * meta["n_rows"]


def read_as_documented(path, meta):
    """A reader made from the docstring of `packed` alone, without numpy and without lib: yields a dict a row."""
    data = (path / "packed.bin").read_bytes()
    per_chunk = {"chunk_rows": "B", "chunk_lives": "I", "chunk_scalars": "H"}
    per_life = {"segment": "B", "tile": "B", "count": "B", "who": "B", "extra": "B", "scalar": "H", "by_seat": "B",
                "gap": "B", "span": "B"}
    per_row = {"action_mask": "7s", "labels": "h", "game": "i", "hand": "B", "seat": "B", "step": "H",
               "hand_delta": "i", "final_score": "i", "final_rank": "B"}
    for _, size in meta["blocks"]:
        block, data = zlib.decompress(data[:size]), data[size:]
        sizes, at = struct.unpack_from("<4I", block), 16
        columns = {}
        for n, kinds in zip(sizes, (per_chunk, per_life, {"scalars": "16s"}, per_row), strict=True):
            for name, kind in kinds.items():
                width = struct.calcsize("<" + kind)
                columns[name] = [struct.unpack_from("<" + kind, block, at + i * width)[0] for i in range(n)]
                at += n * width
        assert at == len(block)
        take = {name: iter(column) for name, column in columns.items()}
        for n, lives, scalars in zip(*(columns[name] for name in per_chunk), strict=True):
            rows = [{name: next(take[name]) for name in per_row} | {"tokens": [], "scalars": []} for _ in range(n)]
            table = [bytes(16)] + [next(take["scalars"]) for _ in range(scalars)]
            ranks = {turn: rank for rank, turn in enumerate(sorted(range(n), key=lambda i: rows[i]["seat"] & 3))}
            end = 0
            for _ in range(lives):
                life = {name: next(take[name]) for name in per_life}
                start = (end + life["gap"]) % 256
                end = (start + life["span"]) % 256
                for turn, row in enumerate(rows):
                    if start <= (ranks[turn] if life["by_seat"] else turn) < end:
                        who, segment = life["who"], life["segment"]
                        who = (who - row["seat"]) % 4 if who < 4 else who
                        segment = {3: 4, 4: 3, 5: 6, 6: 5}.get(segment, segment) if who == 0 else segment
                        row["tokens"].append((segment, life["tile"], life["count"], who, life["extra"]))
                        row["scalars"].append(table[life["scalar"]])
            yield from rows


def test_a_reader_written_from_the_page_reads_it(played):
    path, meta, rows = played
    found = list(read_as_documented(path, meta))
    assert len(found) == meta["n_rows"]
    for i, row in enumerate(found):
        n = int(rows["attention_mask"][i].sum())
        assert row["tokens"] == [tuple(token) for token in rows["tokens"][i, :n].tolist()]
        assert b"".join(row["scalars"]) == rows["scalars"][i, :n].tobytes()
        bits = int.from_bytes(row["action_mask"], "big")
        assert [bits >> (55 - action) & 1 for action in range(54)] == rows["action_mask"][i].tolist()
        assert row["labels"] == rows["labels"][i]
        for name in ("origin", "outcome"):
            assert tuple(row[key] for key in rows[name].dtype.names) == rows[name][i].item()


def test_rows_of_one_hand_stay_in_one_chunk_unless_there_are_too_many(played):
    path, meta, rows = played
    hands = [len(list(group)) for _, group in groupby(rows["origin"][["game", "hand"]].tolist())]
    blocks, data = [], (path / packed.FILE).read_bytes()
    for _, size in meta["blocks"]:
        block, data = zlib.decompress(data[:size]), data[size:]
        blocks += block[16:16 + struct.unpack_from("<I", block)[0]]
    assert blocks == hands


def test_a_writer_takes_no_more_memory_the_more_it_writes(tmp_path):
    part = make.of(make.games(1)[0][1])
    writer, held = packed.Writer(tmp_path), []
    tracemalloc.start()
    for _ in range(40):
        writer.add(part)
        held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert sum(n for n, _ in writer.finish()["blocks"]) > 5 * packed.BLOCK_ROWS
    assert max(held[20:]) < 1.2 * max(held[:20])


@pytest.mark.parametrize("layout", ["dense", "packed"])
def test_damage_is_found(tmp_path, layout):
    work = str(tmp_path)
    name = make.add_shard(work, layout, [(gid, make.of(log)) for gid, log in make.games(2)])
    meta = make.meta(work, name)
    assert reading.damage(work, name, meta, deep=True) is None
    victim = tmp_path / "cache" / name / ("packed.bin" if layout == "packed" else "tokens.npy")
    whole = victim.read_bytes()
    victim.write_bytes(whole[:2000] + bytes([whole[2000] ^ 1]) + whole[2001:])
    assert reading.damage(work, name, meta) is None
    assert "sha256" in reading.damage(work, name, meta, deep=True)
    victim.write_bytes(whole[:-1])
    assert reading.damage(work, name, meta)
    victim.unlink()
    assert "is gone" in reading.damage(work, name, meta)


def test_meta_that_disagrees_with_the_file_is_damage(played):
    path, meta, _ = played
    assert "rows" in packed.damage(path, meta | {"n_rows": meta["n_rows"] + 1})
    assert "blocks" in packed.damage(path, {"n_rows": meta["n_rows"]})
    assert "bytes" in packed.damage(path, meta | {"blocks": meta["blocks"][:-1]})


def test_a_damaged_block_is_an_error_not_a_row(tmp_path):
    meta = pack(tmp_path, make.of(make.games(1)[0][1]))
    file = tmp_path / packed.FILE
    whole = file.read_bytes()
    file.write_bytes(whole[:3000] + bytes(50) + whole[3050:])
    with pytest.raises(ValueError, match="damaged"):
        everything(tmp_path, meta)


def test_a_dense_shard_opens_with_numpy_alone(tmp_path):
    rows = make.of(make.games(1)[0][1])
    name = make.add_shard(str(tmp_path), "dense", [(make.games(1)[0][0], rows)])
    path = tmp_path / "cache" / name
    make.assert_equal({array: np.load(path / f"{array}.npy", mmap_mode="r") for array in schema.ARRAYS}, rows)
    make.assert_equal(dense.rows(path, make.meta(str(tmp_path), name), np.arange(len(rows["labels"]))), rows)
