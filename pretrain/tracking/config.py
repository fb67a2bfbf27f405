"""Configuration of motion tracking: Hydra's keys become one frozen model. An unknown key is
refused. Names and values of the rewards are MimicKit's."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from pretrain.rl.field_types import (
    Count,
    Frozen,
    Layers,
    NotNegative,
    Positive,
    Seconds,
    Seed,
    Worlds,
)
from pretrain.rl.ppo_config import PPOConfig
from pretrain.rl.run_fields import RUNS


class DeepMimicConfig(Frozen):
    """The tracking reward: a sum of weights (`_w`) times exp(-scale * error)."""

    reward_pose_w: NotNegative = Field(default=0.5, description="Weight of joint rotations")
    reward_pose_scale: Positive = Field(default=0.25, description="1/rad^2")
    reward_vel_w: NotNegative = Field(default=0.1, description="Weight of the hinges' rates")
    reward_vel_scale: Positive = Field(default=0.01, description="s^2/rad^2")
    reward_root_pose_w: NotNegative = Field(
        default=0.15, description="Weight of the root's position and rotation"
    )
    reward_root_pose_scale: Positive = Field(default=5.0, description="1/m^2")
    reward_root_vel_w: NotNegative = Field(
        default=0.1, description="Weight of the root's velocity and angular velocity"
    )
    reward_root_vel_scale: Positive = Field(default=1.0, description="s^2/m^2")
    reward_key_pos_w: NotNegative = Field(
        default=0.15, description="Weight of head, hands and feet, relative to the root"
    )
    reward_key_pos_scale: Positive = Field(default=10.0, description="1/m^2")
    joint_err_w: tuple[NotNegative, ...] = Field(
        default=(1.0, 0.6, 0.6, 0.4, 0.6, 0.4, 1.0, 0.6, 0.4, 1.0, 0.6, 0.4),
        description=(
            "Weights of the joints in the errors of rotations and velocities, in the order of the "
            "character's joints"
        ),
    )


class AddConfig(Frozen):
    """The adversarial differential discriminator, its loss and reward."""

    hidden: Layers = Field(default=(256, 128), description="Units of the hidden layers")
    lr: Positive = Field(default=1e-4, description="Learning rate of the discriminator")
    rows: Count = Field(default=8192, description="Differences of each rollout that are used")
    minibatch: Count = Field(default=1024, description="Rows of a minibatch")
    disc_reward_scale: Positive = Field(default=2.0, description="Factor of -log(1 - D)")
    disc_grad_penalty: NotNegative = Field(
        default=2.0, description="Weight of the gradient penalty"
    )
    disc_logit_reg: NotNegative = Field(
        default=0.01, description="Weight of the last layer's squared weights"
    )
    disc_buffer_size: Count = Field(default=100_000, description="Differences in the replay buffer")
    disc_replay_samples: Count = Field(
        default=512, description="Of `rows` differences, those that go into the replay buffer"
    )


class AwrConfig(Frozen):
    """Advantage-weighted regression (pretrain/rl/awr.py)."""

    awr_temp: Positive = Field(
        default=1.0, description="Temperature, in standard deviations of the advantage"
    )
    a_weight_clip: Positive = Field(default=20.0, description="Largest weight of an action")


class TrackingEvalConfig(Frozen):
    episodes: Annotated[int, Field(ge=2)] = Field(
        default=32, description="Episodes of each clip in the evaluation"
    )
    seed: Seed = Field(default=4321, description="Seed of all random draws")


class TrackingConfig(Frozen):
    """A policy pi(a|s, reference) that tracks the clips of a recipe."""

    character: str = Field(
        default="humanoid", description="Name in pretrain/characters/character.py"
    )
    motions: str = Field(default="locomotion", description="A bundled recipe, or the path of one")
    reward: Literal["deepmimic", "add"] = Field(
        default="deepmimic",
        description=(
            "deepmimic: that of the group deepmimic. add: of the discriminator of the group add; "
            "that of deepmimic is logged and evaluated"
        ),
    )
    algorithm: Literal["ppo", "awr"] = Field(
        default="ppo",
        description=(
            "ppo: its clipped surrogate. awr: regression by the group awr; ppo.clip has no effect"
        ),
    )
    engine: str = Field(default="mujoco", description="Name in pretrain/sim/backend.py")
    threads: Annotated[int, Field(ge=0)] = Field(
        default=0, description="0: all that the process may use"
    )
    seed: Seed = Field(default=0, description="Seed of all random draws")
    num_envs: Worlds = Field(default=1024, description="Worlds simulated at once")
    episode_length: Seconds = Field(
        default=10.0, description="s; an episode also ends with a clip that is not cyclic"
    )
    tar_obs_steps: Annotated[tuple[Count, ...], Field(min_length=1)] = Field(
        default=(1, 2, 3),
        description="Control steps ahead of the reference states in the observation",
    )
    pose_termination_dist: Positive = Field(
        default=1.0,
        description=(
            "m; an episode ends where the root or a key body is farther than this from the "
            "reference's"
        ),
    )
    samples: Count = Field(default=8_000_000, description="Control steps summed over the worlds")
    checkpoint_interval: Positive = Field(default=60.0, description="s between checkpoints")
    runs: str = RUNS
    ppo: PPOConfig = PPOConfig(gamma=0.95, lr=1e-4, target_kl=0.02, noise_color=0.0)
    deepmimic: DeepMimicConfig = DeepMimicConfig()
    add: AddConfig = AddConfig()
    awr: AwrConfig = AwrConfig()
    eval: TrackingEvalConfig = TrackingEvalConfig()

    @model_validator(mode="after")
    def _check_groups(self) -> TrackingConfig:
        if self.reward != "add" and self.add != AddConfig():
            raise ValueError(f"add.* has no effect with reward={self.reward}; expected reward=add")
        if self.algorithm != "awr" and self.awr != AwrConfig():
            raise ValueError(
                f"awr.* has no effect with algorithm={self.algorithm}; expected algorithm=awr"
            )
        if self.algorithm == "awr" and self.ppo.noise_color:
            raise ValueError(
                f"ppo.noise_color {self.ppo.noise_color} with algorithm=awr; expected 0: "
                "regression to actions would follow noise that the state depends on"
            )
        return self
