"""Rows: a client's numbers -> one float32 array, or a Problem that names the invalid number. Also
checks the numbers of a graph's output.

Uses the widths and slices of the manifest's tensors. Opens no file, runs no graph.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from serving.wire.problems import KINDS, Refusal, invalid, quoted
from skills_store.graph import Slice, Tensor

# A client that integrates its own quaternion drifts; beyond this it has a bug.
UNIT_TOLERANCE = 1e-3
SPHERE_TOLERANCE = 1e-2  # a z rounded to float16 or a few decimals is used as it is

Form = Literal["row", "batch", "either"]


@dataclass(frozen=True)
class Rows:
    array: np.ndarray  # (B, width) float32, finite
    single: bool  # the client sent one row, not a batch of one: the reply is one row

    def __len__(self) -> int:
        return len(self.array)


@dataclass(frozen=True)
class InputSpec:
    """The required form of a field: a tensor of the manifest, as one row, a batch of at most
    `limit` rows, or either."""

    field: str
    tensor: Tensor
    limit: int
    form: Form = "either"
    named: bool = False  # the name of a training clip stands for a row, too

    @cached_property
    def row(self) -> InputSpec:
        """The same field as one row."""
        return replace(self, form="row")

    @cached_property
    def batch(self) -> InputSpec:
        """The same field as a batch, and of numbers alone."""
        return replace(self, form="batch", named=False)

    @cached_property
    def width(self) -> int:
        return self.tensor.width

    @cached_property
    def parts(self) -> tuple[Slice, ...]:
        """The parts of a field that is sent as an object."""
        return self.tensor.slices

    @cached_property
    def rotations(self) -> tuple[Slice, ...]:
        return tuple(part for part in self.tensor.slices if "wxyz" in part.unit)

    @cached_property
    def expected(self) -> str:
        """The accepted forms in one line: `[64] or [B, 64], B up to 1024`."""
        parts = ", ".join(f"{part.name}[{part.stop - part.start}]" for part in self.parts)
        by_part = f", or an object of {parts}" if parts else ""
        by_name = ", or a clip's name" if self.named else ""
        up_to = "" if self.form == "row" else f", B up to {self.limit}"
        return f"{self.shape_text(self.width)}{up_to}{by_part}{by_name}"

    def shape_text(self, width: int) -> str:
        """The accepted shapes of `width` numbers."""
        shapes = {"row": f"[{width}]", "batch": f"[B, {width}]"}
        return shapes.get(self.form, " or ".join(shapes.values()))


def read(value: object, spec: InputSpec) -> Rows:
    """One row, a batch of rows, or an object of the tensor's named parts."""
    if isinstance(value, dict) and spec.parts:
        rows = _from_parts(value, spec)
    else:
        rows = _from_numbers(value, spec.field, spec.width, spec, spec.expected)
    _refuse_unreal_rotations(rows, spec)
    return rows


def broadcast(rows: Rows, to: Rows, names: tuple[str, str]) -> Rows:
    """`rows` with as many rows as `to`: one row is repeated, any other number must be equal.
    `names` are the fields' names."""
    if rows.single == to.single and len(rows) == len(to):
        return rows
    if rows.single:
        return Rows(np.repeat(rows.array, len(to), axis=0), to.single)
    expected = "one row" if to.single else f"one row, or a batch of {len(to)}"
    received = "one row" if to.single else f"a batch of {len(to)}"
    message = f"{names[0]} is a batch of {len(rows)}, {names[1]} is {received}"
    raise invalid("batch_mismatch", message, names[0], expected)


def project_to_sphere(rows: Rows, field: str, strict: bool) -> tuple[np.ndarray, bool]:
    """z on the unit sphere, and whether a row was normalised; `strict` refuses such a row."""
    if _one_unit(rows.array, SPHERE_TOLERANCE):
        return rows.array, False
    norms = _norms(rows.array)
    far = np.abs(norms - 1) > SPHERE_TOLERANCE
    if not far.any():
        return rows.array, False
    shortest = int(np.argmin(norms))
    first = int(np.argmax(far))
    if norms[shortest] < UNIT_TOLERANCE:
        path = field if rows.single else f"{field}[{shortest}]"
        message = f"{path} has norm {norms[shortest]:.6g}, and so no direction"
        raise invalid("not_a_direction", message, path, "a point of the unit sphere")
    if strict:
        path = field if rows.single else f"{field}[{first}]"
        message = f"{path} has norm {norms[first]:.6g}; on the unit sphere it is 1"
        expected = f"norm 1, within {SPHERE_TOLERANCE}; or strict: false"
        raise invalid("not_on_the_sphere", message, path, expected)
    return (rows.array / norms[:, None]).astype(np.float32), True


def _from_parts(value: dict[str, Any], spec: InputSpec) -> Rows:
    field = spec.field
    names = [part.name for part in spec.parts]
    for name in value:
        if name not in names:
            message = f"{field} has no part {quoted(name)}; there are: {', '.join(names)}"
            raise invalid("unknown_field", message, field, spec.expected)
    for name in names:
        if name not in value:
            message = f"{field} lacks its part {name}"
            raise invalid("missing_field", message, f"{field}.{name}", spec.expected)
    parts = []
    for part in spec.parts:
        width = part.stop - part.start
        path = f"{field}.{part.name}"
        expected = f"{spec.shape_text(width)}, {part.unit}"
        parts.append(_from_numbers(value[part.name], path, width, spec, expected))
        if parts[-1].single != parts[0].single or len(parts[-1]) != len(parts[0]):
            message = f"{path} and {field}.{names[0]} differ in how many rows they have"
            raise invalid("batch_mismatch", message, path, "as many rows in every part")
    return Rows(np.concatenate([rows.array for rows in parts], axis=1), parts[0].single)


