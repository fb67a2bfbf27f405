"""Selects the kernels: compiled by numba, or their torch references.

A compiled kernel is one pass over contiguous float32 rows, where torch makes a pass for every
operation. The torch versions are the reference, have gradients and run on any device;
tests/compiled compares both. `REPERTOIRE_KERNELS=torch` switches all compiled kernels off."""

from __future__ import annotations

import io
import os
import pickle
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

VARIABLE = "REPERTOIRE_KERNELS"
CHOICES = ("numba", "torch")
# Sums may be reordered for SIMD; the order is fixed at compilation, the same at every call. NaN and
# infinity are preserved.
FAST_MATH = {"reassoc", "contract", "nsz", "arcp"}


def compile_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` as machine code, compiled at its first call; it releases the GIL.

    The code is cached beside the source or, where that folder is read-only, in the user's cache
    folder; numba recompiles for another processor, another version or a changed source, and where a
    crash truncated a file. Where neither folder can be written, nothing is cached."""
    import numba

    try:
        kernel = numba.njit(nogil=True, fastmath=FAST_MATH, cache=True)(function)
    except RuntimeError:  # no folder for the cache
        return numba.njit(nogil=True, fastmath=FAST_MATH)(function)
    # with NUMBA_DISABLE_JIT numba returns plain functions
    stats = getattr(kernel, "stats", None)
    if stats is not None:
        remove_unreadable_files(Path(stats.cache_path), function.__name__)
    return kernel


def remove_unreadable_files(folder: Path, name: str) -> None:
    """Remove the cache files in `folder` of the function `name` that this numba and Python cannot
    read, with a line on stderr for each. numba 0.68 writes them without a sync, and raises the
    unpickler's error where one is truncated."""
    import numba

    python = f"py{sys.version_info.major}{sys.version_info.minor}"
    for path in sorted(folder.glob(f"*.{name}-*.{python}*.nb[ic]")):
        with suppress(OSError):  # files of other users or processes are left to numba
            if reason := find_damage(path, numba.__version__):
                path.unlink()
                print(f"{path}: cannot be read ({reason}), compiled again", file=sys.stderr)


def find_damage(path: Path, version: str) -> str:
    """Why a file of numba's cache cannot be read; empty for a readable one, and for an index of
    another `version`. An index is two pickles, version and entries; compiled code is one pickle."""
    stream = io.BytesIO(path.read_bytes())
    try:
        first = pickle.load(stream)
        if path.suffix == ".nbi" and first == version:
            pickle.load(stream)
    except Exception as error:  # a truncated pickle may raise anything
        return str(error) or type(error).__name__
    return ""


@cache
def is_compiled() -> bool:
    """Whether compiled kernels are used: REPERTOIRE_KERNELS is not "torch", and numba works here.
    Where it does not, a line on stderr gives the reason. ValueError for another choice."""
    choice = os.environ.get(VARIABLE) or "numba"
    if choice not in CHOICES:
        raise ValueError(f"{VARIABLE}={choice}: there are {' and '.join(CHOICES)}")
    if choice == "torch":
        return False
    try:
        if compile_kernel(_add_one)(1) == 2:
            return True
        reason = "a compiled function returns a wrong number"
    except Exception as error:  # torch is the fallback for any error of numba
        reason = str(error).partition("\n")[0] or type(error).__name__
    print(
        f"kernels run in torch, more slowly: numba does not work here ({reason})", file=sys.stderr
    )
    return False


def _add_one(x: int) -> int:
    return x + 1


def can_read(*tensors: Tensor) -> bool:
    """Whether compiled kernels can read `tensors`: float32 and contiguous, on the CPU."""
    return all(
        x.dtype == torch.float32 and x.device.type == "cpu" and x.is_contiguous() for x in tensors
    )
