"""A hand for clips that turn over or rise: it leads the root along the clip.

Holding upright is no help in a flip, a roll or a crawl, and who lies is to learn how a clip gets up, not how to be lifted. (An
external wrench on the root, as the residual forces of Yuan and Kitani 2020, "Residual force control for agile human behavior
imitation", but given and not learned.)
"""

from __future__ import annotations

import torch
from torch import Tensor

from pretrain.characters.rotations import conjugate, log, multiply, normalize, rotate
from pretrain.characters.state import CharacterState
from pretrain.motion.clip import CONTROL_RATE
from pretrain.motion.library import MotionLibrary
from pretrain.sim.starts import Starts

PULL, BRAKE, STRONGEST = 2000.0, 400.0, 1000.0  # N / m, N s / m, N; the body weighs 490 N
STIFFNESS, DAMPING, FIRMEST = 400.0, 30.0, 300.0  # N m / rad, N m s / rad, N m
HASTE = 1.3  # of a clip's pace, for who is to rise: the clips take up to 3.8 s, and a card asks for 3
STATE = ("clip", "time", "turned", "moved")


class Guide:
    """Which clip each of N worlds is led along, where in it, and where in the world it takes place."""

    def __init__(self, library: MotionLibrary, starts: Starts, rising: Tensor, num_envs: int):
        self.library, self._rising = library, rising
        clips = torch.arange(len(starts.counts)).repeat_interleave(starts.counts)
        ways = rising[clips].nonzero()[:, 0]
        self._scale = starts.frames.flatten(1).std(0).clamp_min(0.03)
        self._ways = starts.frames[ways].flatten(1) / self._scale  # windows of clips that rise, (R, W * F),
        self._way_clips, self._way_times = clips[ways], starts.times[ways]  # and what they are of, (R,)
        self.clip = torch.zeros(num_envs, dtype=torch.long)
        self.time = torch.zeros(num_envs)  # s
        self.turned = torch.zeros(num_envs, 4)  # the clip's world in ours, a turn about z
        self.moved = torch.zeros(num_envs, 3)  # m

    def begin(self, ids: Tensor, clips: Tensor, times: Tensor) -> None:
        """Worlds `ids` (n,) are where clips (n,) are at `times` (n,) s."""
        self.clip[ids], self.time[ids] = clips, times
        self.turned[ids] = torch.tensor([1.0, 0.0, 0.0, 0.0])
        self.moved[ids] = 0.0

    def along(self, ids: Tensor, clips: Tensor, state: CharacterState) -> Tensor:
        """Force and torque on the roots of worlds `ids` (n,) in `state` (n,), a step ahead along clips (n,): (n, 6) N, N m.

        A clip that is asked for anew, or has come to its end, begins where the character is.
        """
        self.time[ids] += 1 / CONTROL_RATE
        over = (self.clip[ids] != clips) | (self.time[ids] > self.library.durations[clips])
        if over.any():
            self._here(ids[over], clips[over], torch.zeros(int(over.sum())), state[over])
        return self._wrench(ids, state)

    def up(self, ids: Tensor, windows: Tensor, state: CharacterState) -> Tensor:
        """The same along the clips that rise, from where they are most like `windows` (n, W * F)."""
        self.time[ids] += HASTE / CONTROL_RATE
        clips = self.clip[ids]
        over = ~self._rising[clips] | (self.time[ids] > self.library.durations[clips])
        if over.any():
            apart = torch.cdist(windows[over] / self._scale, self._ways)
            nearest = apart.argmin(1)
            self._here(ids[over], self._way_clips[nearest], self._way_times[nearest], state[over])
        return self._wrench(ids, state)

    def _here(self, ids: Tensor, clips: Tensor, times: Tensor, state: CharacterState) -> None:
        """Clips (n,) at `times` (n,) s take place where worlds `ids` (n,) are."""
        self.clip[ids], self.time[ids] = clips, times
        there = self.library.at(clips, times)
        off = multiply(state.root_rot, conjugate(there.root_rot))
        about_z = off * torch.tensor([1.0, 0.0, 0.0, 1.0])  # what of it is a turn about z: the least is left
        self.turned[ids] = normalize(about_z + torch.tensor([1e-6, 0.0, 0.0, 0.0]))
        level = torch.tensor([1.0, 1.0, 0.0])
        self.moved[ids] = level * (state.root_pos - rotate(self.turned[ids], there.root_pos))

    def _wrench(self, ids: Tensor, state: CharacterState) -> Tensor:
        aim, turned = self.library.at(self.clip[ids], self.time[ids]), self.turned[ids]
        place = rotate(turned, aim.root_pos) + self.moved[ids]
        force = PULL * (place - state.root_pos) + BRAKE * (rotate(turned, aim.root_vel) - state.root_vel)
        off = log(multiply(multiply(turned, aim.root_rot), conjugate(state.root_rot)))
        torque = STIFFNESS * off + DAMPING * (rotate(turned, aim.root_ang_vel) - state.root_ang_vel)
        return torch.cat([_at_most(force, STRONGEST), _at_most(torque, FIRMEST)], -1)

    def snapshot(self) -> dict[str, Tensor]:
        return {name: getattr(self, name).clone() for name in STATE}

    def restore(self, snapshot: dict[str, Tensor]) -> None:
        for name in STATE:
            setattr(self, name, snapshot[name].clone())


def _at_most(vector: Tensor, length: float) -> Tensor:
    return vector * (length / vector.norm(dim=-1, keepdim=True).clamp_min(length))
