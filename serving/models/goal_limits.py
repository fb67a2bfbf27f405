"""Clips or refuses a goal beyond the limits that its task declares."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from serving.wire.problems import Refusal, invalid
from skills_store.graph import Tensor
from skills_store.manifest import GoalLimit

TOLERANCE = 1e-4  # of float32, and of limits that were written with few decimals
INDEX = "state_index"  # part of a state machine's memory: the number of its present state


def apply_limits(
    limits: Sequence[GoalLimit], tensor: Tensor, goal: np.ndarray, root: np.ndarray
) -> np.ndarray:
    """Goals (B, G) within `limits`; `root` (B, 3) m holds the characters' positions. Raises Refusal
    for the first goal beyond a limit that does not clip."""
    place = root.astype(np.float64)  # the square of a float32 does not overflow here
    for limit in limits:
        part = next(part for part in tensor.slices if part.name == limit.part)
        columns = slice(part.start, part.stop)
        values = goal[:, columns].astype(np.float64)
        quantity = _measure(limit, values, place)
        allowed = quantity.clip(limit.least, limit.most)
        beyond = np.abs(quantity - allowed) > TOLERANCE
        if not beyond.any():
            continue
        if limit.beyond == "refuse":
            row = int(np.argmax(beyond.any(-1)))
            raise _refuse(limit, _path(row, goal), quantity[row][beyond[row]][0])
        goal = goal.copy()
        goal[:, columns] = _clip(limit, values, place, quantity, allowed)
    return goal


def find_root(tensor: Tensor) -> slice:
    """The columns of a state that hold the root position."""
    return next(slice(x.start, x.stop) for x in tensor.slices if x.name == "root_pos")


def refuse_fractions(tensor: Tensor, memory: np.ndarray) -> None:
    """Raises Refusal for the first memory (B, M) of a state machine whose index is no whole
    number."""
    for part in tensor.slices:
        if part.name != INDEX:
            continue
        index = memory[:, part.start]
        fractional = np.abs(index - index.round()) > TOLERANCE
        if fractional.any():
            row = int(np.argmax(fractional))
            path = f"{_path(row, memory)}.{INDEX}"
            message = f"{path} is {index[row]:.7g}, not a whole number"
            raise invalid("goal_out_of_range", message, path, "a whole number")


def refuse_no_direction(z: np.ndarray) -> None:
    """Raises Refusal for the first z (B, D) of zeros, which a state machine gives for a memory that
    is in none of its states."""
    present = z.any(axis=-1)
    if not present.all():
        path = _path(int(np.argmin(present)), z)
        message = f"the controller has no z for {path}: it is in no state of the machine"
        raise invalid("goal_out_of_range", message, path, "a memory that the machine returned")


def _path(row: int, rows: np.ndarray) -> str:
    return "goal" if len(rows) == 1 else f"goal[{row}]"


def _measure(limit: GoalLimit, values: np.ndarray, root: np.ndarray) -> np.ndarray:
    """The limited quantity of a part's values (B, n): (B, n) for `value`, else (B, 1)."""
    if limit.quantity == "height":
        return values[:, 2:3]
    if limit.quantity == "distance":
        return np.linalg.norm(values[:, :2] - root[:, :2], axis=-1, keepdims=True)
    if limit.quantity == "length":
        return np.linalg.norm(values, axis=-1, keepdims=True)
    return values


def _clip(
    limit: GoalLimit,
    values: np.ndarray,
    root: np.ndarray,
    quantity: np.ndarray,
    allowed: np.ndarray,
) -> np.ndarray:
    """The part's values (B, n) with the quantity at its limit."""
    if limit.quantity == "value":
        return allowed
    clipped = values.copy()
    if limit.quantity == "height":
        clipped[:, 2:3] = allowed
        return clipped
    scale = allowed / np.maximum(quantity, TOLERANCE)
    if limit.quantity == "length":
        return values * scale
    clipped[:, :2] = root[:, :2] + (values[:, :2] - root[:, :2]) * scale
    return clipped


def _refuse(limit: GoalLimit, path: str, value: float) -> Refusal:
    unit = f" {limit.unit}" if limit.unit else ""
    what = "" if limit.quantity == "value" else f" has the {limit.quantity}"
    verb = " is" if limit.quantity == "value" else ""
    message = f"{path}.{limit.part}{what}{verb} {value:.4g}{unit}, out of range"
    expected = f"{limit.least:.4g} to {limit.most:.4g}{unit}"
    return invalid("goal_out_of_range", message, f"{path}.{limit.part}", expected)
