"""Spatial edits of a clip, and authored motion, as models for recipes."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from pretrain.motion.clip import MotionClip
from pretrain.motion.editing import space
from pretrain.motion.editing.balancing import balance
from pretrain.motion.editing.edit import Edit, ReadFile, Seconds, part_of
from pretrain.motion.editing.footsteps import LIFT, Gait
from pretrain.motion.editing.reaching import Target, reach
from pretrain.motion.editing.settling import settle
from pretrain.motion.editing.stepping import step
from pretrain.motion.stance import plant, replant


class Mirror(Edit):
    """Exchanges left and right."""

    verb = "mirror"

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        return replace(clip.mirrored(), name=clip.name, mirror_of="")


class Limit(Edit):
    """Clamps hinges that are slightly past their ranges."""

    verb = "limit"

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        return space.limited(clip)


class Plant(Edit):
    """Locks the standing feet to the ground."""

    verb = "plant"
    fewest = 2
    level: bool = Field(
        default=False,
        description="also put the ground under the standing feet, and move the root at their speed",
    )

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        return plant(clip) if self.level else replant(clip)


class Settle(Edit):
    """Lays a body that is never in flight on the ground, as one that lies or gets up."""

    verb = "settle"
    fewest = 2

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        return settle(clip)


class Arc(Edit):
    """Bends the path to the left (above 0) or right."""

    verb = "arc"
    fewest = 2
    rate: Annotated[float, Field(ge=-2, le=2)] = Field(description="rad/s")

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        return replant(space.arc(clip, self.rate))


class Stride(Edit):
    """Longer (above 1) or shorter steps in the same time."""

    verb = "stride"
    fewest = 2
    factor: Annotated[float, Field(ge=0.3, le=1.5)]

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        return replant(space.stride(clip, self.factor))


class Sway(Edit):
    """Lets a held stand sway over its feet."""

    verb = "sway"
    size: Annotated[float, Field(gt=0, le=0.03)] = Field(default=0.012, description="m")

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        return space.sway(clip, self.size)


class Balance(Edit):
    """Moves a stand over its feet: a capture's own weight may be above the toes of this body."""

    verb = "balance"
    ahead: Annotated[float, Field(ge=-0.02, le=0.1)] = Field(
        default=0.04, description="m before the ankles, of the center of mass"
    )

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        return balance(clip, self.ahead)


class Arms(Edit):
    """The arms of another file, played to and fro."""

    verb = "arms"
    file: str
    start: Seconds = Field(default=0.0, description="s of the other file")
    stop: Seconds | None = Field(
        default=None, description="s of the other file; its end where left out"
    )

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        return space.arms(clip, part_of(read(self.file), self.start, self.stop))


class Step(Edit):
    """Steps authored from the first frame, which stands."""

    verb = "step"
    ahead: Annotated[float, Field(ge=-1, le=1)] = Field(default=0.0, description="m/s")
    aside: Annotated[float, Field(ge=-0.8, le=0.8)] = Field(
        default=0.0, description="m/s, to the left"
    )
    turn: Annotated[float, Field(ge=-3, le=3)] = Field(
        default=0.0, description="rad/s, to the left"
    )
    seconds: Seconds = 4.0
    time: Annotated[float, Field(ge=0.2, le=1)] = Field(default=0.4, description="s a step")
    width: Annotated[float, Field(ge=0.12, le=0.4)] = Field(
        default=0.2, description="m between the feet"
    )
    lift: Annotated[float, Field(ge=0.02, le=0.2)] = Field(
        default=LIFT, description="m that a foot is lifted"
    )

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        gait = Gait(
            self.ahead, self.aside, self.turn, self.seconds, self.time, self.width, self.lift
        )
        return step(clip, gait)


class Reach(Edit):
    """A hand goes to a point before the body, stays there and comes back; the body bends and sinks
    as it must.
    """

    verb = "reach"
    hand: Literal["right", "left", "both"] = "right"
    height: Annotated[float, Field(ge=0.1, le=1.9)] = Field(description="m above the ground")
    ahead: Annotated[float, Field(ge=0.0, le=0.7)] = Field(
        default=0.4, description="m before the hips"
    )
    aside: Annotated[float, Field(ge=-0.6, le=0.6)] = Field(
        default=0.0, description="m outwards of the shoulder"
    )
    go: Annotated[float, Field(ge=0.4, le=4)] = Field(
        default=1.0, description="s to get there, and to come back"
    )
    stay: Seconds = 1.0

    def apply(self, clip: MotionClip, read: ReadFile) -> MotionClip:
        return reach(
            clip, Target(self.hand, self.height, self.ahead, self.aside, self.go, self.stay)
        )
