"""Which kernels run: those compiled by numba, or their torch references.

A compiled kernel is one pass over contiguous float32 rows, where torch makes a pass for every
operation. The torch versions are the reference, have gradients and run on any device;
tests/compiled holds both together. `REPERTOIRE_KERNELS=torch` switches all compiled kernels off.
"""

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
# Sums may be reordered, so that the processor adds several numbers at once; the order is that of
# the compiled code, the same at every call. NaN and infinity stay what they are.
FAST_MATH = {"reassoc", "contract", "nsz", "arcp"}


def compile_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` as machine code, compiled at its first call; other threads run beside it.

    The code is kept beside the source or, where that folder is read-only, in the user's cache
    folder; numba compiles again for another processor, another version or a changed source, and
    for a file that a crash cut short. Where neither can be written, nothing is kept.
    """
    import numba

    try:
        kernel = numba.njit(nogil=True, fastmath=FAST_MATH, cache=True)(function)
    except RuntimeError:  # no folder for the cache
        return numba.njit(nogil=True, fastmath=FAST_MATH)(function)
    # numba leaves functions as they are where NUMBA_DISABLE_JIT is set
    stats = getattr(kernel, "stats", None)
    if stats is not None:
        remove_unreadable_files(Path(stats.cache_path), function.__name__)
    return kernel


def remove_unreadable_files(folder: Path, name: str) -> None:
    """Removes what this numba and Python kept in `folder` of the function `name` and cannot read,
    with a line on stderr for each file. numba 0.68 writes them without a sync, and its first call
    raises the unpickler's error where one is cut short.
    """
    import numba

    python = f"py{sys.version_info.major}{sys.version_info.minor}"
    for path in sorted(folder.glob(f"*.{name}-*.{python}*.nb[ic]")):
        with suppress(OSError):  # another user's or process's file is left to numba
            if reason := find_damage(path, numba.__version__):
                path.unlink()
                print(f"{path}: cannot be read ({reason}), compiled again", file=sys.stderr)


def find_damage(path: Path, version: str) -> str:
    """Why a file of numba's cache cannot be read; empty for one that can, and for an index that
    another `version` wrote. An index is its version and its entries, two pickles; compiled code is
    one pickle."""
    stream = io.BytesIO(path.read_bytes())
    try:
        first = pickle.load(stream)
        if path.suffix == ".nbi" and first == version:
            pickle.load(stream)
    except Exception as error:  # a cut pickle may raise anything
        return str(error) or type(error).__name__
    return ""


@cache
def is_compiled() -> bool:
    """Whether compiled kernels are used: REPERTOIRE_KERNELS is not "torch", and numba works here.
    Where it does not, a line on stderr says why. ValueError for another choice."""
    choice = os.environ.get(VARIABLE) or "numba"
    if choice not in CHOICES:
        raise ValueError(f"{VARIABLE}={choice}: there are {' and '.join(CHOICES)}")
    if choice == "torch":
        return False
    try:
        if compile_kernel(_add_one)(1) == 2:
            return True
        reason = "a compiled function returns a wrong number"
    except Exception as error:  # whatever numba raises, torch computes the same
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
