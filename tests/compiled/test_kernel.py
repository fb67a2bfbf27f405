"""Results are equal with and without compiled kernels and their cache."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from pretrain.compiled.kernel import can_read, remove_unreadable_files

PROGRAM = """
import torch
from pretrain.characters.state import unflatten
from pretrain.compiled.kernel import is_compiled
from pretrain.sim.fast_features import proprioception
state = unflatten(torch.linspace(-1, 1, 2 * 69).view(2, 69))
print(is_compiled(), f"{float(proprioception(state).sum()):.4f}")
"""


def run(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def reference() -> str:
    ran = run(REPERTOIRE_KERNELS="torch")
    assert ran.stderr == ""
    off, number = ran.stdout.split()
    assert off == "False"
    return number


@pytest.fixture(scope="module")
def kept(reference, tmp_path_factory) -> Path:
    """The cache folder of a first run."""
    folder = tmp_path_factory.mktemp("kept")
    assert run(NUMBA_CACHE_DIR=str(folder)).stdout.split() == ["True", reference]
    return folder


def test_cached_code_computes_the_same(reference, kept: Path):
    before = {path: path.stat().st_mtime_ns for path in kept.rglob("*.nb?")}
    assert before
    ran = run(NUMBA_CACHE_DIR=str(kept))
    assert ran.stdout.split() == ["True", reference]
    assert {path: path.stat().st_mtime_ns for path in kept.rglob("*.nb?")} == before


def test_truncated_cached_code_is_compiled_again(reference, kept: Path, tmp_path: Path):
    shutil.copytree(kept, tmp_path, dirs_exist_ok=True)
    (damaged,) = tmp_path.rglob("features._write_observations-*.nbc")
    damaged.write_bytes(damaged.read_bytes()[:40])
    ran = run(NUMBA_CACHE_DIR=str(tmp_path))
    assert ran.stdout.split() == ["True", reference]
    (line,) = ran.stderr.splitlines()
    assert line.startswith(f"{damaged}: cannot be read (")
    assert line.endswith("compiled again")
    assert damaged.stat().st_size > 40  # cached again


@pytest.mark.parametrize("left", [0, 40])
@pytest.mark.parametrize("ending", ["nbc", "nbi"])
def test_truncated_cache_files_are_named_and_removed(
    kept: Path, tmp_path: Path, capsys, ending: str, left: int
):
    shutil.copytree(kept, tmp_path, dirs_exist_ok=True)
    (damaged,) = tmp_path.rglob(f"features._write_observations-*.{ending}")
    damaged.write_bytes(damaged.read_bytes()[:left])
    remove_unreadable_files(damaged.parent, "_write_observations")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{damaged}: cannot be read (")
    assert not damaged.exists()


def test_files_of_another_version_are_left_alone(tmp_path: Path, capsys):
    python = f"py{sys.version_info.major}{sys.version_info.minor}"
    other_numba = tmp_path / f"module.kernel-1.{python}.nbi"
    other_numba.write_bytes(pickle.dumps("0.1") + b"entries of another layout")
    other_python = tmp_path / "module.kernel-1.py399.nbi"
    other_python.write_bytes(b"")
    ours = tmp_path / f"module.kernel-1.{python}.1.nbc"
    ours.write_bytes(b"")
    remove_unreadable_files(tmp_path, "kernel")
    assert sorted(tmp_path.iterdir()) == sorted([other_numba, other_python])
    assert capsys.readouterr().err == f"{ours}: cannot be read (Ran out of input), compiled again\n"


def test_kernels_run_in_python_where_compilation_is_disabled(reference):
    ran = run(NUMBA_DISABLE_JIT="1")
    assert ran.stdout.split() == ["True", reference]


def test_code_is_compiled_without_a_writable_cache(reference):
    only = "_UserProvidedCacheLocator"  # no other folder is tried
    ran = run(NUMBA_CACHE_DIR="/dev/null/kept", NUMBA_CACHE_LOCATOR_CLASSES=only)
    assert ran.stdout.split() == ["True", reference]
    assert ran.stderr == ""


def test_kernel_falls_back_to_torch_with_a_notice_without_numba(reference, tmp_path: Path):
    (tmp_path / "numba.py").write_text("raise ImportError('llvm is missing')\n")
    ran = run(PYTHONPATH=str(tmp_path))
    assert ran.stdout.split() == ["False", reference]
    (line,) = ran.stderr.splitlines()
    assert line == "kernels run in torch, more slowly: numba does not work here (llvm is missing)"


def test_unknown_kernel_setting_is_refused():
    ran = run(REPERTOIRE_KERNELS="cuda")
    assert ran.returncode
    assert "REPERTOIRE_KERNELS=cuda: there are numba and torch" in ran.stderr


def test_only_contiguous_float32_on_the_cpu_is_read():
    x = torch.zeros(4, 4)
    assert can_read(x, x[1:])
    assert not can_read(x, x.T)
    assert not can_read(x.double())
    assert not can_read(torch.zeros(2, device="meta"))
