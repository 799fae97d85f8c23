"""Tests import lib from the tree they stand in, whatever the current directory."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import faulty
import hypothesis
import support

from lib.cli import origins, settings
from lib.store import workdir

# examples may be slow on a busy machine: that is no failure
hypothesis.settings.register_profile("ours", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("ours")


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    """No knob of the one who runs the tests gets into them, nor a WORK of theirs into harm's way."""
    for name in [*settings.defaults(), *map(origins.key, origins.SWITCHES), "RUN_PID", "MAKEFLAGS", "MAKELEVEL"]:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def work(tmp_path):
    """An empty work directory."""
    path = os.path.join(tmp_path, "work")
    workdir.make(path)
    return path


@pytest.fixture
def encoder(monkeypatch):
    """A synthetic encoder in the place of lib.rows.encoder."""
    return support.encode_here(monkeypatch, support.SyntheticEncoder())


@pytest.fixture(scope="session")
def logs():
    """A few small games by their ids."""
    return faulty.logs()


@pytest.fixture(scope="session")
def ready(tmp_path_factory, logs):
    """writer -> a work directory that is ready for it; made when first asked for."""
    made = {}

    def get(writer):
        if writer not in made:
            made[writer] = tmp_path_factory.mktemp("ready") / "w"
            faulty.WRITERS[writer][1](made[writer], logs)
        return made[writer]

    return get


@pytest.fixture(scope="session")
def right(tmp_path_factory, logs):
    """The rows of an undisturbed run."""
    calm = tmp_path_factory.mktemp("calm") / "w"
    faulty.ready_to_adopt(calm, logs)
    faulty.finish(calm, logs)
    faulty.assert_clean(calm)
    return faulty.rows(calm)
