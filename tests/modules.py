"""What the files of the tree import, as full names: `from lib.store import files` and `from . import files` alike."""

import ast

from flows import ROOT

SCRIPTS = [path for path in sorted((ROOT / "bin").iterdir()) if path.read_text().startswith("#!/usr/bin/env python3")]
MODULES = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in (ROOT / "lib").rglob("*.py")}


def imported(path):
    """The full names that a file imports: os, lib.store.files, lib.store.files.write."""
    inside = path.relative_to(ROOT).parent.parts
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = inside[:len(inside) + 1 - node.level] if node.level else ()
            module = ".".join([*start, *filter(None, [node.module])])
            found += [f"{module}.{alias.name}" for alias in node.names]
    return found


def modules_of(path):
    """The modules of lib/ that a file imports."""
    return {name if name in MODULES else name.rpartition(".")[0] for name in imported(path) if name.startswith("lib.")}
