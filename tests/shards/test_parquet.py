"""The layout parquet gives back every row that the schema can have, in few bytes, to us and any reader of Parquet."""

import json
import os
import subprocess
import sys
import tracemalloc

import made_rows as make
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rows.test_folded import equal, foldeds

from lib.rows import folded, schema
from lib.shards import dense, layouts, parquet, reading

pq = pytest.importorskip("pyarrow.parquet")


def write(path, *games):
    """Write the games, foldeds or dense arrays; returns the meta that belongs to them."""
    writer = parquet.Writer(str(path))
    for i, rows in enumerate(games):
        writer.add(rows, f"game {i}")
    return {"n_rows": sum(len(rows["labels"]) for rows in games), **writer.finish()}


def numbered(rows):
    """The same rows; which game of the shard they are of is not for the layout to know."""
    rows["origin"]["game"] = 0
    return rows


@settings(max_examples=40)
@given(games=st.lists(foldeds().map(numbered), min_size=1, max_size=3), data=st.data())
def test_any_rows_come_back_bit_for_bit(tmp_path_factory, games, data):
    path = tmp_path_factory.mktemp("shard")
    meta, rows = write(path, *games), folded.join(games)
    n = meta["n_rows"]
    equal(parquet.read(path, meta, np.arange(n)), rows)
    some = np.array(sorted(data.draw(st.sets(st.integers(0, max(n - 1, 0)), max_size=min(n, 8)))), np.int64)
    equal(parquet.read(path, meta, some), folded.compact(folded.take(folded.placed(rows), some)))
    if n:
        assert np.array_equal(parquet.masks(path, meta), rows["action_mask"])


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """(path, meta, dense rows of each game) of a shard of eight self-played games."""
    path = tmp_path_factory.mktemp("played")
    games = [make.of(log) for _, log in make.games(8)]
    return path, write(path, *games), games


def test_played_rows_take_few_bytes_and_come_back(played):
    path, meta, games = played
    make.assert_equal(folded.unfold(parquet.read(path, meta, np.arange(meta["n_rows"]))), make.join(games))
    assert (path / parquet.FILE).stat().st_size < 80 * meta["n_rows"]


def test_a_row_group_has_whole_games_and_no_more_than_it_must(played):
    path, meta, games = played
    ends, sizes = np.cumsum([len(rows["labels"]) for rows in games]), meta["row_groups"]
    assert set(np.cumsum(sizes)) <= set(ends) and len(sizes) > 1
    assert [parquet.GROUP_ROWS <= n < 2 * parquet.GROUP_ROWS for n in sizes[:-1]] == [True] * (len(sizes) - 1)
    found = pq.ParquetFile(path / parquet.FILE).metadata
    assert [found.row_group(i).num_rows for i in range(found.num_row_groups)] == sizes


def test_a_reader_of_parquet_finds_the_columns_of_the_page(played):
    path, _, games = played
    page = [line.split()[:2] for line in parquet.__doc__.split("\n\n")[1].splitlines()]
    table = pq.read_table(path / parquet.FILE)
    kinds = {name: str(kind).replace("fixed_size_list<element: int32>[4]", "int32[4]")
             for name, kind in zip(table.schema.names, table.schema.types, strict=True)}
    assert kinds == dict(page)
    at = 0
    for number, rows in enumerate(games):
        for i in range(0, len(rows["labels"]), 97):
            row = {name: table[name][at + i].as_py() for name in table.column_names}
            tokens = np.frombuffer(row["tokens"], np.uint8).reshape(-1, schema.TOKEN_FEATURES)
            assert row["gid"] == f"game {number}"
            assert np.array_equal(tokens, rows["tokens"][i, :len(tokens)])
            assert len(tokens) == rows["attention_mask"][i].sum()
            assert [row["action_mask"] >> bit & 1 for bit in range(54)] == rows["action_mask"][i].tolist()
            assert row["label"] == rows["labels"][i] and row["deltas"] == rows["deltas"][i].tolist()
            assert {**row, "game": 0}.items() >= {
                **dict(zip(schema.ORIGIN.names, rows["origin"][i].item(), strict=True)),
                **dict(zip(schema.OUTCOME.names, rows["outcome"][i].item(), strict=True))}.items()
            seat, scores = row["seat"], np.flatnonzero(tokens[:, 0] == folded.SCORE)
            assert row["deltas"][seat] == row["hand_delta"]
            assert (np.float32((np.array(row["points"]) - 25000) / 25000) == rows["scalars"][i, scores, 0]).all()
        at += len(rows["labels"])
    assert at == len(table)


def test_deltas_that_are_not_known_are_null(tmp_path):
    rows = make.of(make.games(1)[0][1])
    rows["deltas"][5:9] = schema.UNKNOWN
    meta = write(tmp_path, rows)
    assert pq.read_table(tmp_path / parquet.FILE)["deltas"].null_count == 4
    make.assert_equal(folded.unfold(parquet.read(tmp_path, meta, np.arange(meta["n_rows"]))), rows)


