"""The lines of Python in README.md and in docstrings run as they stand there, and the readers of others count what ours
does."""

import ast
import collections
import importlib.util
import json
import re
import subprocess
import sys

import made_rows as make
import pytest
from flows import ROOT, environment, python_in, script

BLOCKS = [lines.replace("from paipu_cache.", "from lib.")  # what pip calls lib/
          for name in ("README.md", "lib/shards/parquet.py", "lib/shards/dense.py") for lines in python_in(name)]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A folder in which data/demo is a work directory with two parquet shards, data/dense with a dense one."""
    here = tmp_path_factory.mktemp("tree")
    played = [(gid, make.of(log)) for gid, log in make.games(5)]
    make.add_shard(str(here / "data/demo"), "parquet", played[:3])
    make.add_shard(str(here / "data/demo"), "parquet", played[3:])
    make.add_shard(str(here / "data/dense"), "dense", played)
    return here


def run(tree, lines):
    """What the lines print."""
    env = environment() | {"PYTHONPATH": str(ROOT), "HF_HOME": str(tree / "hf"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "-c", lines], cwd=tree, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def block(words):
    (found,) = (lines for lines in BLOCKS if words in lines)
    return found


@pytest.mark.parametrize("library", ["duckdb", "polars", "datasets"])
def test_other_readers_of_parquet_count_the_labels_as_cache_cat_does(tree, library):
    if not importlib.util.find_spec(library):
        pytest.skip(f"{library} is not installed")
    lines = block(f"import {library}")
    assert len(lines.strip().splitlines()) == 3
    rows = script("cache-cat", "--work", tree / "data/demo").stdout.splitlines()
    from lib.rows.notation import ACTIONS

    ours = collections.Counter(ACTIONS.index(json.loads(row)["label"]) for row in rows)
    assert ast.literal_eval(run(tree, lines)) == dict(ours) and len(ours) > 30


def test_the_first_lines_show_rows_games_and_batches(tree):
    shown = run(tree, block("for rows in cache.batches("))
    assert shown.startswith(f"{sum(len(make.of(log)['labels']) for _, log in make.games(5))} ")
    assert "(10, 360, 5)" in shown and make.games(1)[0][0] in shown and "int16" in shown


def test_the_last_lines_read_a_dense_cache_with_numpy_alone(tree):
    lines = block("mmap_mode").replace("data/demo", "data/dense")
    assert run(tree, lines).splitlines() == [
        f"shard_00000 ({sum(len(make.of(log)['labels']) for _, log in make.games(5))}, 360, 5)"]


def test_no_block_is_left_out():
    known = ("import duckdb", "import polars", "import datasets", "in cache.batches(", "mmap_mode")
    assert [sum(words in lines for words in known) for lines in BLOCKS] == [1] * len(known)


def test_the_tokens_of_a_row_come_to_numpy_as_the_docstring_says(tree):
    pq = pytest.importorskip("pyarrow.parquet")
    import numpy as np

    row = pq.read_table(tree / "data/demo/cache/shard_00000/rows.parquet").slice(0, 1).to_pylist()[0]
    text = (ROOT / "lib/shards/parquet.py").read_text()
    expression = re.search(r"np\.frombuffer\(row.*?reshape\(.*?\)", text)[0]
    tokens = eval(expression, {"np": np, "row": row})
    assert np.array_equal(tokens, make.of(make.games(1)[0][1])["tokens"][0, :len(tokens)])
