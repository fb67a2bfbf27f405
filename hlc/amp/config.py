"""Configuration of AMP: Hydra's keys become one frozen model. An unknown key is refused."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from hlc.config import ControllerPPOConfig, PlayConfig, RunConfig, with_tasks
from pretrain.ase_config import DiscConfig
from pretrain.rl.field_types import (
    Count,
    Frozen,
    NotNegative,
    Positive,
    Rate,
    Seed,
    Share,
    Worlds,
)


class AmpEvalConfig(Frozen):
    episodes: Count = Field(default=512, description="Episodes of the evaluation")
    seed: Seed = Field(default=4321, description="Seed of all random draws")


class AmpPPOConfig(ControllerPPOConfig):
    """Steps are control steps, and actions are joint targets."""

    horizon: Count = Field(default=16, description="Control steps of each world per iteration")
    gamma: Share = Field(default=0.97, description="Discount per control step")
    lr: Rate = Field(default=5e-5, description="First learning rate, adapted towards target_kl")
    epochs: Count = Field(default=2, description="Passes over a rollout")
    action_std: Positive = Field(
        default=0.1, description="Standard deviation of actions, in units of the action scale"
    )
    noise_color: Annotated[float, Field(ge=0, lt=1)] = Field(
        default=0.5,
        description="Correlation of exploration noise from one control step to the next",
    )
    action_bound: Positive = Field(
        default=2.0, description="In units of the action scale; means beyond it are penalized"
    )


class AmpConfig(RunConfig):
    """The keys that all tasks share. `CONFIG_MODEL` has those of each task besides."""

    skill: str = Field(
        default="humanoid@latest",
        description="Library whose body and clips are used; its networks are not",
    )
    num_envs: Worlds = Field(default=1024, description="Worlds simulated at once")
    samples: Count = Field(
        default=15_000_000,
        description="Control steps summed over the worlds: those of 3 million decisions",
    )
    task_reward_weight: NotNegative = Field(default=0.5, description="Weight of the task reward")
    ppo: AmpPPOConfig = AmpPPOConfig()
    disc: DiscConfig = DiscConfig(conditional=False, disc_grad_penalty=5.0)
    eval: AmpEvalConfig = AmpEvalConfig()

    @model_validator(mode="after")
    def _check_condition(self) -> AmpConfig:
        if self.disc.conditional:
            raise ValueError("disc.conditional true needs a latent, and AMP has none")
        return self


# Returns are summed over decisions of a controller's length, for comparison.
DECISION = PlayConfig().llc_steps

CONFIG_MODEL = with_tasks("AmpConfig", AmpConfig)
