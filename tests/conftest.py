"""Tests import lib from the tree they stand in, whatever the current directory."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import hypothesis
import support

from lib import batch, config, workdir, workers

# examples may be slow on a busy machine: that is no failure
hypothesis.settings.register_profile("ours", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("ours")


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    """No knob of the one who runs the tests gets into them, nor a WORK of theirs into harm's way."""
    for name in [*config.defaults(), "RUN_PID"]:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def work(tmp_path):
    """An empty work directory."""
    path = os.path.join(tmp_path, "work")
    workdir.make(path)
    return path


@pytest.fixture
def encoder(monkeypatch):
    """A synthetic encoder in the place of lib.encoder, for a lib.batch with one job."""
    monkeypatch.setattr(batch, "encoder", support.SyntheticEncoder())
    monkeypatch.setattr(workers, "encoder", batch.encoder)
    return batch.encoder
