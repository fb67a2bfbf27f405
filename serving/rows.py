"""Rows: numbers as a client wrote them -> one float32 array, or a Problem that names the number at fault.

Knows the widths and slices of the manifest's tensors. Opens no file, runs no graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from serving.problems import invalid, quoted
from skills_store.manifest import Tensor

UNIT_TOLERANCE = 1e-3  # a client that integrates its own quaternion drifts; beyond this it has a bug
KINDS = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}


@dataclass(frozen=True)
class Rows:
    array: np.ndarray  # (B, width) float32, finite
    one: bool  # the client sent one row, not a batch of one: it is answered in kind

    def __len__(self) -> int:
        return len(self.array)


def read(value: object, field: str, tensor: Tensor, limit: int) -> Rows:
    """One row, a batch of rows, or an object of the tensor's named parts."""
    expected = describe(tensor, limit)
    if isinstance(value, dict) and tensor.slices:
        rows = _from_parts(value, field, tensor, limit, expected)
    else:
        rows = _from_lists(value, field, tensor.width, limit, expected)
    _refuse_unreal_rotations(rows, field, tensor)
    return rows


def read_frames(value: object, field: str, tensor: Tensor, limit: int) -> np.ndarray:
    """A clip: (T, S) states one control step apart."""
    width = tensor.width
    rows = read(value, field, tensor, limit)
    if rows.one:
        raise invalid("wrong_shape", f"{field} is one frame, not a list of frames", field, f"[T, {width}]")
    return rows.array


def paired(first: Rows, second: Rows, names: tuple[str, str]) -> None:
    """No broadcasting: a batch of states goes with exactly as many skills, each written out."""
    if first.one != second.one or len(first) != len(second):
        a, b = ("one row" if rows.one else f"a batch of {len(rows)}" for rows in (first, second))
        raise invalid(
            "batch_mismatch",
            f"{names[0]} is {a}, {names[1]} is {b}",
            names[1],
            "one row each, or two batches of the same length",
        )


def describe(tensor: Tensor, limit: int) -> str:
    """The accepted forms in one line: `[64] or [B, 64], B up to 1024`."""
    width = tensor.width
    parts = ", ".join(f"{part.name}[{part.stop - part.start}]" for part in tensor.slices)
    named = f", or an object of {parts}" if parts else ""
    return f"[{width}] or [B, {width}], B up to {limit}{named}"


def _from_parts(value: dict[str, Any], field: str, tensor: Tensor, limit: int, expected: str) -> Rows:
    names = [part.name for part in tensor.slices]
    for name in value:
        if name not in names:
            message = f"{field} has no part {quoted(name)}; there are: {', '.join(names)}"
            raise invalid("unknown_field", message, field, expected)
    for name in names:
        if name not in value:
            raise invalid("missing_field", f"{field} lacks its part {name}", f"{field}.{name}", expected)
    parts = []
    for part in tensor.slices:
        width, path = part.stop - part.start, f"{field}.{part.name}"
        parts.append(_from_lists(value[part.name], path, width, limit, f"[{width}] or [B, {width}], {part.unit}"))
        if parts[-1].one != parts[0].one or len(parts[-1]) != len(parts[0]):
            message = f"{path} and {field}.{names[0]} differ in how many rows they have"
            raise invalid("batch_mismatch", message, path, "as many rows in every part")
    return Rows(np.concatenate([rows.array for rows in parts], axis=1), parts[0].one)


def _from_lists(value: object, field: str, width: int, limit: int, expected: str) -> Rows:
    if not isinstance(value, list):
        raise invalid("wrong_type", f"{field} is {_kind(value)}, not a list of numbers", field, expected)
    one = not (value and isinstance(value[0], list))
    batch = [value] if one else value
    if len(batch) > limit:
        message = f"{field} has {len(batch)} rows; this service takes up to {limit} at once"
        raise invalid("batch_too_large", message, field, expected)
    for i, row in enumerate(batch):
        _refuse_malformed(row, field if one else f"{field}[{i}]", width, expected)
    array = _array(batch)
    if not np.isfinite(array).all():
        i, j = (int(k) for k in np.argwhere(~np.isfinite(array))[0])
        path = f"{field}[{j}]" if one else f"{field}[{i}][{j}]"
        raise invalid("not_finite", f"{path} is not a finite float32 number", path, expected)
    return Rows(array, one)


def _array(batch: list[list[float]]) -> np.ndarray:
    """What is beyond float32's range becomes inf, and is then refused with its index."""
    with np.errstate(over="ignore"):
        try:
            return np.array(batch, np.float32)
        except OverflowError:  # an integer beyond even a double
            return np.array([[x if abs(x) < 1e39 else np.inf for x in row] for row in batch], np.float32)


def _refuse_malformed(row: object, path: str, width: int, expected: str) -> None:
    """Types before lengths before numpy, which would read "1.5" and null as numbers."""
    if not isinstance(row, list):
        raise invalid("wrong_type", f"{path} is {_kind(row)}, not a list of numbers", path, expected)
    if not set(map(type, row)) <= {float, int}:
        j = next(j for j, number in enumerate(row) if type(number) not in (float, int))
        raise invalid("wrong_type", f"{path}[{j}] is {_kind(row[j])}, not a number", f"{path}[{j}]", expected)
    if len(row) != width:
        raise invalid("wrong_shape", f"{path} has {_count(row)}; it needs {width}", path, expected)


def _refuse_unreal_rotations(rows: Rows, field: str, tensor: Tensor) -> None:
    for part in tensor.slices:
        if "wxyz" not in part.unit:
            continue
        norms = np.linalg.norm(rows.array[:, part.start : part.stop].astype(np.float64), axis=1)
        wrong = np.flatnonzero(np.abs(norms - 1) > UNIT_TOLERANCE)
        if wrong.size:
            where = "" if rows.one else f" in row {wrong[0]}"
            message = f"{field}.{part.name}{where} has norm {norms[wrong[0]]:.6g}; a rotation has 1"
            raise invalid("not_a_rotation", message, f"{field}.{part.name}", "a unit quaternion, within 0.001")


def _count(row: Sequence[object]) -> str:
    return f"{len(row)} number" + ("" if len(row) == 1 else "s")


def _kind(value: object) -> str:
    return KINDS.get(type(value), "a number")
