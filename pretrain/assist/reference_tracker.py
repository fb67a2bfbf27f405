"""The moment of its clip that each world should be at, and a hand that leads the root there.

Holding upright and pulling evenly is no help in a flip, a crawl or a spin, and who lies is to learn how a clip gets up, not
how to be lifted. (An external wrench on the root, as the residual forces of Yuan and Kitani 2020, "Residual force control for
agile human behavior imitation", but given and not learned.)
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.linalg import vector_norm

from pretrain.characters.rotations import conjugate, log, multiply, normalize, rotate
from pretrain.characters.state import CharacterState, unflat
from pretrain.motion.clip import CONTROL_RATE
from pretrain.motion.library import MotionLibrary
from pretrain.sim.blocks import row_blocks
from pretrain.sim.features import LEAST_SPREAD
from pretrain.sim.starts import Starts

PULL, BRAKE, STRONGEST = 2000.0, 400.0, 1000.0  # N / m, N s / m, N; the body weighs 490 N
# Damped three times as much, the root of a walk shakes from one control step to the next.
STIFFNESS, DAMPING, FIRMEST = 400.0, 10.0, 300.0  # N m / rad, N m s / rad, N m
HASTE = 1.3  # of a clip's pace, for who is to rise: the clips take up to 3.8 s, and a card asks for 3
# A PD joint with damping kd lags its target by kd / kp = 0.05 s; aiming that far ahead along the clip's own velocity
# makes up for it (halving the tracking error of playing poses back, measured on a body with twice the damping).
LEAD = 0.05  # s
SPARSE = 4  # of the moments kept, each so many-th is enough to find the nearest
NONE = -1  # no clip yet: the nearest moment is where to begin
ALL = slice(None)
STATE = ("clip", "time", "turned", "moved")


Rows = Tensor | slice  # which of N worlds


def aim(there: CharacterState) -> Tensor:
    """Joint targets (..., J) rad that bring a body to the states (...)."""
    return there.joint_pos + LEAD * there.joint_vel


class ReferenceTracker:
    """Which clip each of N worlds is led along, where in it, and where in the world it takes place.

    A clip that is asked for anew begins at the moment that is most like the character, and one that has come to its end at
    its first, where the character is; but who has risen is to stand, not to lie down again.
    """

    def __init__(self, library: MotionLibrary, starts: Starts, rising: Tensor, num_envs: int):
        self.library, self._starts, self._rising = library, starts, rising
        self._rate = starts.rate
        self._first = torch.cumsum(starts.counts, 0) - starts.counts
        windows = starts.frames.flatten(1)  # (M, W * F)
        frames = starts.frames[:, -1]
        self._moments = ((frames - frames.mean(0)) / frames.std(0).clamp_min(LEAST_SPREAD)).contiguous()  # (M, F)
        self._scale = windows.std(0).clamp_min(LEAST_SPREAD)
        self._windows = windows / self._scale
        states = unflat(starts.states[:, -1])
        self._aims, self._poses = aim(states), states.joint_pos.contiguous()  # (M, J)
        self._rows = torch.arange(0, len(windows), SPARSE)
        self._last, self.moments = torch.cumsum(library.lengths, 0) - 1, int(library.lengths.sum())
        self._of = torch.arange(len(starts.counts)).repeat_interleave(starts.counts)[self._rows]
        self._sparse = self._windows[self._rows]
        self.clip = torch.zeros(num_envs, dtype=torch.long)
        self.time = torch.zeros(num_envs)  # s
        self.turned = torch.zeros(num_envs, 4)  # the clip's world in ours, a turn about z
        self.moved = torch.zeros(num_envs, 3)  # m

    def begin(self, ids: Tensor, clips: Tensor, times: Tensor) -> None:
        """Worlds `ids` (n,) are where clips (n,) are at `times` (n,) s."""
        self.clip[ids], self.time[ids] = clips, times
        self.turned[ids] = torch.tensor([1.0, 0.0, 0.0, 0.0])
        self.moved[ids] = 0.0

    def advance(self, like: Tensor, down: Tensor, windows: Tensor, state: CharacterState) -> None:
        """One control step on, along clips `like` (N,), or one that rises for who is `down` (N,).

        `windows` (N, W * F) and `state` (N,) are where the characters are now.
        """
        down = down & self._rising.any()
        scaled = windows / self._scale
        self._keep_time(scaled)
        self.time += torch.where(down, HASTE, 1.0) / CONTROL_RATE
        over = self.time > self.library.durations[self.clip]
        changed = (self.clip == NONE) | torch.where(down, ~self._rising[self.clip] | over, self.clip != like)
        stays = over & self._rising[self.clip]
        self.time = torch.where(stays, self.library.durations[self.clip], self.time)
        again = (~changed & over & ~stays).nonzero()[:, 0]
        if len(again):
            self._here(again, self.clip[again], torch.zeros(len(again)), state[again])
        anew = changed.nonzero()[:, 0]
        if len(anew):
            ways = torch.where(down[anew, None], self._rising[self._of], self._of == like[anew, None])
            nearest = self._rows[self._nearest(scaled[anew], ways)]
            clips = torch.searchsorted(self._first, nearest, right=True) - 1
            self._here(anew, clips, self._starts.times[nearest], state[anew])

    def _nearest(self, scaled: Tensor, ways: Tensor) -> Tensor:
        """Of the sparse moments that `ways` (n, M) admits, the index of the nearest to `scaled` (n, W * F), (n,)."""
        found: list[Tensor] = []
        columns = len(self._sparse)
        for windows, admitted in zip(row_blocks(scaled, columns), row_blocks(ways, columns), strict=True):
            apart = torch.cdist(windows, self._sparse).masked_fill(~admitted, torch.inf)
            found.append(apart.argmin(1))
        return torch.cat(found)

    def _keep_time(self, scaled: Tensor) -> None:
        """A clock may run a quarter fast or slow: nobody who sees no clock can keep to the hundredth of a second."""
        sooner, later = self.time - 1 / self._rate, self.time + 1 / self._rate
        times = torch.stack([self.time, sooner.clamp_min(0), later])
        best = torch.stack([self._apart(scaled, time) for time in times]).argmin(0)
        self.time = times.gather(0, best[None])[0]

    def _here(self, ids: Tensor, clips: Tensor, times: Tensor, state: CharacterState) -> None:
        """Clips (n,) at `times` (n,) s take place where worlds `ids` (n,) are."""
        self.clip[ids], self.time[ids] = clips, times
        there = self.library.at(clips, times)
        off = multiply(state.root_rot, conjugate(there.root_rot))
        about_z = off * torch.tensor([1.0, 0.0, 0.0, 1.0])  # what of it is a turn about z: the least is left
        self.turned[ids] = normalize(about_z + torch.tensor([1e-6, 0.0, 0.0, 0.0]))
        level = torch.tensor([1.0, 1.0, 0.0])
        self.moved[ids] = level * (state.root_pos - rotate(self.turned[ids], there.root_pos))

    def aim(self) -> Tensor:
        """Joint targets (N, J) rad that bring the bodies to where they should be."""
        return self._aims.index_select(0, self._row(self.time))

    def pose(self) -> Tensor:
        """Joint angles (N, J) rad of where the bodies should be."""
        return self._poses.index_select(0, self._row(self.time))

    def moment(self, ids: Rows = ALL) -> Tensor:
        """Style frames (n, F) of where worlds `ids` (n,) should be, about the clips' mean and in their spread."""
        return self._moments.index_select(0, self._row(self.time[ids], ids))

    def moment_index(self, ids: Rows = ALL) -> Tensor:
        """Of all `moments`, a control step apart, one clip's after the other's: where worlds `ids` (n,) should be, (n,)."""
        clip = self.clip[ids]
        first = torch.where(clip > 0, self._last[clip - 1] + 1, 0)
        return (first + (self.time[ids] * CONTROL_RATE).round().long()).minimum(self._last[clip])

    def apart(self, windows: Tensor, ids: Rows = ALL) -> Tensor:
        """How far `windows` (n, W * F) of worlds `ids` (n,) are from where they should be: root mean square, in the clips'
        spread, (n,)."""
        return self._apart(windows / self._scale, self.time[ids], ids)

    def _apart(self, scaled: Tensor, times: Tensor, ids: Rows = ALL) -> Tensor:
        off = scaled - self._windows.index_select(0, self._row(times, ids))
        return vector_norm(off, dim=-1) / off.shape[-1] ** 0.5

    def _row(self, times: Tensor, ids: Rows = ALL) -> Tensor:
        """Of the moments kept, where the clips of worlds `ids` (n,) are at `times` (n,) s, (n,)."""
        clip = self.clip[ids]
        return self._first[clip] + (times * self._rate).round().long().minimum(self._starts.counts[clip] - 1)

    def wrench(self, ids: Tensor, state: CharacterState) -> Tensor:
        """Force and torque on the roots of worlds `ids` (n,) in `state` (n,), towards their moment: (n, 6) N, N m."""
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
