"""The distance of a slightly disturbed motion from the undisturbed one: a unit of tracking errors,
and the least tolerance of a clip."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Generator, Tensor
from torch.nn.functional import normalize

from pretrain.characters.rotations import multiply
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState
from pretrain.sim.features import style_frame

POSITION_ERROR = 0.02  # m, of the root's height
ROTATION_ERROR = 0.05  # rad, of every joint and of the root
SWAY_RATE = 3.3  # rad/s: an upright body is a pendulum with sqrt(9.81 m/s^2 / 0.9 m)


def small_error(skeleton: Skeleton, states: CharacterState, scale: Tensor, window: int) -> float:
    """Median, over states (T,) of one or more clips, of the distance of a disturbed window.

    In all its frames the root is 2 cm too high or too low, the root and every joint are turned by
    0.05 rad about random axes, and the root's velocities are off by those of a sway of this
    amplitude at an upright body's natural rate, 0.066 m/s and 0.165 rad/s. In units of `scale` (W *
    F)."""
    rng = torch.Generator().manual_seed(0)  # the same clip has the same tolerance on every card
    unit = scale.view(window, -1)[-1]
    off = style_frame(skeleton, _disturbed(skeleton, states, rng)) - style_frame(skeleton, states)
    return float((off / unit).norm(dim=-1).median()) * window**0.5


def _disturbed(skeleton: Skeleton, states: CharacterState, rng: Generator) -> CharacterState:
    count = len(states.root_pos)

    def direction(axes: int) -> Tensor:
        return normalize(torch.randn(count, axes, generator=rng), dim=-1)

    turns = [ROTATION_ERROR * direction(len(joint.axes)) for joint in skeleton.joints]
    lift = torch.zeros(count, 3)
    lift[:, 2] = POSITION_ERROR * direction(1)[:, 0]
    half_turn = torch.cat([torch.ones(count, 1), ROTATION_ERROR / 2 * direction(3)], -1)
    sway = SWAY_RATE * POSITION_ERROR * direction(3)
    rock = SWAY_RATE * ROTATION_ERROR * direction(3)
    return replace(
        states,
        root_pos=states.root_pos + lift,
        root_rot=multiply(normalize(half_turn, dim=-1), states.root_rot),
        root_vel=states.root_vel + sway,
        root_ang_vel=states.root_ang_vel + rock,
        joint_pos=states.joint_pos + torch.cat(turns, -1),
    )
