"""Reading the cache: the right rows by number, and batches shuffled, shared, split and resumed without loss."""

import itertools
import json
import multiprocessing
import os
import pickle
import re
import shutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import made_rows as make
import numpy as np
import pytest

from lib.manifest import Manifest
from lib.rows import schema
from lib.shards import compaction
from lib.train import columns, epoch
from lib.train.reader import Cache, CacheError
from lib.train.source import Source

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


def ids(batches):
    """The rows' numbers, batch by batch."""
    return [b["row"].tolist() for b in batches]


def same_rows(got, expected, numbers):
    """`got` has the rows of `expected` with these numbers, in this order, and their numbers."""
    assert got["row"].tolist() == list(numbers)
    make.assert_equal({name: array for name, array in got.items() if name not in ("row", "game")},
                      {name: array[numbers] for name, array in expected.items() if name != "deltas"})


def together(batches):
    """Several batches as one."""
    return {name: np.concatenate([b[name] for b in batches]) for name in batches[0]}


def flat(lists):
    return list(itertools.chain.from_iterable(lists))


def test_all_live_rows_are_there_in_order_and_no_stale_one(c, expected):
    assert len(c) == len(expected["labels"])
    same_rows(c[:], expected, np.arange(len(c)))
    same_rows(c[len(c) - 700::3], expected, np.arange(len(c) - 700, len(c), 3))


def test_rows_are_found_by_any_array_of_numbers(c, expected):
    which = np.random.default_rng(1).integers(-len(c), len(c), 200)
    same_rows(c[which], expected, which % len(c))
    same_rows(c[which.tolist()], expected, which % len(c))
    for nothing in ([], slice(5, 5)):
        same_rows(c[nothing], expected, np.arange(0))


@pytest.mark.parametrize("i", [0, 1500, -1])
def test_one_row_has_the_shape_of_a_row(c, expected, i):
    row = c[np.int64(i)]
    for name, (shape, dtype) in schema.ARRAYS.items():
        if name == "deltas":
            continue
        assert np.shape(row[name]) == shape and row[name].dtype == dtype
        assert np.asarray(row[name]).tobytes() == expected[name][i].tobytes()


@pytest.mark.parametrize("i", [10**6, -10**6, [0, 10**6], 1.5, [[1, 2]], [True, False], "x"])
def test_what_is_no_row_is_an_index_error(c, i):
    with pytest.raises(IndexError):
        c[i]


