"""Imports: the service and the store's runtime load no training code, and packages no tests."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = {"torch", "mujoco", "onnx", "obstore", "cryptography"}


@pytest.mark.parametrize(
    "module",
    [
        "serving.app",
        "skills_store.runtime.library",
        "skills_store.__main__",
        "pretrain.motion.importers",
    ],
)
def test_module_import_loads_no_heavy_dependency(module):
    code = f"import {module}, sys; sys.exit(' '.join({HEAVY} & set(sys.modules)) or 0)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("package", ["pretrain", "hlc", "serving", "skills_store", "benchmarks"])
def test_packages_import_nothing_from_the_tests(package):
    for file in (ROOT / package).rglob("*.py"):
        modules = find_imports(file)
        assert not [name for name in modules if name.split(".")[0] == "tests"], file


def find_imports(file: Path) -> list[str]:
    """The modules that a file names in its import statements."""
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    named = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    return named + [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
