"""Edit: base of the edits of a recipe, a validated model with a text form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from pretrain.motion.clip import ClipError, MotionClip
from pretrain.motion.editing.time import trim

ReadFile = Callable[[str], MotionClip]
Seconds = Annotated[float, Field(ge=0, le=600, allow_inf_nan=False)]
Fade = Annotated[float, Field(gt=0.05, le=2, allow_inf_nan=False, description="s")]


class Edit(BaseModel):
    """What is done to a clip. Its verb and fields are part of the clip's digest and source."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    verb: ClassVar[str] = ""
    fewest: ClassVar[int] = 1  # frames required
    revision: ClassVar[int] = 1  # increase it when the same fields give another clip

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        """`clip` edited; `read` gives the clip of another file."""
        raise NotImplementedError

    @property
    def identity(self) -> str:
        """The edit's part of a clip's digest: its text, and its revision from the second on."""
        return str(self) if self.revision == 1 else f"{self} revision {self.revision}"

    def __str__(self) -> str:
        parameters = ", ".join(
            f"{key} {value}" for key, value in self.model_dump(exclude_defaults=True).items()
        )
        return f"{self.verb} ({parameters})" if parameters else self.verb


def part_of(clip: MotionClip, start: float, stop: float | None) -> MotionClip:
    """From `start` to `stop`, s, or to the end."""
    last = clip.duration if stop is None else stop
    if last <= start:
        raise ClipError(
            f"{clip.name}: from {start:g} to {last:g} s, but it lasts {clip.duration:.2f} s"
        )
    return trim(clip, start, last)
