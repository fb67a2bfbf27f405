"""What each clip still needs: a hand that holds the character and lets go as it learns, and enough episodes.

Falls teach little: without the hand, 4.8 million samples brought episodes from 33 steps to 40 (docs/training-log.md). Held
upright and led at the clip's pace, the character meets the clips' states from the start, and the hand weakens clip by clip,
as episodes that begin there stay long. (A virtual assistant as in Yu, Turk and Liu 2018, "Learning symmetric and low-energy
locomotion", with a rule for letting go.) What falls early is begun more often.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pretrain.characters.rotations import facing, into_heading, out_of_heading, up_axis
from pretrain.characters.state import CharacterState, unflat
from pretrain.motion.library import MotionLibrary

STIFFNESS = 800.0  # N m / rad; gravity topples a standing body of 50 kg with 440 N m / rad
DAMPING = 60.0  # N m s / rad
PULL = 150.0  # N s / m
STRONGEST = 400.0  # N
MEMORY = 0.9  # share of a clip's record that one turn of the loop leaves
GONE = 0.01  # strength below which a hand is gone for good
MUCH_SHORTER = 0.6  # of the steps that an episode must last for the hand to weaken


def upright_torque(state: CharacterState) -> Tensor:
    """Torque on the root, world frame, that turns its z axis up: (N,) states -> (N, 3) N m. It leaves the heading alone."""
    up = up_axis(state.root_rot)
    lean = torch.stack([up[..., 1], -up[..., 0], torch.zeros_like(up[..., 0])], -1)  # up x z
    level = torch.tensor([1.0, 1.0, 0.0])
    return STIFFNESS * lean - DAMPING * state.root_ang_vel * level


def leading_force(state: CharacterState, pace: Tensor) -> Tensor:
    """Force on the root, world frame, towards the velocity `pace` (N, 3) m/s of the heading frame: (N, 3) N, level."""
    toward = facing(state.root_rot)
    level = torch.tensor([1.0, 1.0, 0.0])
    force = PULL * level * (out_of_heading(toward, pace) - state.root_vel)
    return force * (STRONGEST / force.norm(dim=-1, keepdim=True).clamp_min(STRONGEST))


def paces(library: MotionLibrary) -> Tensor:
    """Mean root velocity of each clip in the heading frame, (C, 3) m/s."""
    states = [unflat(frames) for frames in library.frames.split(library.lengths.tolist())]
    return torch.stack([into_heading(facing(s.root_rot), s.root_vel).mean(0) for s in states])


@dataclass(frozen=True)
class AssistSchedule:
    """The rule: weaker while episodes are longer than `steps` control steps, stronger again if they get MUCH_SHORTER."""

    start: float  # strength in the beginning
    steps: float
    rate: float  # share of its strength that the hand loses in one turn of the loop

    def next(self, strength: Tensor, episode_length: Tensor) -> Tensor:
        """Strengths and mean episode lengths (C,) -> strengths (C,)."""
        weaker, stronger = strength * (1 - self.rate), (strength * (1 + self.rate)).clamp_max(1.0)
        following = torch.where(episode_length > self.steps, weaker, strength)
        following = torch.where(episode_length < MUCH_SHORTER * self.steps, stronger, following)
        return torch.where(strength < GONE, 0.0, following)


NO_ASSIST = AssistSchedule(start=0.0, steps=1.0, rate=0.0)


class Curriculum:
    """How long episodes that begin in each clip last and, from it, how firmly they are held and how often they begin there.

    `focus` bounds how much more or less often than its weight says a clip is begun in; 1 leaves the weights alone.
    """

    def __init__(
        self,
        weights: Tensor,
        *,
        episode_length: int,
        hand: AssistSchedule = NO_ASSIST,
        held: Tensor | None = None,  # (C,) bool, whom the hand holds: all, if nothing else is said
        focus: float = 1.0,
        sought: Tensor | None = None,  # (C,) bool, whom the focus is for: all, if nothing else is said
    ):
        self.hand, self.focus, self.episode_length = hand, focus, episode_length
        self.base = weights
        self.sought = torch.ones_like(weights, dtype=torch.bool) if sought is None else sought
        self.assist = torch.full_like(weights, hand.start)  # (C,) strength of the hand
        if held is not None:
            self.assist *= held
        self.steps, self.falls = torch.zeros_like(weights), torch.zeros_like(weights)

    @property
    def lengths(self) -> Tensor:
        """Steps between falls in episodes begun in each clip, (C,). No fall counts as half of one, no step as an episode."""
        return torch.where(self.steps > 0, self.steps / self.falls.clamp_min(0.5), float(self.episode_length))

    def firm(self, steps: float) -> Tensor:
        """Clips that the hand has let go of, with more than so many steps between falls, (C,) bool."""
        return (self.assist == 0) & (self.lengths > steps)

    @property
    def weights(self) -> Tensor:
        """How often to begin in each clip, (C,) sum 1."""
        if not self.steps.any():
            return self.base
        need = (self.episode_length / self.lengths.clamp_min(1.0)).clamp(1 / self.focus, self.focus)
        need = torch.where(self.sought, need, 1.0)
        return self.base * need / (self.base * need).sum()

    def saw(self, clip: Tensor, fell: Tensor) -> None:
        """One step of worlds whose episodes began in `clip` (N,), and which of them `fell` (N,), or strayed."""
        self.steps.index_add_(0, clip, torch.ones(len(clip)))
        self.falls.index_add_(0, clip, fell.float())

    def turn(self) -> None:
        """Once per turn of the learning loop."""
        self.assist = self.hand.next(self.assist, self.lengths)
        self.steps, self.falls = MEMORY * self.steps, MEMORY * self.falls

    def snapshot(self) -> dict[str, Tensor]:
        return {name: getattr(self, name).clone() for name in ("assist", "steps", "falls")}

    def restore(self, snapshot: dict[str, Tensor]) -> None:
        for name in ("assist", "steps", "falls"):
            setattr(self, name, snapshot[name].clone())
