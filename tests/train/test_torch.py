"""The datasets of lib.train.torch: ranks, persistent workers, epochs, going on in the middle. `make test TORCH=1`."""

import itertools
import json
import multiprocessing

import made_rows as make
import numpy as np
import pytest
from flows import python_in

from lib.rows import schema
from lib.train.reader import Cache, CacheError

torch = pytest.importorskip("torch")
from lib.train.torch import Batches, Rows

SIZE = 48


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    work = tmp_path_factory.mktemp("work")
    played = [(gid, make.of(log)) for gid, log in make.games(7)]
    for part, layout in ((played[:4], "parquet"), (played[4:], "dense")):
        make.add_shard(str(work), layout, part)
    return work


@pytest.fixture(scope="module")
def c(work):
    return Cache(work / "cache")


def load(rows, **options):
    return torch.utils.data.DataLoader(rows, batch_size=None, **options)


def numbers(batches):
    return [batch["row"].tolist() for batch in batches]


def rank_of_two(rank, folder, resume, out):
    """One of two ranks: goes through epochs 0 to 2, or from the state `resume` on to 2; puts into `out` what it saw."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    rows = Batches(Cache(f"{folder}/cache"), SIZE, seed=3, split="train", window=800, ragged=True)
    loader = load(rows, num_workers=2, persistent_workers=True, multiprocessing_context="fork")
    if resume:
        rows.load_state_dict(resume)
    seen, state = {}, None
    for epoch in range(rows.epoch, 3):
        rows.set_epoch(epoch)
        seen[epoch] = []
        for batch in loader:
            torch.distributed.all_reduce(torch.ones(1))  # hangs, or fails, where the ranks differ in number
            seen[epoch].append(batch["row"].tolist())
            if epoch == 1 and len(seen[epoch]) == 7:
                state = rows.state_dict(seen=7)
    with open(f"{out}.{rank}", "w") as f:
        json.dump({"seen": seen, "state": state, "length": len(rows)}, f)
    torch.distributed.destroy_process_group()


def two_ranks(work, tmp_path, resume=None):
    (tmp_path / "cache").symlink_to(work / "cache")
    context = multiprocessing.get_context("spawn")
    out = tmp_path / "out"
    ranks = [context.Process(target=rank_of_two, args=(rank, str(tmp_path), resume, str(out))) for rank in range(2)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(120)
        process.kill()
    return [json.loads((tmp_path / f"out.{rank}").read_text()) for rank in range(2)]


def test_two_ranks_with_two_persistent_workers_each_share_three_epochs_and_go_on_in_the_middle(work, c, tmp_path):
    (tmp_path / "whole").mkdir()
    (tmp_path / "again").mkdir()
    whole = two_ranks(work, tmp_path / "whole")
    n = c.count("train")
    for epoch in "012":
        shares = [rank["seen"][epoch] for rank in whole]
        assert len(shares[0]) == len(shares[1]) == whole[0]["length"] == -(-(n // 2) // SIZE)
        rows = [row for share in shares for batch in share for row in batch]
        assert len(rows) == len(set(rows)) and n - len(rows) < 2
    orders = [tuple(itertools.chain(*rank["seen"][epoch])) for rank in whole for epoch in "012"]
    assert len(set(orders)) == 6
    again = two_ranks(work, tmp_path / "again", whole[0]["state"])  # rank 0's state is every rank's
    for before, after in zip(whole, again, strict=True):
        assert set(after["seen"]) == {"1", "2"}
        assert after["seen"]["1"] == before["seen"]["1"][7:] and after["seen"]["2"] == before["seen"]["2"]


@pytest.mark.parametrize("workers", [0, 1, 2, 3])
def test_batches_are_those_of_the_cache(c, workers):
    batches = list(load(Batches(c, 64, seed=1, window=700), num_workers=workers))
    shares = [c.batches(64, seed=1, window=700, worker=w, num_workers=max(1, workers)) for w in range(max(1, workers))]
    expected = [b for turn in itertools.zip_longest(*shares) for b in turn if b]
    assert len(batches) == len(expected) == len(Batches(c, 64))
    for a, b in zip(batches, expected, strict=True):
        assert a["tokens"].dtype == torch.uint8 and a["scalars"].dtype == torch.float32
        assert a["labels"].dtype == torch.int64
        assert all(np.array_equal(a[name].numpy(), b[name]) for name in a.keys() & b.keys())
        assert all(np.array_equal(a[name].numpy(), b[array][name]) for array in ("origin", "outcome")
                   for name in b[array].dtype.names if name != "game")


def test_ordered_workers_give_the_order_of_one(c):
    one, two = (numbers(load(Batches(c, 64, seed=1, ordered=True), num_workers=n)) for n in (0, 2))
    assert one == two


def test_the_epoch_reaches_persistent_workers_and_only_set_epoch_changes_it(c):
    rows = Batches(c, 64, seed=1)
    loader = load(rows, num_workers=2, persistent_workers=True)
    first, same = numbers(loader), numbers(loader)
    rows.set_epoch(1)
    second = numbers(loader)
    assert first == same != second and sorted(itertools.chain(*first)) == sorted(itertools.chain(*second))


@pytest.mark.parametrize("workers", [0, 2])
def test_an_epoch_goes_on_where_its_state_was_taken(c, workers):
    rows = Batches(c, 64, seed=1, window=700)
    rows.set_epoch(4)
    whole = numbers(load(rows, num_workers=workers))
    for seen in (0, 1, 5, len(whole)):
        again = Batches(Cache(c.path), 64, seed=1, window=700)
        again.load_state_dict(json.loads(json.dumps(rows.state_dict(seen))))
        again.set_epoch(again.epoch)
        assert numbers(load(again, num_workers=workers)) == whole[seen:]
        again.set_epoch(5)
        assert len(numbers(load(again, num_workers=workers))) == len(whole)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stateful_loader_goes_on_by_itself(c, workers):
    stateful = pytest.importorskip("torchdata.stateful_dataloader")

    def loader():
        rows = Batches(c, 64, seed=1, window=700)
        rows.set_epoch(2)
        return stateful.StatefulDataLoader(rows, batch_size=None, num_workers=workers)

    whole = numbers(loader())
    first = loader()
    seen = numbers(itertools.islice(iter(first), 7))
    second = loader()
    second.load_state_dict(first.state_dict())
    assert seen + numbers(second) == whole


def test_a_state_of_another_cache_of_other_options_or_workers_is_refused_in_words(c, tmp_path):
    rows = Batches(c, 64, seed=1)
    numbers(load(rows, num_workers=2))
    state = rows.state_dict(3)
    with pytest.raises(ValueError, match="other options"):
        Batches(c, 64, seed=2).load_state_dict(state)
    other = Batches(c, 64, seed=1)
    other.load_state_dict(state)
    with pytest.raises(ValueError, match="begun with num_workers=2"):
        next(iter(load(other)))
    make.add_shard(str(tmp_path), "parquet", [(gid, make.of(log)) for gid, log in make.games(2)])
    with pytest.raises(CacheError, match="has changed since"):
        Batches(Cache(tmp_path / "cache"), 64, seed=1).load_state_dict(state)


def test_options_that_cannot_be_are_told_when_the_dataset_is_made(c):
    with pytest.raises(ValueError, match="columns"):
        Batches(c, 64, columns=["reward"])
    with pytest.raises(ValueError, match="their fields"):
        Batches(c, 64, columns=["tokens", "outcome"])
    with pytest.raises(ValueError, match="at least"):
        Batches(c, 0)


def test_ranks_are_found_in_the_environment_of_torchrun(c, monkeypatch):
    whole = len(Batches(c, 64))
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "3")
    assert len(Batches(c, 64)) == -(-(len(c) // 3) // 64) and len(Batches(c, 64, rank=0, world=1)) == whole


def test_rows_by_number(c):
    rows = Rows(c, "train", {"kinds": "turn"})
    assert len(rows) == c.count("train", {"kinds": "turn"})
    number = int(rows[3]["row"])
    for name, array in c[number].items():
        if name in rows[3]:
            assert np.array_equal(rows[3][name].numpy(), array)
    several = rows[[5, 3]]
    assert several["row"].tolist() == [int(rows[5]["row"]), number]
    batch = next(iter(torch.utils.data.DataLoader(rows, batch_size=16, shuffle=True)))
    assert batch["tokens"].shape == (16, *schema.ARRAYS["tokens"][0])


@pytest.mark.parametrize("options", [{}, {"batch_size": 4}, {"batch_size": 4, "num_workers": 1}])
@pytest.mark.parametrize("ragged", [False, True])
def test_a_loader_that_would_make_batches_of_batches_is_refused(c, options, ragged):
    loader = torch.utils.data.DataLoader(Batches(c, SIZE, ragged=ragged), **options)
    with pytest.raises(ValueError, match=r"DataLoader\(batches, batch_size=None\)$"):
        next(iter(loader))


def test_the_training_lines_of_the_docstring_train(work, capsys):
    (block,) = python_in("lib/train/torch.py")
    assert len(block.splitlines()) <= 25
    torch.manual_seed(0)
    exec(block.replace("data/demo/cache", str(work / "cache")).replace("from paipu_cache.", "from lib."), {})
    losses = [float(line.split()[-1]) for line in capsys.readouterr().out.splitlines()]
    assert len(losses) == 3 and losses[-1] < losses[0] < 4
