"""Configuration of AMP: Hydra's keys become one frozen model. An unknown key is refused."""

from __future__ import annotations

from pydantic import Field, model_validator

from hlc.config import ControllerPPOConfig, PlayConfig, RunConfig, with_tasks
from pretrain.ase_config import DiscConfig
from pretrain.rl.field_types import Count, Frozen, NotNegative, Seed, Worlds


class AmpEvalConfig(Frozen):
    episodes: Count = Field(default=512, description="Episodes of the evaluation")
    seed: Seed = Field(default=4321, description="Seed of all random draws")


class AmpConfig(RunConfig):
    """The keys that all tasks share. `CONFIG_MODEL` has those of each task besides. A decision of
    `ppo` is one control step here."""

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
    ppo: ControllerPPOConfig = ControllerPPOConfig(
        horizon=16,
        gamma=0.97,
        lr=5e-5,
        epochs=2,
        minibatch=2048,
        action_std=0.1,
        noise_color=0.5,
        action_bound=2.0,
    )
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
