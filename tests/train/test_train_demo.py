"""bin/train-demo: a small net learns from the rows of a cache; where it cannot, one line says why."""

import importlib.util

import made_rows as make
import pytest
from flows import script

needs_torch = pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="needs PyTorch: TORCH=1")


@needs_torch
def test_a_net_learns_more_than_the_frequencies_tell(tmp_path):
    make.add_shard(str(tmp_path), "parquet", [(gid, make.of(log)) for gid, log in make.games(24)])
    done = script("train-demo", "--work", tmp_path, "--minutes", 0.3)
    assert done.returncode == 0, done.stderr
    head, *lines = (line.split("\t") for line in done.stdout.splitlines())
    assert head == ["kind", "rows", "frequency", "net"]
    found = {line[0]: (int(line[1]), *(float(text.split()[0]) for text in line[2:] if text != "-")) for line in lines}
    assert list(found) == ["turn", "call", "riichi", "all"]
    assert found["all"][0] == sum(found[kind][0] for kind in ("turn", "call", "riichi")) > 100
    assert found["turn"][2] > found["turn"][1] + 5
    assert "learning from " in done.stderr


@needs_torch
def test_too_few_games_are_one_line_on_stderr(tmp_path):
    make.add_shard(str(tmp_path), "dense", [(gid, make.of(log)) for gid, log in make.games(1)])
    done = script("train-demo", "--work", tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1) and "too few games" in done.stderr


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="PyTorch is there")
def test_without_pytorch_one_line_says_what_installs_it(tmp_path):
    done = script("train-demo", "--work", tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1) and "make train-demo" in done.stderr
