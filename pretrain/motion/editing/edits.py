"""Edits as a recipe writes them, `{trim: {start: 1.0, stop: 2.5}}`: one checked model for each pure function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SerializeAsAny

from pretrain.motion.clip import ClipError, MotionClip
from pretrain.motion.editing import bend, stepping, time
from pretrain.motion.editing.stepping import Gait
from pretrain.motion.stance import plant

ReadFile = Callable[[str], MotionClip]
Seconds = Annotated[float, Field(ge=0, le=600, allow_inf_nan=False)]
Fade = Annotated[float, Field(gt=0.05, le=2, allow_inf_nan=False, description="s")]


class Edit(BaseModel):
    """What is done to a clip. Its fields and its verb are part of the clip's digest and source."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    verb: ClassVar[str] = ""

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        """`clip` edited; `read` gives the clip of another file."""
        raise NotImplementedError

    def __str__(self) -> str:
        given = ", ".join(f"{key} {value}" for key, value in self.model_dump(exclude_defaults=True).items())
        return f"{self.verb} ({given})" if given else self.verb


class Trim(Edit):
    """Keeps a part of the clip."""

    verb = "trim"
    start: Seconds = Field(description="s")
    stop: Seconds = Field(description="s")

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        return time.homed(time.trim(clip, self.start, self.stop))


class Reverse(Edit):
    """Plays the clip backwards: a walk becomes a walk backwards, for its joints; not so for its forces."""

    verb = "reverse"

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        return time.homed(time.reverse(clip))


class Mirror(Edit):
    """Exchanges left and right."""

    verb = "mirror"

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        return replace(clip.mirrored(), name=clip.name, mirror_of="")


class Speed(Edit):
    """Plays the clip faster (above 1) or slower."""

    verb = "speed"
    factor: Annotated[float, Field(ge=0.25, le=4)]

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        return time.speed(clip, self.factor)


class Resample(Edit):
    """Another rate, before what follows; the last clip always has the control rate."""

    verb = "resample"
    rate: Annotated[float, Field(ge=10, le=240)] = Field(description="frames/s")

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        return clip.resampled(self.rate)


class LowPass(Edit):
    """Weakens what changes faster than `cutoff`."""

    verb = "low_pass"
    cutoff: Annotated[float, Field(ge=1, le=7)] = Field(description="Hz, at half power")

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        return clip.low_passed(self.cutoff)


class Hold(Edit):
    """One frame, still."""

    verb = "hold"
    at: Seconds = Field(description="s of the frame")
    seconds: Seconds

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        return time.homed(time.hold(clip, self.at, self.seconds))


class Repeat(Edit):
    """The clip several times, each from where the one before ends."""

    verb = "repeat"
    times: Annotated[int, Field(ge=2, le=100)]
    blend: Fade = 0.2

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        return plant(time.repeat(clip, self.times, self.blend))


class Splice(Edit):
    """Another file goes on where the clip ends."""

    verb = "splice"
    file: str
    start: Seconds = Field(default=0.0, description="s of the other file")
    stop: Seconds | None = Field(default=None, description="s of the other file; its end where left out")
    blend: Fade = 0.3

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        return plant(time.splice(clip, _part(read(self.file), self.start, self.stop), self.blend))


class Precede(Splice):
    """Another file goes before the clip."""

    verb = "precede"

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        return plant(time.splice(_part(read(self.file), self.start, self.stop), clip, self.blend))


class Stand(Edit):
    """Ends in a stand: a held frame of another file, faded in."""

    verb = "stand"
    file: str
    at: Seconds = Field(description="s of its frame")
    seconds: Seconds = Field(default=1.5, description="s that it stands")
    blend: Fade = 0.5

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        still = time.hold(read(self.file), self.at, self.seconds + self.blend)
        return plant(time.splice(clip, still, self.blend))


class Limit(Edit):
    """Clamps hinges that are slightly past their ranges."""

    verb = "limit"

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        return bend.limited(clip)


class Plant(Edit):
    """Locks the standing feet to the ground."""

    verb = "plant"

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        return plant(clip)


