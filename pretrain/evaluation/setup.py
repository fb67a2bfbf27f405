"""Setup: a library with the clips and worlds of its measures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Generator, Tensor

from pretrain.characters.character import Character
from pretrain.evaluation.clip_windows import ClipWindows, clip_windows, feature_scale
from pretrain.evaluation.conditions import Conditions
from pretrain.motion.clip import control_steps
from pretrain.motion.library import MotionLibrary
from pretrain.sim.backend import make_backend
from pretrain.sim.env import CharacterEnv, EpisodeConfig
from pretrain.sim.falls import NO_RECOVERY, Recovery
from pretrain.sim.ground import Ground, read_ground
from pretrain.sim.velocity_range import VelocityRanges, read_velocity_ranges
from pretrain.training_data import TrainingData
from skills_store.runtime.library import SkillLibrary

RECOVERY_STEPS = control_steps(3.0)  # steps that a fallen character has to get up


@dataclass(frozen=True)
class Setup:
    """Inputs of every measure. C is the number of clips, D the dimension of z."""

    skills: SkillLibrary
    data: TrainingData
    conditions: Conditions

    @property
    def library(self) -> MotionLibrary:
        return self.data.library

    @cached_property
    def scale(self) -> Tensor:
        """Scale of each feature of a style window, (W * F)."""
        window = self.skills.window_length
        return feature_scale(self.library, self.data.character.skeleton, window)

    @cached_property
    def targets(self) -> tuple[ClipWindows, ...]:
        """The windows of each clip that is no mirror image."""
        return clip_windows(self.data.dataset.clips, self.scale, self.skills.window_length)

    @cached_property
    def velocity_ranges(self) -> VelocityRanges:
        """The velocities of every clip, averaged over a second."""
        return read_velocity_ranges(self.library)

    @cached_property
    def originals(self) -> Tensor:
        """The clips that are no mirror images, in the order of `targets`."""
        return torch.tensor([self.library.names.index(target.name) for target in self.targets])

    @cached_property
    def ground(self) -> Ground:
        return read_ground(self.library, self.data.character.skeleton)

    @cached_property
    def own_z(self) -> Tensor:
        """Each clip's z, (C, D): the published one, else the published encoder's."""
        published = self.skills.version.manifest.latent.clips
        frames = self.library.clip_frames
        rows = [
            published[name] if name in published else self.skills.embed(motion.numpy()).pooled
            for name, motion in zip(self.library.names, frames, strict=True)
        ]
        return torch.from_numpy(np.array(rows, dtype=np.float32))

    def nearest_clip(self, z: Tensor) -> Tensor:
        """The clip whose z is nearest to each of z (N, D), (N,): as in training, it defines which
        bodies may touch the ground."""
        return (z @ self.own_z.T).argmax(-1)

    def make_env(
        self, n: int, seconds: float, rng: Generator, character: Character | None = None
    ) -> CharacterEnv:
        """`n` worlds; where some clip rises from lying, all have time to get up after a fall.

        `character` replaces the published body.
        """
        body = character or self.data.character
        backend = make_backend(self.conditions.engine, body, n, self.conditions.threads)
        rising = bool(self.ground.rising.any())
        episodes = EpisodeConfig(
            window=self.skills.window_length,
            length=control_steps(seconds),
            recovery=Recovery(RECOVERY_STEPS, after_falls=True) if rising else NO_RECOVERY,
        )
        return CharacterEnv(
            backend, body.skeleton, self.library, episodes, rng=rng, ground=self.ground
        )
