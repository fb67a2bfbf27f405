"""DeepMimic's reward: known values, term by term."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import pytest
import torch

from pretrain.characters.kinematics import forward
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState
from pretrain.motion.library import MotionLibrary
from pretrain.tracking.config import DeepMimicConfig
from pretrain.tracking.deepmimic_reward import deepmimic_reward, joint_weights
from tests.tracking.poses import clip_states, pose_of, turned

DEFAULT = DeepMimicConfig()
WEIGHTS = {
    "pose": DEFAULT.reward_pose_w,
    "vel": DEFAULT.reward_vel_w,
    "root_pose": DEFAULT.reward_root_pose_w,
    "root_vel": DEFAULT.reward_root_vel_w,
    "key_pos": DEFAULT.reward_key_pos_w,
}


def only(term: str) -> DeepMimicConfig:
    """The reward of one term, of weight 1."""
    weights = {f"reward_{name}_w": float(name == term) for name in WEIGHTS}
    return DeepMimicConfig.model_validate(weights)


def reward(
    skeleton: Skeleton, state: CharacterState, other: CharacterState, cfg: DeepMimicConfig
) -> torch.Tensor:
    return deepmimic_reward(
        pose_of(skeleton, state),
        pose_of(skeleton, other),
        cfg,
        skeleton,
        joint_weights(cfg, skeleton),
    )


def moved(state: CharacterState, field: str, column: int, by: float) -> CharacterState:
    values = getattr(state, field).clone()
    values[:, column] += by
    return replace(state, **{field: values})


def test_reward_of_the_reference_itself_is_the_sum_of_the_weights(
    library: MotionLibrary, skeleton: Skeleton
) -> None:
    states = clip_states(library, 20)
    expected = torch.full((20,), sum(WEIGHTS.values()))
    torch.testing.assert_close(
        reward(skeleton, states, states, DEFAULT), expected, atol=1e-4, rtol=0
    )
    assert sum(WEIGHTS.values()) == pytest.approx(1)


@dataclass(frozen=True)
class Error:
    """One number of a state that is off `by` so much, and the exponent of its term."""

    term: str
    field: str
    column: int
    by: float
    exponent: float


ERRORS = (
    Error("root_pose", "root_pos", 0, 0.3, 5.0 * 0.3**2),
    Error("root_vel", "root_vel", 1, 0.5, 0.5**2),
    Error("root_vel", "root_ang_vel", 2, 2.0, 0.1 * 2.0**2),
    Error("vel", "joint_vel", 0, 5.0, 0.01 * 1.0 * 5.0**2),  # of the torso, whose weight is 1
    Error("vel", "joint_vel", 9, 5.0, 0.01 * 0.4 * 5.0**2),  # of the right elbow
    Error("pose", "joint_pos", 9, 0.5, 0.25 * 0.4 * 0.5**2),
)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: f"{error.field}-{error.column}")
def test_one_error_lowers_its_term_by_the_stated_scale(
    library: MotionLibrary, skeleton: Skeleton, error: Error
) -> None:
    states = clip_states(library, 20)
    off = moved(states, error.field, error.column, error.by)
    expected = torch.full((20,), math.exp(-error.exponent))
    torch.testing.assert_close(
        reward(skeleton, off, states, only(error.term)), expected, atol=1e-3, rtol=0
    )


def test_turning_the_body_in_place_costs_a_tenth_of_its_squared_angle(
    library: MotionLibrary, skeleton: Skeleton
) -> None:
    states = clip_states(library, 20)
    off = replace(turned(states, 0.8, torch.zeros(3)), root_pos=states.root_pos)
    expected = torch.full((20,), math.exp(-5.0 * 0.1 * 0.8**2))
    torch.testing.assert_close(
        reward(skeleton, off, states, only("root_pose")), expected, atol=1e-3, rtol=0
    )
    assert (reward(skeleton, off, states, only("key_pos")) > 0.999).all()


def test_a_bent_elbow_costs_ten_times_the_squared_way_of_the_hand(
    library: MotionLibrary, skeleton: Skeleton
) -> None:
    states = clip_states(library, 20)
    off = moved(states, "joint_pos", 9, 0.5)
    hand = skeleton.bodies.index("right_hand")
    way = places(skeleton, off)[:, hand] - places(skeleton, states)[:, hand]
    assert way.norm(dim=-1).min() > 0.05
    torch.testing.assert_close(
        reward(skeleton, off, states, only("key_pos")),
        (-10.0 * way.square().sum(-1)).exp(),
        atol=1e-3,
        rtol=0,
    )


def places(skeleton: Skeleton, state: CharacterState) -> torch.Tensor:
    """Where the bodies are, (N, B, 3) m."""
    return forward(skeleton, state.root_pos, state.root_rot, state.joint_pos)[0]


def test_a_wrong_number_of_joint_weights_is_an_error_that_lists_the_joints(
    skeleton: Skeleton,
) -> None:
    with pytest.raises(ValueError, match=r"joint_err_w has 1 numbers; expected 12, for torso, hea"):
        joint_weights(DeepMimicConfig(joint_err_w=(1.0,)), skeleton)