class Arc(Edit):
    """Bends the path to the left (above 0) or right."""

    verb = "arc"
    rate: Annotated[float, Field(ge=-2, le=2)] = Field(description="rad/s")

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        return plant(bend.arc(clip, self.rate))


class Stride(Edit):
    """Longer (above 1) or shorter steps in the same time."""

    verb = "stride"
    factor: Annotated[float, Field(ge=0.3, le=1.5)]

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        return plant(bend.stride(clip, self.factor))


class Sway(Edit):
    """Lets a held stand sway over its feet."""

    verb = "sway"
    size: Annotated[float, Field(gt=0, le=0.03)] = Field(default=0.012, description="m")

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        return bend.sway(clip, self.size)


class Arms(Edit):
    """The arms of another file, played to and fro."""

    verb = "arms"
    file: str
    start: Seconds = Field(default=0.0, description="s of the other file")
    stop: Seconds | None = Field(default=None, description="s of the other file; its end where left out")

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        return bend.arms(clip, _part(read(self.file), self.start, self.stop))


class Step(Edit):
    """Steps authored from the first frame, which stands."""

    verb = "step"
    ahead: Annotated[float, Field(ge=-1, le=1)] = Field(default=0.0, description="m/s")
    aside: Annotated[float, Field(ge=-0.8, le=0.8)] = Field(default=0.0, description="m/s, to the left")
    turn: Annotated[float, Field(ge=-3, le=3)] = Field(default=0.0, description="rad/s, to the left")
    seconds: Seconds = 4.0
    time: Annotated[float, Field(ge=0.2, le=1)] = Field(default=0.4, description="s a step")
    width: Annotated[float, Field(ge=0.12, le=0.4)] = Field(default=0.2, description="m between the feet")

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        gait = Gait(self.ahead, self.aside, self.turn, self.seconds, self.time, self.width)
        return stepping.step(clip, gait)


class Reach(Edit):
    """A hand goes to a point before the body, stays there and comes back; the body bends and sinks as it must."""

    verb = "reach"
    hand: Literal["right", "left", "both"] = "right"
    height: Annotated[float, Field(ge=0.1, le=1.9)] = Field(description="m above the ground")
    ahead: Annotated[float, Field(ge=0.0, le=0.7)] = Field(default=0.4, description="m before the hips")
    aside: Annotated[float, Field(ge=-0.6, le=0.6)] = Field(default=0.0, description="m to the left of the shoulder")
    go: Annotated[float, Field(ge=0.4, le=4)] = Field(default=1.0, description="s to get there, and to come back")
    stay: Seconds = 1.0

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        return bend.reach(clip, self)


EDITS: dict[str, type[Edit]] = {
    edit.verb: edit
    for edit in (
        Trim,
        Reverse,
        Mirror,
        Speed,
        Resample,
        LowPass,
        Hold,
        Repeat,
        Splice,
        Precede,
        Stand,
        Limit,
        Plant,
        Arc,
        Stride,
        Sway,
        Arms,
        Step,
        Reach,
    )
}


def parse_edit(value: Any) -> Edit:
    """`{verb: {field: value}}`, or a verb alone, as an edit."""
    if isinstance(value, Edit):
        return value
    verb, fields = (value, {}) if isinstance(value, str) else next(iter(value.items()), ("", {}))
    if verb not in EDITS or (not isinstance(value, str) and len(value) != 1):
        raise ValueError(f"an edit is one of {', '.join(EDITS)} with its fields, as {{trim: {{start: 0, stop: 1}}}}")
    return EDITS[verb].model_validate(fields or {})


AnyEdit = Annotated[SerializeAsAny[Edit], BeforeValidator(parse_edit)]


def _part(clip: MotionClip, start: float, stop: float | None) -> MotionClip:
    last = clip.duration if stop is None else stop
    if not np.isfinite(last) or last <= start:
        raise ClipError(f"{clip.name}: from {start:g} to {last:g} s, but it lasts {clip.duration:.2f} s")
    return time.trim(clip, start, last)
