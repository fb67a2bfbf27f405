"""Edits along a clip's time, as models for recipes."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from pretrain.motion.clip import MotionClip
from pretrain.motion.editing import time
from pretrain.motion.editing.edit import Edit, Fade, ReadFile, Seconds, part_of
from pretrain.motion.stance import replant


class Trim(Edit):
    """Keeps a part of the clip."""

    verb = "trim"
    start: Seconds = Field(description="s")
    stop: Seconds = Field(description="s")

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        return time.homed(time.trim(clip, self.start, self.stop))


class Reverse(Edit):
    """Plays the clip backwards: a walk becomes a walk backwards, for its joints; not so for its
    forces.
    """

    verb = "reverse"

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        return time.homed(time.reverse(clip))


class Speed(Edit):
    """Plays the clip faster (above 1) or slower."""

    verb = "speed"
    fewest = 2
    factor: Annotated[float, Field(ge=0.25, le=4)]

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        return time.speed(clip, self.factor)


class Resample(Edit):
    """Another rate, before what follows; the last clip always has the control rate."""

    verb = "resample"
    fewest = 2
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
    fewest = 2
    revision = 2  # the first added a frame at every join
    times: Annotated[int, Field(ge=2, le=100)]
    blend: Fade = 0.2

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        return replant(time.repeat(clip, self.times, self.blend))


class Splice(Edit):
    """Another file goes on where the clip ends."""

    verb = "splice"
    file: str
    start: Seconds = Field(default=0.0, description="s of the other file")
    stop: Seconds | None = Field(
        default=None, description="s of the other file; its end where left out"
    )
    blend: Fade = 0.3

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        return replant(
            time.splice(clip, part_of(read(self.file), self.start, self.stop), self.blend)
        )


class Precede(Splice):
    """Another file goes before the clip."""

    verb = "precede"

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        other = part_of(read(self.file), self.start, self.stop)
        both = replant(time.splice(other, clip, self.blend))
        return replace(both, name=clip.name, warnings=clip.warnings)


class Stand(Edit):
    """Ends in a stand: a held frame of another file, faded in."""

    verb = "stand"
    file: str
    at: Seconds = Field(description="s of its frame")
    seconds: Seconds = Field(default=1.5, description="s that it stands")
    blend: Fade = 0.5

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        still = time.hold(read(self.file), self.at, self.seconds + self.blend)
        return replant(time.splice(clip, still, self.blend))
