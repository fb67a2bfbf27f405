"""Configuration of controller training: Hydra's groups become one frozen model. An unknown key is refused."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from hlc.tasks import TASKS
from hlc.tasks.reach import Reach
from hlc.tasks.task import Task
from pretrain.rl.setting import Count, Frozen, NotNegative, Positive, Rate, Seconds, Seed, Share
from skills_store import places

Layers = Annotated[tuple[Count, ...], Field(min_length=1)]


class PPOConfig(Frozen):
    """Steps are decisions, of `llc_steps` control steps each."""

    horizon: Count = 8  # decisions of each world between two fits
    gamma: Share = 0.95  # per decision
    lam: Share = 0.95
    clip: Positive = 0.2
    lr: Rate = 3e-4  # first value; steered towards target_kl
    target_kl: Positive = 0.04
    value_lr: Positive = 5e-4
    epochs: Count = 5
    minibatch: Count = 2048
    hidden: Layers = (256, 256)
    action_std: Positive = 0.2  # per number, before the projection
    noise_color: Annotated[float, Field(ge=0, lt=1)] = 0.85  # of one decision with the next: a skill takes time to show
    action_bound: Positive = 1.0
    action_bound_weight: NotNegative = 1.0


class EvalConfig(Frozen):
    episodes: Count = 512
    seed: Seed = 4321
    random_time_min: Positive = 1.0  # s that the patient random baseline holds a skill
    random_time_max: Positive = 5.0  # s


class HlcConfig(Frozen):
    task: str = "reach"  # the name that it is published under, too
    skill: str = "humanoid@latest"  # any reference that the store understands
    engine: str = "mujoco"
    threads: Annotated[int, Field(ge=0)] = 0  # 0: every core
    seed: Seed = 0
    num_envs: Count = 512
    episode_length: Seconds = 10.0
    samples: Count = 3_000_000  # decisions
    llc_steps: Count = 5  # control steps per decision
    task_reward_weight: NotNegative = 0.9
    disc_reward_weight: NotNegative = 0.1
    progress_reward_weight: NotNegative = 3.0  # per metre
    alive_reward_weight: NotNegative = 1.0  # per decision
    disc_reward_scale: Positive = 1.0
    checkpoint_interval: Positive = 60.0  # s
    # folder that holds the runs; $REPERTOIRE_RUNS, or what skills_store/places.py has for them
    runs: str = Field(default_factory=lambda: str(places.runs()))
    store: str = ""  # "" is $REPERTOIRE_STORE, or what skills_store/places.py has for it
    publish: bool = True
    ppo: PPOConfig = PPOConfig()
    eval: EvalConfig = EvalConfig()
    reach: Reach = Reach()

    @field_validator("task")
    @classmethod
    def _task_exists(cls, name: str) -> str:
        if name not in TASKS:
            raise ValueError(f"no task {name!r}; there are: {', '.join(TASKS)}")
        return name

    def chosen_task(self) -> Task:
        """The task called `task`, with its parameters."""
        return getattr(self, self.task)
