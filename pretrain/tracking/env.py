"""TrackingEnv: characters that follow a clip each from where their episode began in it.
(DeepMimic, Peng et al. 2018, sections 4 and 6.)"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pretrain.characters.rotations import heading_direction, to_heading_frame
from pretrain.characters.state import CharacterState
from pretrain.motion.clip import CONTROL_RATE
from pretrain.rl.rollout import Batch, Step
from pretrain.sim.env import ALL, ActionScale, CharacterEnv
from pretrain.sim.fast_features import style_frame
from pretrain.sim.features import heading_tan_norm
from pretrain.tracking.pose import Pose, make_pose, point_distances, pose_difference
from pretrain.tracking.references import References

PoseReward = Callable[[Pose, Pose], Tensor]  # of characters and their references, (N,)


def observe_targets(
    references: References,
    state: CharacterState,
    clips: Tensor,
    times: Tensor,
    steps: Sequence[int],
) -> Tensor:
    """The reference states of clips (N,) `steps` control steps after `times` (N,) s, as seen from
    `state` (N,): (N, len(steps) * (9 + J)).

    For each step: position from the root 3 m | root rotation 6 | joint angles J rad, position and
    rotation in the character's heading frame."""
    ahead = torch.tensor(steps) / CONTROL_RATE
    reference = references.at(clips[:, None].expand(-1, len(ahead)), times[:, None] + ahead)
    heading = heading_direction(state.root_rot)[:, None].expand(-1, len(ahead), -1)
    offset = to_heading_frame(heading, reference.root_pos - state.root_pos[:, None])
    rotation = heading_tan_norm(heading, reference.root_rot)
    return torch.cat([offset, rotation, reference.joint_pos], -1).flatten(1)


@dataclass(frozen=True)
class TrackingConditions:
    """What is observed of the reference, and when an episode ends."""

    steps: tuple[int, ...]  # control steps ahead of the observed reference states
    max_distance: float  # m
    keep_differences: bool  # in a step's extras, for a discriminator


class TrackingEnv:
    """An `Env` of `pretrain.rl.rollout`: observations are `obs` (N, 13 + 2 J) and `target`, those
    of `observe_targets`.

    An episode terminates in a fall, unless its clip rises from lying, and where root or a key body
    is farther than `max_distance` (m) from the reference. It is truncated by time, and at the end
    of a clip that is not cyclic: what follows is no failure, so the return goes on with the value
    of the last state."""

    def __init__(
        self,
        env: CharacterEnv,
        action_scale: ActionScale,
        references: References,
        reward: PoseReward,
        conditions: TrackingConditions,
    ):
        self.env = env
        self.action_scale = action_scale
        self.references = references
        self.reward = reward
        self.conditions = conditions
        self.num_envs = env.num_envs
        self.reset(torch.arange(self.num_envs))

    def reset(self, ids: Tensor) -> None:
        self.env.reset(ids)

    def times(self) -> Tensor:
        """The present time of each world in its clip, (N,) s."""
        return self.env.clip_time + self.env.age / CONTROL_RATE

    def observe(self, ids: Tensor | None = None) -> Batch:
        rows = ALL if ids is None else ids
        env = self.env
        steps = self.conditions.steps
        target = observe_targets(
            self.references, env.state()[rows], env.clip[rows], self.times()[rows], steps
        )
        return {"obs": env.obs(rows), "target": target}

    def pose(self) -> Pose:
        """The characters', (N,)."""
        return make_pose(self.env.skeleton, self.env.state(), self.env.frames[:, -1])

    def reference(self) -> Pose:
        """The references at the present time, (N,)."""
        state = self.references.at(self.env.clip, self.times())
        return make_pose(self.env.skeleton, state, style_frame(self.env.skeleton, state))

    def step(self, action: Tensor) -> Step:
        """One control step under actions (N, J), in units of the action scale. `extras`:
        `distance` (N,) m, the mean of `point_distances`, and with `keep_differences` `difference`
        (N, F + 4 + J) of `pose_difference`."""
        outcome = self.env.step(self.action_scale.target(action), self.env.clip)
        pose = self.pose()
        reference = self.reference()
        distances = point_distances(pose, reference)
        is_far = distances.amax(-1) > self.conditions.max_distance
        # a clip that rises may lie for as long as it does
        fell = outcome.fell & ~self.env.falls.ground.rising[self.env.clip]
        terminated = fell | outcome.broken | is_far
        extras = {"distance": distances.mean(-1)}
        if self.conditions.keep_differences:
            extras["difference"] = pose_difference(pose, reference)
        ended = self.references.ended(self.env.clip, self.times())
        return Step(
            next_obs=self.observe(),
            reward=~terminated * self.reward(pose, reference),
            terminated=terminated,
            truncated=(outcome.timed_out | ended) & ~terminated,
            extras=extras,
        )

    def snapshot(self) -> dict[str, Any]:
        return self.env.snapshot()

    def restore(self, snapshot: dict[str, Any]) -> None:
        self.env.restore(snapshot)
