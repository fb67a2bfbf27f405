"""The edits that a recipe may name, `{trim: {start: 1.0, stop: 2.5}}`: one checked model for each
pure function.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, SerializeAsAny

from pretrain.motion.editing import space_edits, time_edits
from pretrain.motion.editing.edit import Edit

EDITS: dict[str, type[Edit]] = {
    "trim": time_edits.Trim,
    "reverse": time_edits.Reverse,
    "speed": time_edits.Speed,
    "resample": time_edits.Resample,
    "low_pass": time_edits.LowPass,
    "hold": time_edits.Hold,
    "repeat": time_edits.Repeat,
    "splice": time_edits.Splice,
    "precede": time_edits.Precede,
    "stand": time_edits.Stand,
    "mirror": space_edits.Mirror,
    "limit": space_edits.Limit,
    "plant": space_edits.Plant,
    "settle": space_edits.Settle,
    "arc": space_edits.Arc,
    "stride": space_edits.Stride,
    "sway": space_edits.Sway,
    "balance": space_edits.Balance,
    "arms": space_edits.Arms,
    "step": space_edits.Step,
    "reach": space_edits.Reach,
}


def parse_edit(value: Any) -> Edit:
    """`{verb: {field: value}}`, or a verb alone, as an edit; ValueError lists the verbs."""
    if isinstance(value, Edit):
        return value
    edit = find_edit(value)
    if edit is None:
        expected = "as {trim: {start: 0, stop: 1}}"
        raise ValueError(f"an edit is one of {', '.join(EDITS)} with its fields, {expected}")
    fields = {} if isinstance(value, str) else value[edit.verb]
    return edit.model_validate(fields or {})


def find_edit(value: Any) -> type[Edit] | None:
    """The model for `{verb: {field: value}}` or a verb alone; None where there is no such verb."""
    if isinstance(value, str):
        return EDITS.get(value)
    is_one = isinstance(value, dict) and len(value) == 1
    return EDITS.get(next(iter(value))) if is_one else None


AnyEdit = Annotated[SerializeAsAny[Edit], BeforeValidator(parse_edit)]
