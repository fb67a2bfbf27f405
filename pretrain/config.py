"""Configuration of pretraining: Hydra's groups as one frozen model. An unknown key is an error.

Names are those of the field (MimicKit's where it has the concept)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pretrain.ase_config import (
    DiscConfig,
    EncConfig,
    LatentConfig,
    SkillPPOConfig,
    WarmConfig,
)
from pretrain.assist_config import (
    CurriculumConfig,
    ImitationConfig,
    RecoveryConfig,
    TrackingTerminationConfig,
)
from pretrain.rl.field_types import Count, Frozen, Positive, Seconds, Seed, Share, Worlds
from pretrain.rl.run_fields import RUNS, STORE
from skills_store.manifest import Name


class EvalConfig(Frozen):
    """The skill card that is published with the library (pretrain/evaluate.py)."""

    episodes: Annotated[int, Field(ge=2)] = Field(
        default=1024, description="Episodes of the skill card"
    )
    seed: Seed = Field(default=1234, description="Seed of all random draws")


class PretrainConfig(Frozen):
    """A training run. One iteration is a rollout of `num_envs` worlds over `ppo.horizon` control
    steps, and the fits on it."""

    name: Name = Field(default="humanoid", description="Name of the published library")
    character: str = Field(
        default="humanoid", description="Name in pretrain/characters/character.py"
    )
    motions: str = Field(default="locomotion", description="A bundled recipe, or the path of one")
    engine: str = Field(default="mujoco", description="Name in pretrain/sim/backend.py")
    threads: Annotated[int, Field(ge=0)] = Field(
        default=0, description="0: all that the process may use"
    )
    seed: Seed = Field(default=0, description="Seed of all random draws")
    num_envs: Worlds = Field(default=1280, description="Worlds simulated at once")
    episode_length: Seconds = Field(default=10.0, description="s")
    default_reset_prob: Share = Field(
        default=0.0, description="Share of episodes that begin in the default pose"
    )
    symmetry: bool = Field(
        default=True,
        description=(
            "Networks commute with the reflection of body and clips; has no effect where the "
            "recipe has mirror: false"
        ),
    )
    num_disc_obs_steps: Annotated[int, Field(ge=2)] = Field(
        default=3, description="Frames of a style window, a control step apart"
    )
    samples: Count = Field(default=16_000_000, description="Control steps summed over the worlds")
    checkpoint_interval: Positive = Field(default=60.0, description="s between checkpoints")
    milestone_interval: Count = Field(
        default=2_000_000,
        description="Samples between the milestones that are kept for benchmarks.learning",
    )
    runs: str = RUNS
    store: str = STORE
    publish: bool = Field(default=True, description="Publish to the store at the end")
    latent: LatentConfig = LatentConfig()
    ppo: SkillPPOConfig = SkillPPOConfig()
    disc: DiscConfig = DiscConfig()
    enc: EncConfig = EncConfig()
    warm: WarmConfig = WarmConfig()
    assist: Literal["full", "none"] = Field(
        default="full",
        description=(
            "full: the training aids beyond ASE. none: without them; then curriculum, "
            "tracking_termination, imitation, getup_reward_weight, action_std_final, "
            "distill_steps and parent_weight have no effect"
        ),
    )
    curriculum: CurriculumConfig = CurriculumConfig()
    tracking_termination: TrackingTerminationConfig = TrackingTerminationConfig()
    imitation: ImitationConfig = ImitationConfig()
    recovery: RecoveryConfig = RecoveryConfig()
    eval: EvalConfig = EvalConfig()

    @property
    def assisted(self) -> bool:
        return self.assist == "full"
