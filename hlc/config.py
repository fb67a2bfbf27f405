"""Configuration of controller training: Hydra's groups become one frozen model. An unknown key is
refused."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

from pydantic import Field, create_model, field_validator, model_validator

from hlc.tasks import TASKS
from hlc.tasks.task import Task
from pretrain.rl.field_types import (
    Count,
    Frozen,
    Layers,
    NotNegative,
    Positive,
    Rate,
    Seconds,
    Seed,
    Share,
    Worlds,
)
from pretrain.rl.run_fields import RUNS, STORE


class ControllerPPOConfig(Frozen):
    """Steps are decisions, of `llc_steps` control steps each."""

    horizon: Count = Field(default=8, description="Decisions of each world per iteration")
    gamma: Share = Field(default=0.95, description="Discount per decision")
    lam: Share = Field(default=0.95, description="Lambda of GAE")
    clip: Positive = Field(default=0.2, description="PPO's epsilon, of the probability ratio")
    lr: Rate = Field(default=3e-4, description="First learning rate, adapted towards target_kl")
    target_kl: Positive = Field(
        default=0.04, description="nats; mean over the minibatches of one fit"
    )
    value_lr: Positive = Field(default=5e-4, description="Learning rate of the value net")
    epochs: Count = Field(default=5, description="Passes over a rollout")
    minibatch: Count = Field(default=2048, description="Rows of a minibatch")
    hidden: Layers = Field(default=(256, 256), description="Units of the hidden layers")
    action_std: Positive = Field(
        default=0.2,
        description="Standard deviation of each number of z, before the projection to the sphere",
    )
    noise_color: Annotated[float, Field(ge=0, lt=1)] = Field(
        default=0.85, description="Correlation of exploration noise from one decision to the next"
    )
    action_bound: Positive = Field(default=1.0, description="Means beyond it are penalized")
    action_bound_weight: NotNegative = Field(default=1.0, description="Weight of that penalty")


class BaselineConfig(Frozen):
    """The baselines of a planner or a controller."""

    seed: Seed = Field(default=4321, description="Seed of all random draws")
    trials: Count = Field(
        default=32,
        description="Episodes of each clip's own latent, the best of which is the fixed baseline",
    )
    random_time_min: Positive = Field(
        default=1.0, description="s; shortest time that the random baseline keeps a latent"
    )
    random_time_max: Positive = Field(
        default=5.0, description="s; longest time that the random baseline keeps a latent"
    )

    @model_validator(mode="after")
    def _check_times(self) -> BaselineConfig:
        if self.random_time_min > self.random_time_max:
            raise ValueError(
                f"random_time_min {self.random_time_min} is over "
                f"random_time_max {self.random_time_max}"
            )
        return self


class EvalConfig(BaselineConfig):
    episodes: Count = Field(default=512, description="Episodes of the evaluation")


class PlanConfig(Frozen):
    """Planning by sampling: how many sequences of skills are simulated, and how they are valued."""

    episodes: Count = Field(default=32, description="Episodes that hlc.plan plays")
    candidates: Count = Field(default=24, description="Sequences simulated for each character")
    horizon: Count = Field(default=30, description="Control steps that are simulated ahead")
    segments: Count = Field(default=1, description="Skills in a sequence, of equal lengths")
    iterations: Count = Field(
        default=1, description="1 is random shooting, more refit the best ones (CEM)"
    )
    elites: Count = Field(default=6, description="Best sequences that the next iteration refits")
    fall_cost: NotNegative = Field(
        default=30.0, description="Cost of a fall within the horizon, in control steps' rewards"
    )
    progress_weight: NotNegative = Field(
        default=2.0, description="Weight of the gain in the task's potential over the horizon"
    )

    @model_validator(mode="after")
    def _check_counts(self) -> PlanConfig:
        if self.segments > self.horizon:
            raise ValueError(f"segments {self.segments} is over horizon {self.horizon}")
        # a std needs two sequences
        if self.iterations > 1 and not 1 < self.elites <= self.candidates:
            raise ValueError(f"elites {self.elites}, expected 2 to candidates {self.candidates}")
        return self


class CloneConfig(Frozen):
    """Cloning of the planner's decisions before PPO. The planner is that of `plan`."""

    decisions: Annotated[int, Field(ge=0)] = Field(
        default=0, description="Planned decisions that are cloned; 0 begins PPO at once"
    )
    worlds: Count = Field(default=256, description="Characters that are planned for at once")
    epochs: Count = Field(default=20, description="Passes over the decisions")
    minibatch: Count = Field(default=512, description="Rows of a minibatch")
    lr: Positive = Field(default=1e-3, description="Learning rate")


