"""Imports go one way, along the data; and scripts find the tree's venv before they import what only the venv has."""

import graphlib
import re

import pytest
from flows import ROOT
from modules import MODULES, SCRIPTS, imported, modules_of

# the packages along the way of the data: none imports from one that comes after it (a download becomes a log file)
WAY = ("store", "cli", "logs", "download", "mahjong", "rows", "shards", "train", "report", "cluster", "demo")


def place(module):
    """Where on the way a module's package is; the manifest is as early as the store of files that it is made of."""
    return WAY.index("store" if module == "lib.manifest" else module.split(".")[1])


def test_the_packages_are_those_on_the_way():
    assert {name.split(".")[1] for name in MODULES if name.count(".") == 2} == set(WAY)
    assert {name for name in MODULES if name.count(".") == 1} == {"lib.__init__", "lib.manifest"}


@pytest.mark.parametrize("module", sorted(MODULES.keys() - {"lib.__init__"}))
def test_no_module_imports_from_a_later_package(module):
    assert {other for other in modules_of(MODULES[module]) if place(other) > place(module)} == set()


def test_no_modules_import_each_other_in_a_circle():
    graph = {module: modules_of(path) for module, path in MODULES.items()}
    assert sum(map(len, graph.values())) > 100
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError, naming them


def test_the_package_that_pip_installs_has_all_that_the_reader_imports():
    installed = set(re.findall(r'"lib/(\w+)"', (ROOT / "pyproject.toml").read_text()))
    needed, new = set(), {"lib.train.reader"}
    while new:
        needed |= new
        new = set().union(*(modules_of(MODULES[module]) for module in new)) - needed
    assert {module.split(".")[1] for module in needed if module.count(".") > 1} <= installed and len(needed) > 5


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_what_finds_the_venv_is_among_the_first_that_a_script_imports_from_lib(script):
    names = [name for name in imported(script) if name.startswith("lib.")]
    first = [name for name in names if name.startswith("lib.cli.")]
    assert "lib.cli.script" in first and names[:len(first)] == first