def test_every_row_comes_once_in_an_epoch(c, expected):
    batches = list(c.batches(100, seed=3, window=1000))
    assert [len(b["labels"]) for b in batches[:-1]] == [100] * (len(c) // 100)
    numbers = flat(ids(batches))
    assert sorted(numbers) == list(range(len(c)))
    same_rows(together(batches), expected, numbers)


def test_the_order_depends_on_seed_and_epoch_and_nothing_else(c, work):
    first = ids(c.batches(64, seed=1, epoch=2))
    assert first == ids(Cache(f"{work}/cache").batches(64, seed=1, epoch=2))
    assert flat(first) == flat(ids(c.batches(100, seed=1, epoch=2)))
    assert first != ids(c.batches(64, seed=1, epoch=3))
    assert first != ids(c.batches(64, seed=2, epoch=2))


def test_without_a_seed_rows_come_in_their_order(c, expected):
    same_rows(together(list(c.batches(77, seed=None))), expected, np.arange(len(c)))


def test_both_layouts_give_the_same_batches(tmp_path, played):
    for layout in ("dense", "parquet"):
        make.add_shard(str(tmp_path / layout), layout, played[:4])
    dense, parquet = (Cache(tmp_path / layout / "cache") for layout in ("dense", "parquet"))
    assert dense.fingerprint == parquet.fingerprint and (dense.games() == parquet.games()).all()
    for options in ({}, {"ragged": True, "columns": ragged_columns()}, {"permute_suits": True, "cut": True}):
        for a, b in zip(*(c.batches(50, seed=1, **options) for c in (dense, parquet)), strict=True):
            make.assert_equal(a, b)


@pytest.mark.parametrize("start", [0, 1, 7])
def test_an_epoch_resumes_where_it_was_left(c, start):
    assert ids(c.batches(64, seed=1, start=start, window=500)) == ids(c.batches(64, seed=1, window=500))[start:]


@pytest.mark.parametrize(("workers", "start"), [(2, 0), (3, 0), (3, 4)])
def test_ordered_workers_asked_in_turn_give_what_one_alone_gives(c, workers, start):
    shares = [ids(c.batches(64, seed=1, start=start, worker=w, num_workers=workers, ordered=True))
              for w in range(workers)]
    assert in_turn(shares) == ids(c.batches(64, seed=1, start=start))


def in_turn(shares):
    """The batches of several workers as a DataLoader takes them: one from each in turn, as long as they have some."""
    return [batch for turn in itertools.zip_longest(*shares) for batch in turn if batch is not None]


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
@pytest.mark.parametrize("options", [{}, {"drop_last": True}, {"split": "train"}, {"select": {"kinds": "call"}}])
def test_workers_share_the_rows_out_and_go_on_where_they_were(c, workers, options):
    def epoch(start):
        return in_turn([ids(c.batches(64, seed=1, window=700, start=start, worker=w, num_workers=workers, **options))
                        for w in range(workers)])

    whole, n = epoch(0), c.count(options.get("split"), options.get("select"))
    n -= n % 64 if options.get("drop_last") else 0
    assert len(whole) == -(-n // 64) and [len(batch) for batch in whole[:-1]] == [64] * (len(whole) - 1)
    assert len(set(flat(whole))) == n == len(flat(whole))
    for start in (1, 2, 9, len(whole) - 1, len(whole)):
        assert epoch(start) == whole[start:]


@pytest.mark.parametrize("world", [1, 2, 3, 5])
@pytest.mark.parametrize("options", [{}, {"drop_last": True}, {"split": "train", "select": {"kinds": "turn"}}])
def test_ranks_have_equal_shares_that_have_no_row_in_common(c, world, options):
    shares = [ids(c.batches(100, seed=1, epoch=1, window=900, rank=rank, world=world, **options))
              for rank in range(world)]
    assert len({tuple(map(len, share)) for share in shares}) == 1
    assert len(shares[0]) == c.n_batches(100, world=world, **options)
    rows, n = flat(flat(shares)), c.count(options.get("split"), options.get("select"))
    assert len(rows) == len(set(rows)) and n - len(rows) < world * (100 if options.get("drop_last") else 1)


def test_workers_and_ranks_read_hardly_more_than_their_share(c, monkeypatch):
    read = []
    monkeypatch.setattr(Source, "_rows", lambda self, rows, do=Source._rows: read.append(len(rows)) or do(self, rows))
    for rank, worker in itertools.product(range(2), range(2)):
        list(c.batches(64, seed=1, rank=rank, world=2, worker=worker, num_workers=2))
    assert sum(read) < len(c) + 4 * 1.5 * epoch.PIECE_ROWS  # a piece that two share is read by both


def test_drop_last_drops_the_short_batch_only(c):
    assert ids(c.batches(64, seed=1, drop_last=True)) == ids(c.batches(64, seed=1))[:len(c) // 64]


def test_neighbours_are_scattered(c):
    step = together(list(c.batches(64, seed=1)))["row"]
    assert np.count_nonzero(np.diff(step) == 1) < 0.05 * len(c)


def test_splits_share_out_whole_games(work, c):
    c = Cache(f"{work}/cache", validation=0.4)
    train, held_out = c.games("train"), c.games("validation")
    assert len(train) and len(held_out) and sorted([*train["game"], *held_out["game"]]) == list(range(GAMES))
    assert c.count("train") + c.count("validation") == c.count() == len(c)
    rows = np.concatenate([np.arange(game["first"], game["first"] + game["rows"]) for game in held_out])
    assert sorted(flat(ids(c.batches(100, split="validation")))) == rows.tolist()
    with pytest.raises(ValueError, match="split"):
        next(c.batches(10, split="test"))


def test_games_stay_on_their_side_when_others_are_added(tmp_path, played):
    sides, work = [], str(tmp_path)
    for part in (played[:4], played[4:]):
        make.add_shard(work, "parquet", part)
        found = {validation: set(Cache(f"{work}/cache", validation).games("validation")["gid"].tolist())
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
    assert len(pickle.dumps(c)) < 5000
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
        assert list(pool.map(first_labels, [c, c])) == [first_labels(c)] * 2


def test_reading_needs_numpy_and_nothing_else_for_dense_shards(work):
    code = ("import sys; from lib.train.reader import Cache; next(Cache(sys.argv[1]).batches(8));"
            "files = {m.split('.')[0] for m, module in sys.modules.items() if getattr(module, '__file__', None)};"
            "found = files - set(sys.stdlib_module_names);"
            "print(*sorted(name for name in found if name[0] != '_'), 'lib.cli.script' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", code, f"{work}/cache"], cwd=ROOT, capture_output=True, text=True)
    found = set(done.stdout.split())
    if any(meta["layout"] == "parquet" for meta in Cache(f"{work}/cache")._table.metas):
        assert found >= {"lib", "numpy", "pyarrow", "False"}, done.stderr
    else:
        assert found == {"lib", "numpy", "False"}, done.stderr


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
    with pytest.raises(CacheError, match="it is not a directory"):
        Cache(f"{work}/manifest.jsonl")
    for folder in ("xml", "cache/shard_00000"):
        with pytest.raises(CacheError, match="is not the folder cache/ of a work directory"):
            Cache(f"{work}/{folder}")
    (tmp_path / "w" / "cache").mkdir(parents=True)
    shutil.copy(f"{work}/format.json", tmp_path / "w")
    with pytest.raises(CacheError, match=r"has no \.work-id"):
        Cache(tmp_path / "w" / "cache")
    (tmp_path / "link").symlink_to("away")
    with pytest.raises(CacheError, match=f"it is a link to {os.path.realpath(tmp_path)}/away, and nothing is there"):
        Cache(tmp_path / "link")


def test_a_shard_that_went_is_said(tmp_path, work):
    shutil.copytree(f"{work}/cache", tmp_path / "cache")
    c = Cache(tmp_path / "cache")
    shutil.rmtree(tmp_path / "cache" / c.shards[1])
    assert len(c[:10]["labels"]) == 10
    with pytest.raises(CacheError, match="open the cache again"):
        c[-1]
    with pytest.raises(CacheError, match="meta"):  # opened only now: it is told when the shard is asked for
        Cache(tmp_path / "cache")[-1]


@pytest.mark.parametrize("size", [0, 60, 5000])
def test_an_array_that_was_cut_short_is_told_with_its_sizes_and_what_to_do(tmp_path, played, size):
    make.add_shard(str(tmp_path), "dense", played[:2])
    path = tmp_path / "cache" / "shard_00000" / "action_mask.npy"
    whole = path.stat().st_size
    os.truncate(path, size)
    cache = Cache(tmp_path / "cache")
    for ask in (lambda: cache[0], lambda: cache.count(select={"kinds": "call"})):
        with pytest.raises(CacheError) as told:
            ask()
        assert str(told.value) == (
            f"shard_00000: action_mask.npy is cut short: it should have {whole} bytes, and has {size}; "
            f"to see what mends it: make check WORK={tmp_path} (or, if that finds nothing, with DEEP=1)")


def test_an_array_with_fewer_rows_than_its_shard_is_not_read(tmp_path, played):
    make.add_shard(str(tmp_path), "dense", played[:2])
    path = tmp_path / "cache" / "shard_00000" / "labels.npy"
    labels = np.load(path)
    np.save(path, labels[:-1])
    with pytest.raises(CacheError, match=rf"labels.npy has {len(labels) - 1} rows; meta.json says {len(labels)}; to"):
        Cache(tmp_path / "cache")[0]


@pytest.mark.parametrize("wrong", [{"size": 0}, {"size": 1, "worker": 1}, {"size": 1, "start": -1}])
def test_arguments_that_cannot_be_are_refused(c, wrong):
    with pytest.raises(ValueError, match="at least"):
        next(c.batches(**wrong))


@pytest.mark.parametrize(("wrong", "told"), [
    ({"columns": "labels"}, "must be a list of names"),
    ({"select": {"dates": "2017"}}, "must be (first day, last day)"),
    ({"size": 0}, "size=0"), ({"worker": 3}, "worker=3 below num_workers=1")])
def test_an_argument_that_cannot_be_is_named_with_what_it_must_be(c, wrong, told):
    with pytest.raises(ValueError, match=re.escape(told)):
        next(c.batches(**{"size": 8} | wrong))


@pytest.mark.parametrize("wrong", [-0.1, 2, "0.1", None])
def test_a_fraction_of_games_for_validation_is_one(work, wrong):
    with pytest.raises(ValueError, match="must be a number from 0 to 1"):
        Cache(f"{work}/cache", validation=wrong)


# the columns

def ragged_columns():
    return [name for name in columns.ALL if name != "attention_mask"]


def test_ragged_batches_have_the_same_rows_without_padding(c):
    for padded, found in zip(c.batches(100, seed=2), c.batches(100, seed=2, ragged=True), strict=True):
        stands = padded["attention_mask"].astype(bool)
        assert np.array_equal(found["tokens"], padded["tokens"][stands])
        assert np.array_equal(found["scalars"], padded["scalars"][stands])
        assert np.array_equal(np.diff(found["cu_seqlens"]), stands.sum(axis=1))
        for name in ("row", "game", "labels", "action_mask"):
            assert np.array_equal(found[name], padded[name])
        for array in ("origin", "outcome"):
            for name in padded[array].dtype.names:
                assert name == "game" or np.array_equal(found[name], padded[array][name])
        assert {array.dtype.str for array in found.values()} <= {"|u1", "<i2", "<i4", "<i8", "<f4"}


def test_cut_batches_are_as_wide_as_their_longest_row(c):
    for whole, found in zip(c.batches(10, seed=2), c.batches(10, seed=2, cut=True), strict=True):
        width = whole["attention_mask"].sum(axis=1).max()
        for name in ("tokens", "scalars", "attention_mask"):
            assert np.array_equal(found[name], whole[name][:, :width])


def test_buckets_have_rows_of_like_length_and_lose_none(c):
    def padding(batches):
        lengths = [np.diff(b["cu_seqlens"]) for b in batches]
        assert sorted(map(len, lengths))[1:] == [64] * (len(lengths) - 1)
        return sum(n.max() * len(n) for n in lengths) / sum(n.sum() for n in lengths)

    plain, bucketed = (list(c.batches(64, seed=1, window=1500, ragged=True, bucket=bucket)) for bucket in (False, True))
    assert padding(bucketed) < 1.15 < 1.3 < padding(plain)
    assert sorted(flat(ids(bucketed))) == list(range(len(c)))
    means = [np.diff(b["cu_seqlens"]).mean() for b in bucketed]
    assert np.corrcoef(means[1:], means[:-1])[0, 1] < 0.5  # batches of short and of long rows take turns
    assert ids(c.batches(64, seed=1, window=1500, bucket=True, start=11)) == ids(bucketed)[11:]


def test_the_next_decision_of_a_seat_is_found_over_the_whole_hand(c, expected):
    found = together(list(c.batches(64, seed=1, columns=["row", "game", "hand", "seat", "next", "done"])))
    order = np.argsort(found["row"])
    game, hand, seat = (found[name][order].tolist() for name in ("game", "hand", "seat"))
    later, following = {}, []
    for row in reversed(range(len(c))):
        key = game[row], hand[row], seat[row]
        following.append(later.get(key, -1))
        later[key] = row
    assert found["next"][order].tolist() == following[::-1]
    assert np.array_equal(found["done"], found["next"] < 0)
    some = np.random.default_rng(0).permutation(len(c))[:50]
    assert c.rows(some, ["next"])["next"].tolist() == np.array(following[::-1])[some].tolist()


def test_the_changes_of_points_of_all_seats_are_there(c, expected):
    found = c.rows(np.arange(len(c)), ["deltas", "seat", "hand_delta", "points"])
    assert np.array_equal(found["deltas"], expected["deltas"])
    own = found["deltas"][np.arange(len(c)), found["seat"]]
    assert np.array_equal(own, expected["outcome"]["hand_delta"]) and np.array_equal(found["hand_delta"], own)
    assert (found["deltas"].sum(axis=1) % 1000 == 0).all()  # but for riichi sticks it comes to 0
    assert set((found["points"].sum(axis=1) % 1000).tolist()) == {0}


def test_a_column_that_there_is_not_is_refused_and_so_are_deltas_that_are_not_known(tmp_path, c, played):
    with pytest.raises(ValueError, match="columns"):
        next(c.batches(8, columns=["tokens", "reward"]))
    with pytest.raises(ValueError, match="columns"):
        next(c.batches(8, columns=["attention_mask"], ragged=True))
    make.forget_deltas(str(tmp_path), make.add_shard(str(tmp_path), "dense", played[:2]))
    old = Cache(tmp_path / "cache")
    assert len(old[:]["labels"]) == len(old) and not old.games()["ranks"].any()
    with pytest.raises(CacheError, match="so old that"):
        old.rows([1], ["deltas"])


# which rows

def test_the_games_are_told_as_they_are(c, played, expected):
    games = c.games()
    live = [played[i] for i in (0, 2, 3, 4, 5, 1, 6, 7, 8)]
    assert games["gid"].tolist() == [gid for gid, _ in live] and games["game"].tolist() == list(range(GAMES))
    assert games["rows"].tolist() == [len(rows["labels"]) for _, rows in live]
    assert set(games["type"]) == {"00a1"} and games["date"][0] == np.datetime64("2024-01-01T00")
    for game in games:
        rows = c[game["first"]:game["first"] + game["rows"]]
        assert set(rows["game"].tolist()) == {game["game"]}
        seats = rows["origin"]["seat"]
        assert np.array_equal(game["scores"][seats], rows["outcome"]["final_score"])
        assert np.array_equal(game["ranks"][seats], rows["outcome"]["final_rank"])


@pytest.mark.filterwarnings("ignore:.*an epoch has no batch")
@pytest.mark.parametrize(("select", "games"), [
    ({"type": "00a1"}, range(9)), ({"type": "00a9"}, []), ({"gids": make.games(9)[8][0]}, [8]),
    ({"type": ["00a9", "00a1"]}, range(9)),
    ({"dates": ("2024-01-01", "2024-01-01")}, range(9)), ({"dates": ("2024-01-02", None)}, []),
    (lambda games: games["date"].astype(str) >= "2024-01-01T04", [3, 4, 6, 7, 8]),
    ({"games": lambda games: games["game"] < 3, "type": "00a1"}, [0, 1, 2]),
    ({"gids": [make.games(9)[1][0], make.games(9)[8][0], "2024010100gm-00a9-0000-ffffffff"]}, [5, 8]),
])
def test_games_are_selected_before_the_batches_are_made(c, select, games):
    batches = list(c.batches(100, seed=1, select=select))
    assert set(flat(b["game"].tolist() for b in batches)) == set(games)
    assert sum(len(b["row"]) for b in batches) == c.count(select=select)
    assert all(len(b["row"]) == 100 for b in batches[:-1])


@pytest.mark.filterwarnings("ignore:.*an epoch has no batch")
@pytest.mark.parametrize(("kinds", "holds"), [
    ("turn", lambda mask: mask[53] + mask[52] == 0), ("call", lambda mask: mask[53]), ("riichi", lambda mask: mask[52]),
    (["riichi", "win"], lambda mask: mask[52] or mask[49] or mask[50]), ("chi", lambda mask: mask[37:43].any()),
    ("pon", lambda mask: mask[43:45].any()), ("kan", lambda mask: mask[45:48].any()), ([], lambda mask: False),
])
def test_kinds_of_decisions_are_selected_before_the_batches_are_made(c, expected, kinds, holds):
    batches = list(c.batches(50, seed=1, window=800, select={"kinds": kinds}))
    wanted = [i for i, mask in enumerate(expected["action_mask"]) if holds(mask)]
    assert sorted(flat(ids(batches))) == wanted and c.count(select={"kinds": kinds}) == len(wanted)
    assert all(len(b["row"]) == 50 for b in batches[:-1])
    if wanted:
        same_rows(together(batches), expected, flat(ids(batches)))


@pytest.mark.parametrize("select", ["00a9", {"kind": "call"}, {"kinds": "pass"}, 7])
def test_what_selects_nothing_that_there_is_is_refused(c, select):
    with pytest.raises(ValueError, match=r"select|kinds"):
        next(c.batches(8, select=select))


@pytest.mark.parametrize("select", [
    {"type": "00A9"}, {"type": ["00a1", 0xa9]}, {"gids": "2024010100gm-00a1-0000-0"}, {"gids": [b"x"]},
    {"dates": ("2024-02-01", "2024-01-01")}, {"dates": ("2024-13-01", None)}])
def test_what_no_game_can_match_is_refused(c, select):
    for ask in (lambda: next(c.batches(8, select=select)), lambda: c.count(select=select)):
        with pytest.raises(ValueError, match="|".join(["no game has", "after the last", "Month out of range"])):
            ask()


@pytest.mark.parametrize(("size", "options"), [
    (8, {"select": {"type": "00a9"}}), (8, {"select": {"type": "00a1", "dates": (None, "2020-01-01")}}),
    (8, {"split": "validation"}), (10**6, {"drop_last": True}), (8, {"world": 10**6})])
def test_an_epoch_without_a_batch_is_warned_of(work, size, options):
    with pytest.warns(UserWarning, match="an epoch has no batch: split=.* select=.* choose") as told:
        assert list(Cache(f"{work}/cache", validation=0).batches(size, **options)) == []
    assert len(told) == 1 and told[0].filename == __file__


@pytest.mark.parametrize("workers", [1, 3])
def test_an_epoch_can_be_begun_at_its_end_but_not_beyond(c, workers):
    n = c.n_batches(64)
    for worker in range(workers):
        of = {"size": 64, "worker": worker, "num_workers": workers}
        assert list(c.batches(**of, start=n)) == []
        with pytest.raises(ValueError, match=rf"start={n + workers}: an epoch has only {n} batches"):
            next(c.batches(**of, start=n + workers))


# while the cache changes

def compacted(work, layout=None, shard_rows=10**6):
    """Merge all shards of a work directory; the old ones are gone then."""
    manifest = Manifest(work)
    groups, dead = compaction.plan(work, manifest, shard_rows, layout)
    for group in groups:
        compaction.merge(work, manifest, group, layout)
        dead += group
    compaction.remove(work, manifest, dead)


@pytest.mark.parametrize("layout", ["dense", "parquet"])
def test_a_reader_goes_on_when_its_shards_are_compacted_or_converted(tmp_path, work, layout):
    shutil.copytree(work, tmp_path / "w")
    work = str(tmp_path / "w")
    c, again = Cache(f"{work}/cache"), Cache(f"{work}/cache")
    expected = list(c.batches(64, seed=1, window=500, columns=["row", "tokens", "labels"]))
    batches = c.batches(64, seed=1, window=500, columns=["row", "tokens", "labels"])
    found = [next(batches) for _ in range(5)]
    before = c.fingerprint
    compacted(work, layout)
    make.forget_files()
    found += batches
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        make.assert_equal(a, b)
    make.assert_equal(next(c.batches(64, seed=2)), next(again.batches(64, seed=2)))  # not another order either
    assert c.fingerprint == before != Cache(f"{work}/cache").fingerprint


def test_a_reader_whose_games_were_encoded_anew_says_so(tmp_path, played):
    work = str(tmp_path)
    name = make.add_shard(work, "parquet", played[:2])
    c = Cache(tmp_path / "cache")
    make.add_shard(work, "parquet", [(gid, {k: v[:-1] for k, v in rows.items()}) for gid, rows in played[:2]])
    shutil.rmtree(tmp_path / "cache" / name)
    make.forget_files()
    with pytest.raises(CacheError, match="open the cache again"):
        c[0]