class WarmConfig(Frozen):
    """Training that goes on from a published controller (hlc/warm_start.py)."""

    controller: str = Field(
        default="",
        description=(
            "Published controller, as NAME@N, from whose policy training goes on, also on another "
            "version of its library. Empty: none"
        ),
    )
    value_samples: Annotated[int, Field(ge=0)] = Field(
        default=50_000,
        description=(
            "Decisions at the start in which that policy, or a cloned one, is held and the value "
            "net learns"
        ),
    )


class TaskConfig(Frozen):
    """The keys of every program that plays a task. `with_tasks` adds those of each task."""

    task: str = Field(default="reach", description=f"One of {', '.join(TASKS)}")
    skill: str = Field(
        default="humanoid@latest", description="Reference of the skill library in the store"
    )
    engine: str = Field(default="mujoco", description="Name in pretrain/sim/backend.py")
    threads: Annotated[int, Field(ge=0)] = Field(
        default=0, description="0: all that the process may use"
    )
    episode_length: Seconds = Field(default=10.0, description="s")
    store: str = STORE

    @field_validator("task")
    @classmethod
    def _task_exists(cls, name: str) -> str:
        if name not in TASKS:
            raise ValueError(f"no task {name!r}; there are: {', '.join(TASKS)}")
        return name

    @model_validator(mode="after")
    def _check_tasks(self) -> TaskConfig:
        for name, kind in TASKS.items():
            if name != self.task and getattr(self, name, kind()) != kind():
                raise ValueError(
                    f"{name}.* has no effect with task={self.task}; expected {self.task}.* "
                    f"or task={name}"
                )
        return self

    def chosen_task(self) -> Task:
        """The task called `task`, with its parameters."""
        return getattr(self, self.task)


class RunConfig(TaskConfig):
    """The keys of every training on a task, with skills or without."""

    seed: Seed = Field(default=0, description="Seed of all random draws")
    checkpoint_interval: Positive = Field(default=60.0, description="s between checkpoints")
    runs: str = RUNS


class PlayConfig(TaskConfig):
    """The keys of decisions on skills: planned, random and learned ones."""

    llc_steps: Count = Field(default=5, description="Control steps per decision")
    eval: BaselineConfig = BaselineConfig()
    plan: PlanConfig = PlanConfig()


class HlcConfig(RunConfig, PlayConfig):
    """The keys that all tasks share. `CONFIG_MODEL` has those of each task besides, under the
    task's name."""

    task: str = Field(
        default="reach",
        description=f"One of {', '.join(TASKS)}; also the name of the published controller",
    )
    num_envs: Worlds = Field(default=512, description="Worlds simulated at once")
    samples: Count = Field(default=3_000_000, description="Decisions summed over the worlds")
    task_reward_weight: NotNegative = Field(default=0.9, description="Weight of the task reward")
    disc_reward_weight: NotNegative = Field(default=0.1, description="Weight of the style reward")
    progress_reward_weight: NotNegative = Field(
        default=3.0, description="Weight of progress, in units of the task's distance or potential"
    )
    shaping: Literal["difference", "potential"] = Field(
        default="difference",
        description=(
            "difference: progress towards the same goal; potential: discounted by ppo.gamma over "
            "changes of goal, which moves no optimum"
        ),
    )
    alive_reward_weight: NotNegative = Field(
        default=1.0, description="Weight per decision without a fall"
    )
    fall_penalty: NotNegative = Field(default=0.0, description="What a fall costs, once")
    disc_reward_scale: Positive = Field(default=1.0, description="Factor of the style reward")
    publish: bool = Field(default=True, description="Publish to the store at the end")
    # a narrower type, which is sound where fields are never assigned to
    eval: EvalConfig = EvalConfig()  # pyright: ignore[reportIncompatibleVariableOverride]
    ppo: ControllerPPOConfig = ControllerPPOConfig()
    clone: CloneConfig = CloneConfig()
    warm: WarmConfig = WarmConfig()


Config = TypeVar("Config", bound=TaskConfig)


def with_tasks(name: str, base: type[Config]) -> type[Config]:
    """The model `name`: `base` with a group of keys for each task of the registry,
    `reach.height_max=1.8`."""
    groups = {task: (kind, kind()) for task, kind in TASKS.items()}
    # pydantic types fields as single keywords, not as a mapping
    return create_model(name, __base__=base, **groups)  # pyright: ignore[reportCallIssue, reportArgumentType]


CONFIG_MODEL = with_tasks("HlcConfig", HlcConfig)
PLAY_MODEL = with_tasks("PlayConfig", PlayConfig)
