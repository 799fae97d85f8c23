"""Reading the cache: the right rows by number, and batches shuffled, shared, split and resumed without loss."""

import itertools
import json
import multiprocessing
import pickle
import shutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import made_rows as make
import numpy as np
import pytest

from lib.rows import schema
from lib.train import reader
from lib.train.reader import Cache, CacheError

ROOT = Path(__file__).resolve().parents[2]
GAMES = 9


@pytest.fixture(scope="module")
def played():
    return [(gid, make.of(log)) for gid, log in make.games(GAMES)]


@pytest.fixture(scope="module", params=["dense", "parquet", "mixed"])
def work(request, tmp_path_factory, played):
    """A work directory with two shards; in the first of them game 1 is stale, it lives in the second."""
    work = str(tmp_path_factory.mktemp(request.param))
    layouts = {"mixed": ("dense", "parquet")}.get(request.param, (request.param,) * 2)
    make.add_shard(work, layouts[0], played[:5])
    make.add_shard(work, layouts[1], [played[5], played[1], *played[6:]])
    return work


@pytest.fixture(scope="module")
def expected(played):
    """The live rows of `work` in order."""
    live = [played[i] for i in (0, 2, 3, 4, 5, 1, 6, 7, 8)]
    rows = make.join([rows for _, rows in live])
    place = [0, 2, 3, 4, 0, 1, 2, 3, 4]
    rows["origin"]["game"] = np.repeat(place, [len(rows["labels"]) for _, rows in live])
    return rows


@pytest.fixture
def c(work):
    return Cache(f"{work}/cache")


def pick(rows, which):
    return {name: array[which] for name, array in rows.items()}


def ids(batches):
    """What tells the rows of `work` apart, batch by batch."""
    return [np.stack([b["origin"]["game"], b["origin"]["hand"], b["origin"]["step"], b["outcome"]["final_score"]], 1)
            .tolist() for b in batches]


def flat(lists):
    return list(itertools.chain.from_iterable(lists))


def test_all_live_rows_are_there_in_order_and_no_stale_one(c, expected):
    assert len(c) == len(expected["labels"])
    make.assert_equal(c[:], expected)
    make.assert_equal(c[len(c) - 700::3], pick(expected, slice(len(c) - 700, None, 3)))


def test_rows_are_found_by_any_array_of_numbers(c, expected):
    which = np.random.default_rng(1).integers(-len(c), len(c), 200)
    make.assert_equal(c[which], pick(expected, which))
    make.assert_equal(c[which.tolist()], pick(expected, which))
    make.assert_equal(c[[]], pick(expected, slice(0)))
    make.assert_equal(c[5:5], pick(expected, slice(0)))


@pytest.mark.parametrize("i", [0, 1500, -1])
def test_one_row_has_the_shape_of_a_row(c, expected, i):
    row = c[np.int64(i)]
    for name, (shape, dtype) in schema.ARRAYS.items():
        assert np.shape(row[name]) == shape and row[name].dtype == dtype
        assert np.asarray(row[name]).tobytes() == expected[name][i].tobytes()


@pytest.mark.parametrize("i", [10**6, -10**6, [0, 10**6], 1.5, [[1, 2]], [True, False], "x"])
def test_what_is_no_row_is_an_index_error(c, i):
    with pytest.raises(IndexError):
        c[i]


