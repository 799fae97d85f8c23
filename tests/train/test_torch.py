"""The README's ten lines of PyTorch give every row once, whatever the number of workers. `make test TORCH=1`."""

import re
from pathlib import Path

import made_rows as make
import pytest

from lib.train.reader import Cache

torch = pytest.importorskip("torch")
README = Path(__file__).resolve().parents[2] / "README.md"


@pytest.fixture(scope="module")
def dataset():
    """The class that the README defines."""
    (block,) = (block for block in re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S)
                if "class Rows" in block)
    space = {}
    exec(block, space)
    return space["Rows"]


@pytest.fixture(scope="module")
def c(tmp_path_factory):
    work = str(tmp_path_factory.mktemp("work"))
    make.add_shard(work, "parquet", [(gid, make.of(log)) for gid, log in make.games(4)])
    return Cache(f"{work}/cache")


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_batches_are_those_of_the_cache_in_the_same_order(dataset, c, workers):
    loader = torch.utils.data.DataLoader(dataset(c, 64, seed=1), batch_size=None, num_workers=workers)
    expected = list(c.batches(64, seed=1))
    got = list(loader)
    assert len(got) == len(expected)
    for a, b in zip(got, expected, strict=True):
        assert a["tokens"].dtype == torch.uint8 and a["scalars"].dtype == torch.float32
        assert all((a[name].numpy() == b[name]).all() for name in a)
