"""The shares of an epoch: disjoint, complete, equal where they must be, and gone on with where they were left."""

import itertools
from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lib.train import epoch


@given(n=st.integers(0, 500), size=st.integers(1, 40), workers=st.integers(1, 9), start=st.integers(0, 60))
def test_lanes_asked_in_turn_give_all_batches_and_what_is_left_of_them(n, size, workers, start):
    def batches(worker):
        first, count = epoch.lane(n, size, worker, workers)
        return [range(first + at, first + min(at + size, count)) for at in range(0, count, size)]

    lanes = [batches(worker) for worker in range(workers)]
    whole = [batch for turn in itertools.zip_longest(*lanes) for batch in turn if batch is not None]
    assert sorted(itertools.chain(*whole)) == list(range(n))
    assert [len(batch) for batch in whole[:-1]] == [size] * (len(whole) - 1)
    assert all(lanes[i % workers][i // workers] == batch for i, batch in enumerate(whole))
    rest = [lanes[lane][taken:] for lane, taken in (epoch.taken(start, worker, workers) for worker in range(workers))]
    assert [b for turn in itertools.zip_longest(*rest) for b in turn if b is not None] == whole[start:]


@given(total=st.integers(0, 10**6), world=st.integers(1, 16))
def test_ranks_have_equal_shares_one_after_the_other(total, world):
    shares = [epoch.share(total, rank, world) for rank in range(world)]
    assert len({n for _, n in shares}) == 1 and total - sum(n for _, n in shares) < world
    assert [first for first, _ in shares] == [rank * shares[0][1] for rank in range(world)]


@given(sizes=st.lists(st.integers(1, 900), max_size=60), data=st.data())
def test_pieces_are_runs_of_whole_games_of_one_shard(sizes, data):
    n = len(sizes)
    part = np.sort(np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)), int))
    chosen = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)), bool)
    table = SimpleNamespace(part=part, rows=np.array(sizes, int))
    found = epoch.pieces(table, chosen, table.rows)
    assert [game for a, b, _ in found for game in range(a, b)] == np.flatnonzero(chosen).tolist()
    for a, b, rows in found:
        assert len(set(part[a:b])) == 1 and rows == table.rows[a:b].sum()
        assert table.rows[a:b - 1].sum() < epoch.PIECE_ROWS
    for (a, b, rows), (c, _, _) in itertools.pairwise(found.tolist()):
        assert rows >= epoch.PIECE_ROWS or b != c or part[a] != part[c]  # no piece is shorter than it must be


@given(sizes=st.lists(st.integers(1, 50), min_size=1, max_size=40), rows=st.integers(1, 200), data=st.data())
def test_windows_cover_a_stretch_of_the_positions_once(sizes, rows, data):
    pieces = np.array([[i, i + 1, n] for i, n in enumerate(sizes)])
    total = sum(sizes)
    first = data.draw(st.integers(0, total - 1))
    n = data.draw(st.integers(0, total - first))
    begins, found = np.cumsum(sizes) - sizes, []
    for part, skip, count in epoch.windows(pieces, first, n, rows):
        positions = np.concatenate([begins[i] + np.arange(size) for i, _, size in part.tolist()])
        found += positions[skip:skip + count].tolist()
        assert count == len(positions[skip:skip + count]) and count < rows + 2 * max(sizes)
    assert found == list(range(first, first + n))


@given(n=st.integers(0, 300), size=st.integers(1, 40), before=st.integers(0, 39), seed=st.integers(0, 9))
def test_buckets_change_the_order_of_the_rows_and_nothing_else(n, size, before, seed):
    order = np.random.default_rng(seed).permutation(n)
    found = epoch.bucketed(order, np.arange(n) % 7, size, before, seed, 0, 0)
    assert sorted(found.tolist()) == list(range(n))
