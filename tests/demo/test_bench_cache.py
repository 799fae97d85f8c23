"""bin/bench-cache, through its command line: figures of both layouts, and the cache as it was."""

import os
import subprocess
import sys
from pathlib import Path

import made_rows as make
import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).resolve().parents[2] / "bin" / "bench-cache"


def run(work):
    return subprocess.run([sys.executable, SCRIPT, "--work", work, "--rows", "600"], capture_output=True, text=True)


def test_both_layouts_are_measured_and_nothing_is_left(tmp_path, monkeypatch):
    work, temporary = str(tmp_path / "work"), tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    make.add_shard(work, "parquet", [(gid, make.of(log)) for gid, log in make.games(3)])
    before = sorted((path, path.stat().st_mtime_ns) for path in (tmp_path / "work").rglob("*"))
    done = run(work)
    assert done.returncode == 0, done.stderr
    head, dense, parquet = (line.split("\t") for line in done.stdout.splitlines())
    assert (dense[0], parquet[0], len(head)) == ("dense", "parquet", len(dense))
    assert float(dense[1]) > 7976 > 200 > float(parquet[1]) > 0
    assert all(float(figure) > 0 for figure in dense[1:] + parquet[1:])
    assert sorted((path, path.stat().st_mtime_ns) for path in (tmp_path / "work").rglob("*")) == before
    assert os.listdir(temporary) == []


def test_no_rows_are_one_line_on_stderr(tmp_path):
    done = run(str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
