"""Configuration of AMP: Hydra's keys become one frozen model. An unknown key is refused."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, create_model, field_validator, model_validator

from hlc.config import HlcConfig, PPOConfig
from hlc.tasks import TASKS
from hlc.tasks.task import Task
from pretrain.ase_config import DiscConfig
from pretrain.rl.setting import Count, Frozen, NotNegative, Positive, Seconds, Seed
from skills_store import places


class AmpEvalConfig(Frozen):
    episodes: Count = Field(default=512, description="Episodes of the evaluation")
    seed: Seed = Field(default=4321, description="Seed of all random draws")


class AmpConfig(Frozen):
    """The keys that all tasks share. `CONFIG_MODEL` has those of each task besides. A decision of
    `ppo` is one control step here."""

    task: str = Field(default="reach", description=f"One of {', '.join(TASKS)}")
    skill: str = Field(
        default="humanoid@latest",
        description="Library whose body and clips are used; its networks are not",
    )
    engine: str = Field(default="mujoco", description="Name in pretrain/sim/backend.py")
    threads: Annotated[int, Field(ge=0)] = Field(
        default=0, description="0: all that the process may use"
    )
    seed: Seed = Field(default=0, description="Seed of all random draws")
    num_envs: Count = Field(default=1024, description="Worlds simulated at once")
    episode_length: Seconds = Field(default=10.0, description="s")
    samples: Count = Field(
        default=15_000_000,
        description="Control steps summed over the worlds: those of 3 million decisions",
    )
    task_reward_weight: NotNegative = Field(default=0.5, description="Weight of the task reward")
    checkpoint_interval: Positive = Field(default=60.0, description="s between checkpoints")
    runs: str = Field(
        default_factory=lambda: str(places.runs()),
        description=(
            "Folder of training runs; default $REPERTOIRE_RUNS, else as in skills_store/places.py"
        ),
    )
    store: str = Field(
        default="",
        description="Skill store; default $REPERTOIRE_STORE, else as in skills_store/places.py",
    )
    ppo: PPOConfig = PPOConfig(
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

    @field_validator("task")
    @classmethod
    def _task_exists(cls, name: str) -> str:
        if name not in TASKS:
            raise ValueError(f"no task {name!r}; there are: {', '.join(TASKS)}")
        return name

    @model_validator(mode="after")
    def _check_condition(self) -> AmpConfig:
        if self.disc.conditional:
            raise ValueError("disc.conditional true needs a latent, and AMP has none")
        return self

    def chosen_task(self) -> Task:
        """The task called `task`, with its parameters."""
        return getattr(self, self.task)


# Returns are sums over decisions as long as a controller's, so that both can be compared.
DECISION = HlcConfig().llc_steps


def make_config_model() -> type[AmpConfig]:
    """AmpConfig with a group of keys for each task of the registry: `reach.height_max=1.8`."""
    groups = {name: (task, task()) for name, task in TASKS.items()}
    return create_model("AmpConfig", __base__=AmpConfig, **groups)  # pyright: ignore[reportCallIssue, reportArgumentType]


CONFIG_MODEL = make_config_model()
