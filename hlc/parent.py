"""Parent: what a controller needs of a published skill library, its graphs, its character model and
its start states."""

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

# No fall ends an episode that begins lying: a get-up fails and is tried again.
LYING = Recovery(steps=sys.maxsize, episode_prob=1.0, fall_init_prob=1.0)


@dataclass(frozen=True)
class SimulationConfig:
    episode_length: int  # control steps
    engine: str = "mujoco"  # name in pretrain/sim/backend.py
    threads: int = 0  # 0: all that the process may use


@dataclass(frozen=True)
class Parent:
    """Frozen skills with everything that a simulation of them needs."""

    skills: SkillLibrary
    character: Character
    clips: MotionLibrary  # the excerpts that the version carries
    upright: Tensor  # (C,) bool, of those: of a clip that stays upright

    @property
    def version(self) -> Version:
        return self.skills.version

    def backend(self, num_envs: int, scene: Scene, engine: str, threads: int) -> Backend:
        """`num_envs` worlds with the character and the box of `scene`, for the `engine` of that
        name."""
        return make_backend(engine, scene.extend(self.character), num_envs, threads)

    def simulation(
        self, num_envs: int, scene: Scene, simulated: SimulationConfig, rng: torch.Generator
    ) -> CharacterEnv:
        """`num_envs` worlds whose episodes begin in the version's start states, or lying where
        `scene` says so.

        Only in the start states of clips that stay upright: any other lies, or ends in a fall,
        before its controller has decided."""
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
    """The library that `ref` means now, with the body and the start states that its version
    carries.

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