def _from_numbers(value: object, field: str, width: int, spec: InputSpec, expected: str) -> Rows:
    if isinstance(value, np.ndarray):  # float32 already
        single = value.ndim == 1
        batch = value if value.ndim > 1 else value[None]
        if batch.ndim != 2 or not len(batch):
            raise invalid("wrong_shape", f"{field} has shape {list(value.shape)}", field, expected)
        _refuse_form(single, len(batch), field, spec, expected)
        if batch.shape[1] != width:
            raise _wrong_width(batch[0], field if single else f"{field}[0]", width, expected)
        numbers = batch
    elif isinstance(value, list):
        single = not (value and isinstance(value[0], list))
        batch = [value] if single else value
        _refuse_form(single, len(batch), field, spec, expected)
        for i, row in enumerate(batch):
            _refuse_malformed(row, field if single else f"{field}[{i}]", width, expected)
        numbers = _array(batch, width)
    else:
        message = f"{field} is {_kind(value)}, not a list of numbers"
        raise invalid("wrong_type", message, field, expected)
    if not all_finite(numbers):
        raise _not_finite(numbers, field, single, expected)
    return Rows(numbers, single)


def all_finite(numbers: np.ndarray) -> bool:
    """The sum of squares is finite only if all numbers are, and costs a fifth of checking each."""
    return math.isfinite(np.vdot(numbers, numbers)) or bool(np.isfinite(numbers).all())


def require_finite(output: np.ndarray) -> np.ndarray:
    """A graph's output. Raises Refusal if it overflows: finite inputs can cause that, and such
    numbers must not drive a body."""
    if not all_finite(output):
        raise invalid(
            "not_finite",
            "the skill's answer overflows: some input is far out of any character's reach",
        )
    return output


def _array(batch: list[list[float]], width: int) -> np.ndarray:
    """Numbers beyond float32's range become inf, and are then refused with their index."""
    # quicker than numpy at reading lists, and without a warning where a number is too large
    numbers = array("f")
    for row in batch:
        try:
            numbers.fromlist(row)
        except OverflowError:  # an integer beyond even a double
            numbers.fromlist([x if abs(x) < 1e39 else math.inf for x in row])
    return np.frombuffer(numbers, np.float32).reshape(len(batch), width)


def _not_finite(numbers: np.ndarray, field: str, single: bool, expected: str) -> Refusal:
    i, j = (int(k) for k in np.argwhere(~np.isfinite(numbers))[0])
    path = f"{field}[{j}]" if single else f"{field}[{i}][{j}]"
    return invalid("not_finite", f"{path} is not a finite float32 number", path, expected)


def _refuse_form(single: bool, count: int, field: str, spec: InputSpec, expected: str) -> None:
    """Raises Refusal for one row, or for `count` rows, where `spec` has not that form."""
    if spec.form == "row" and not single:
        raise invalid("wrong_shape", f"{field} is a batch, not one row", field, expected)
    if spec.form == "batch" and single:
        raise invalid("wrong_shape", f"{field} is one row, not a batch", field, expected)
    if count > spec.limit:
        message = f"{field} has {count} rows; this service takes up to {spec.limit} at once"
        raise invalid("batch_too_large", message, field, expected)


def _refuse_malformed(row: object, path: str, width: int, expected: str) -> None:
    """Checks types, then lengths, then uses numpy, which would read "1.5" and null as numbers."""
    if not isinstance(row, list):
        raise invalid(
            "wrong_type", f"{path} is {_kind(row)}, not a list of numbers", path, expected
        )
    if not set(map(type, row)) <= {float, int}:
        j = next(j for j, number in enumerate(row) if type(number) not in (float, int))
        raise invalid(
            "wrong_type", f"{path}[{j}] is {_kind(row[j])}, not a number", f"{path}[{j}]", expected
        )
    if len(row) != width:
        raise _wrong_width(row, path, width, expected)


def _refuse_unreal_rotations(rows: Rows, spec: InputSpec) -> None:
    for part in spec.rotations:
        turns = rows.array[:, part.start : part.stop]
        if _one_unit(turns, UNIT_TOLERANCE):
            continue
        norms = _norms(turns)
        wrong = np.flatnonzero(np.abs(norms - 1) > UNIT_TOLERANCE)
        if wrong.size:
            path = f"{spec.field}.{part.name}"
            row_text = "" if rows.single else f" in row {wrong[0]}"
            message = f"{path}{row_text} has norm {norms[wrong[0]]:.6g}; a rotation has 1"
            raise invalid("not_a_rotation", message, path, "a unit quaternion, within 0.001")


def _one_unit(rows: np.ndarray, tolerance: float) -> bool:
    """The common case, one row and on the sphere, at a fifth of the cost."""
    return len(rows) == 1 and abs(math.hypot(*rows[0].tolist()) - 1) <= tolerance


def _norms(rows: np.ndarray) -> np.ndarray:
    """(B, n) -> (B,), in double: a finite float32 has a finite square there."""
    return np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))


def _wrong_width(
    row: Sequence[float] | np.ndarray, path: str, width: int, expected: str
) -> Refusal:
    numbers = f"{len(row)} number" + ("" if len(row) == 1 else "s")
    return invalid("wrong_shape", f"{path} has {numbers}; it needs {width}", path, expected)


def _kind(value: object) -> str:
    return KINDS.get(type(value), "a number")
