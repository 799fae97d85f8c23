"""Scripts find the tree's venv before they import what only the venv has."""

import ast
from pathlib import Path

import pytest

BIN = Path(__file__).resolve().parent.parent / "bin"
SCRIPTS = [path for path in sorted(BIN.iterdir()) if path.read_text().startswith("#!/usr/bin/env python3")]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_cli_is_the_first_module_of_lib_that_a_script_imports(script):
    imports = [node for node in ast.parse(script.read_text()).body if isinstance(node, ast.ImportFrom)]
    first = next(node for node in imports if node.module.split(".")[0] == "lib")
    assert (first.module, first.names[0].name) == ("lib", "cli")
