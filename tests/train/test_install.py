"""pip installs the reader of the cache as a package of its own, which needs numpy and nothing else."""

import os
import re
import shutil
import subprocess
import sys

import made_rows as make
import pytest
from flows import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture
def tree(tmp_path):
    """A copy of what pip needs of this tree."""
    (tmp_path / "tree").mkdir()
    shutil.copytree(ROOT / "lib", tmp_path / "tree" / "lib", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path / "tree")
    return tmp_path / "tree"


def install(tree, site):
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
                    "--target", site, tree], check=True)


def test_a_module_that_was_deleted_is_not_packed_again_and_a_build_leaves_nothing_in_the_tree(tree, tmp_path):
    old = tree / "lib" / "train" / "old.py"
    old.touch()
    before = sorted(os.listdir(tree))
    install(tree, tmp_path / "first")
    assert (tmp_path / "first" / "paipu_cache" / "train" / "old.py").exists() and sorted(os.listdir(tree)) == before
    old.unlink()
    install(tree, tmp_path / "second")
    packed = {path.name for path in (tmp_path / "second" / "paipu_cache" / "train").iterdir()}
    assert "old.py" not in packed and "reader.py" in packed


def test_the_reader_is_a_package_that_works_far_from_the_tree_as_the_readme_shows(tree, tmp_path):
    install(tree, tmp_path / "site")
    make.add_shard(str(tmp_path / "data" / "demo"), "dense", [(gid, make.of(log)) for gid, log in make.games(2)])
    example = next(block for block in re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
                   if "paipu_cache" in block)
    code = example + ("\nimport sys\nfiles = {m.split('.')[0] for m, module in sys.modules.items()"
                      " if getattr(module, '__file__', None)}\n"
                      "print(*sorted(m for m in files - set(sys.stdlib_module_names) if m[0] != '_'))\n")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True,
                          env={"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path / "site")})
    assert done.returncode == 0, done.stderr
    *shown, modules = done.stdout.splitlines()
    assert len(shown) > 1 and modules == "numpy paipu_cache"