def test_a_writer_takes_no_more_memory_the_more_it_writes(tmp_path):
    part = make.of(make.games(1)[0][1])
    writer, held = parquet.Writer(str(tmp_path)), []
    tracemalloc.start()
    for _ in range(40):
        writer.add(part, "game")
        held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert len(writer.finish()["row_groups"]) > 5
    assert max(held[20:]) < 1.2 * max(held[:20])


@pytest.mark.parametrize("layout", layouts.LAYOUTS)
def test_damage_is_found(tmp_path, layout):
    work = str(tmp_path)
    name = make.add_shard(work, layout, [(gid, make.of(log)) for gid, log in make.games(2)])
    meta = make.meta(work, name)
    assert reading.damage(work, name, meta, deep=True) is None
    victim = tmp_path / "cache" / name / ("rows.parquet" if layout == "parquet" else "tokens.npy")
    whole = victim.read_bytes()
    victim.write_bytes(whole[:2000] + bytes([whole[2000] ^ 1]) + whole[2001:])
    assert reading.damage(work, name, meta) is None
    assert "SHA-256" in reading.damage(work, name, meta, deep=True)
    victim.write_bytes(whole[:-1])
    assert reading.damage(work, name, meta)
    victim.unlink()
    assert "is gone" in reading.damage(work, name, meta)


def test_meta_that_disagrees_with_the_file_is_damage(played):
    path, meta, _ = played
    assert "rows" in parquet.damage(path, meta | {"n_rows": meta["n_rows"] + 1})
    assert "does not say" in parquet.damage(path, {"n_rows": meta["n_rows"]})
    assert "bytes" in parquet.damage(path, meta | {"bytes": 7})


def test_one_wrong_bit_is_an_error_not_a_row(tmp_path):
    meta = write(tmp_path, make.of(make.games(1)[0][1]))
    file = tmp_path / parquet.FILE
    whole = file.read_bytes()
    for at in range(1000, len(whole) - 6000, 1999):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1:])
        parquet.forget()
        with pytest.raises((ValueError, OSError)):
            parquet.read(tmp_path, meta, np.arange(meta["n_rows"]))


def test_another_file_under_the_same_name_is_not_taken_for_the_one_before(tmp_path):
    a, b = (make.of(log) for _, log in make.games(2))
    old = write(tmp_path, a)
    parquet.read(tmp_path, old, np.arange(3))
    new = write(tmp_path, b)
    make.assert_equal(folded.unfold(parquet.read(tmp_path, new, np.arange(new["n_rows"]))), b)
    parquet.forget()
    with pytest.raises(ValueError, match="does not have the length"):
        parquet.read(tmp_path, old, np.arange(3))


def test_a_dense_shard_opens_with_numpy_alone(tmp_path):
    rows = make.of(make.games(1)[0][1])
    name = make.add_shard(str(tmp_path), "dense", [(make.games(1)[0][0], rows)])
    path = tmp_path / "cache" / name
    make.assert_equal({array: np.load(path / f"{array}.npy", mmap_mode="r") for array in schema.ARRAYS}, rows)
    make.assert_equal(dense.rows(path, make.meta(str(tmp_path), name), np.arange(len(rows["labels"]))), rows)


def test_an_old_dense_shard_has_no_deltas_and_is_sound(tmp_path):
    rows, work = make.of(make.games(1)[0][1]), str(tmp_path)
    name = make.add_shard(work, "dense", [(make.games(1)[0][0], rows)])
    make.forget_deltas(work, name)
    meta = make.meta(work, name)
    assert reading.damage(work, name, meta, deep=True) is None
    found = reading.rows(work, name, meta, meta["games"][0])
    make.assert_equal(found, rows | {"deltas": np.full_like(rows["deltas"], schema.UNKNOWN)})


def test_without_pyarrow_one_line_says_what_installs_it(tmp_path):
    code = ("import sys; sys.modules['pyarrow'] = None\n"
            "from lib.shards import layouts; from lib.store.errors import Problem\n"
            "layouts.require('dense')\n"
            "try: layouts.require('parquet')\n"
            "except Problem as e: print(e)")
    done = subprocess.run([sys.executable, "-c", code], cwd=os.path.dirname(os.path.dirname(make.__file__)),
                          capture_output=True, text=True)
    assert "make setup SHARD_LAYOUT=parquet" in done.stdout, done.stderr


def test_a_shard_of_the_layout_that_this_one_replaced_is_foreign_and_what_converts_it_is_said(tmp_path):
    work = str(tmp_path)
    name = make.add_shard(work, "dense", [(gid, make.of(log)) for gid, log in make.games(1)])
    meta = make.meta(work, name) | {"layout": "packed"}
    (tmp_path / "cache" / name / reading.META).write_text(json.dumps(meta))
    with pytest.raises(reading.Foreign, match=r"'packed'.* reads dense, parquet; commit .* --layout dense"):
        reading.read_meta(work, name)
