"""Parent: a published skill library for a controller: graphs, character model and start states."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import torch
from torch import Tensor

from hlc.tasks.scene import Scene
from pretrain.characters.character import Character
from pretrain.motion.clip import CONTROL_RATE, is_control_step
from pretrain.motion.library import MotionLibrary
from pretrain.publishing.manifest_character import from_manifest
from pretrain.publishing.start_states import read_starts, upright_excerpts
from pretrain.sim.backend import Backend, make_backend
from pretrain.sim.env import CharacterEnv, EpisodeConfig
from pretrain.sim.falls import NO_RECOVERY, Recovery
from skills_store.runtime.library import SkillLibrary
from skills_store.store import Store
from skills_store.version import Version

# No fall ends an episode that begins lying: a failed get-up may be repeated.
LYING = Recovery(steps=sys.maxsize, after_falls=True, fall_init_prob=1.0)


@dataclass(frozen=True)
class SimulationConfig:
    episode_length: int  # control steps
    engine: str = "mujoco"  # name in pretrain/sim/backend.py
    threads: int = 0  # 0: all that the process may use


@dataclass(frozen=True)
class Parent:
    """Frozen skills and what their simulation needs."""

    skills: SkillLibrary
    character: Character
    clips: MotionLibrary  # the version's excerpts
    upright: Tensor  # (C,) bool: excerpts of clips that stay upright

    @property
    def version(self) -> Version:
        return self.skills.version

    def backend(self, num_envs: int, scene: Scene, engine: str, threads: int) -> Backend:
        """`num_envs` worlds with the character and the box of `scene`, on `engine`."""
        return make_backend(engine, scene.extend(self.character), num_envs, threads)

    def simulation(
        self, num_envs: int, scene: Scene, simulated: SimulationConfig, rng: torch.Generator
    ) -> CharacterEnv:
        """`num_envs` worlds whose episodes begin in the version's start states, or lying if
        `scene.lying`.

        Only start states of clips that stay upright are used: others lie, or fall before the first
        decision."""
        return CharacterEnv(
            self.backend(num_envs, scene, simulated.engine, simulated.threads),
            self.character.skeleton,
            self.clips,
            EpisodeConfig(
                window=self.skills.window_length,
                length=simulated.episode_length,
                recovery=LYING if scene.lying else NO_RECOVERY,
                clip_weights=lambda: self.clips.weights * self.upright,
            ),
            rng=rng,
        )


def open_parent(store: Store, ref: str) -> Parent:
    """The library that `ref` resolves to, with its version's character and start states.

    Raises StoreError, and ValueError where the version has no start states or another control rate.
    """
    skills = SkillLibrary.open(store, ref, intra_op_num_threads=torch.get_num_threads())
    manifest = skills.version.manifest
    if manifest.starts is None:
        raise ValueError(
            f"{skills.version.ref} was published without start states, from which episodes begin"
        )
    character = from_manifest(manifest.character)
    if not is_control_step(character.control_dt):
        expected = f"expected {1 / CONTROL_RATE:g}: episodes are simulated at {CONTROL_RATE:g} Hz"
        raise ValueError(
            f"{skills.version.ref}: control_dt is {character.control_dt:g} s, {expected}"
        )
    clips = read_starts(manifest, store.read(skills.version, manifest.starts.file))
    return Parent(skills, character, clips, upright_excerpts(manifest))