def test_every_row_comes_once_in_an_epoch(c, expected):
    batches = list(c.batches(100, seed=3, window=1000))
    assert [len(b["labels"]) for b in batches[:-1]] == [100] * (len(c) // 100)
    every = make.join(batches)

    def order(rows):  # game numbers are those of a shard, so two rows may share one: the tokens tell them apart
        names = [rows["tokens"][i].tobytes() for i in range(len(rows["labels"]))]
        return sorted(range(len(names)), key=lambda i: (*rows["origin"][i].item(), names[i]))

    make.assert_equal(pick(every, order(every)), pick(expected, order(expected)))


def test_the_order_depends_on_seed_and_epoch_and_nothing_else(c, work):
    first = ids(c.batches(64, seed=1, epoch=2))
    assert first == ids(Cache(f"{work}/cache").batches(64, seed=1, epoch=2))
    assert flat(first) == flat(ids(c.batches(100, seed=1, epoch=2)))
    assert first != ids(c.batches(64, seed=1, epoch=3))
    assert first != ids(c.batches(64, seed=2, epoch=2))


def test_without_a_seed_rows_come_in_their_order(c, expected):
    make.assert_equal(make.join(list(c.batches(77, seed=None))), expected)


def test_both_layouts_give_the_same_batches(tmp_path, played):
    for layout in ("dense", "parquet"):
        make.add_shard(str(tmp_path / layout), layout, played[:4])
    dense, packed = (Cache(tmp_path / layout / "cache").batches(50, seed=1) for layout in ("dense", "parquet"))
    for a, b in zip(dense, packed, strict=True):
        make.assert_equal(a, b)


@pytest.mark.parametrize("start", [0, 1, 7, 10**6])
def test_an_epoch_resumes_where_it_was_left(c, start):
    assert ids(c.batches(64, seed=1, start=start, window=500)) == ids(c.batches(64, seed=1, window=500))[start:]


@pytest.mark.parametrize(("workers", "start"), [(2, 0), (3, 0), (3, 4)])
def test_workers_asked_in_turn_give_what_one_alone_gives(c, workers, start):
    shares = [ids(c.batches(64, seed=1, start=start, worker=w, num_workers=workers)) for w in range(workers)]
    together = [shares[i % workers][i // workers] for i in range(sum(map(len, shares)))]
    assert together == ids(c.batches(64, seed=1, start=start))


def test_drop_last_drops_the_short_batch_only(c):
    assert ids(c.batches(64, seed=1, drop_last=True)) == ids(c.batches(64, seed=1))[:len(c) // 64]


def test_neighbours_are_scattered(c):
    step = make.join(list(c.batches(64, seed=1)))["origin"]["step"].astype(int)
    assert np.count_nonzero(np.diff(step) == 1) < 0.05 * len(c)


def test_splits_share_out_whole_games(work, c):
    c = Cache(f"{work}/cache", validation=0.4)
    train, held_out = list(c.games("train")), list(c.games("validation"))
    assert train and held_out and sorted(train + held_out) == sorted(c.games())
    assert c.count("train") + c.count("validation") == c.count() == len(c)
    rows = np.concatenate([np.arange(first, first + n) for _, first, n in held_out])
    assert sorted(flat(ids(c.batches(100, split="validation")))) == sorted(flat(ids([c[rows]])))
    with pytest.raises(ValueError, match="split"):
        next(c.batches(10, split="test"))


def test_games_stay_on_their_side_when_others_are_added(tmp_path, played):
    sides, work = [], str(tmp_path)
    for part in (played[:4], played[4:]):
        make.add_shard(work, "parquet", part)
        found = {validation: {gid for gid, _, _ in Cache(f"{work}/cache", validation).games("validation")}
                 for validation in (0, 0.3, 0.6, 1)}
        assert not found[0] and found[0.3] <= found[0.6] <= found[1]
        sides.append(found)
    early = {gid for gid, _ in played[:4]}
    assert found[0] < found[0.6] < found[1] == {gid for gid, _ in played}
    assert all(sides[0][validation] == sides[1][validation] & early for validation in sides[0])


def first_labels(c):
    return next(c.batches(50, seed=1))["labels"].tolist()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_cache_works_in_other_processes(c, method):
    c[3]
    assert len(pickle.dumps(c)) < 3000
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
        assert list(pool.map(first_labels, [c, c])) == [first_labels(c)] * 2


def test_reading_needs_numpy_and_nothing_else(work):
    code = ("import sys; from lib.train.reader import Cache; next(Cache(sys.argv[1]).batches(8));"
            "files = {m.split('.')[0] for m, module in sys.modules.items() if getattr(module, '__file__', None)};"
            "found = files - set(sys.stdlib_module_names);"
            "print(*sorted(name for name in found if name[0] != '_'), 'lib.cli.script' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", code, f"{work}/cache"], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.split() == ["lib", "numpy", "False"], done.stderr


def test_another_schema_is_refused_by_name(tmp_path, work):
    shutil.copytree(f"{work}/cache", tmp_path / "cache")
    index = json.loads((tmp_path / "cache/index.json").read_text())
    index["schema"]["action_dim"] = 55
    (tmp_path / "cache/index.json").write_text(json.dumps(index))
    with pytest.raises(CacheError, match="action_dim 55"):
        Cache(tmp_path / "cache")


def test_what_is_no_cache_is_said(tmp_path, work):
    with pytest.raises(CacheError, match="no index"):
        Cache(tmp_path)
    with pytest.raises(CacheError, match="folder cache/"):
        Cache(work)


def test_a_shard_that_went_is_said(tmp_path, work):
    shutil.copytree(f"{work}/cache", tmp_path / "cache")
    c = Cache(tmp_path / "cache")
    shutil.rmtree(tmp_path / "cache" / c.shards[1])
    assert len(c[:10]["labels"]) == 10
    with pytest.raises(CacheError, match="open the cache anew"):
        c[-1]


def test_pieces_are_as_large_as_they_are_said_to_be(c):
    (pieces,) = c._windows(None, 1, 0, 10**6)
    assert (pieces[:, 1] - pieces[:, 0]).max() == reader.PIECE_ROWS


@pytest.mark.parametrize("wrong", [{"size": 0}, {"size": 1, "worker": 1}, {"size": 1, "start": -1}])
def test_arguments_that_cannot_be_are_refused(c, wrong):
    with pytest.raises(ValueError, match="at least"):
        next(c.batches(**wrong))
