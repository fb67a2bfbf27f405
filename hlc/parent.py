"""What a controller stands on: a published skill library, the very body it was trained on, and states to start from."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from pretrain.characters.character import Character
from pretrain.motion.library import MotionLibrary, pack
from pretrain.motion.recipe import Dataset, load_dataset
from pretrain.publishing.manifest_character import from_manifest
from pretrain.sim.backend import make_backend
from pretrain.sim.env import CharacterEnv
from pretrain.sim.ground import ground_of
from skills_store.runtime.library import SkillLibrary
from skills_store.store import Store
from skills_store.version import Version


@dataclass(frozen=True)
class Parent:
    """Frozen skills with everything that a simulation of them needs."""

    skills: SkillLibrary
    character: Character
    dataset: Dataset
    clips: MotionLibrary

    @property
    def version(self) -> Version:
        return self.skills.version

    def simulation(
        self, num_envs: int, episode_length: int, *, engine: str, threads: int, rng: torch.Generator
    ) -> CharacterEnv:
        """`num_envs` worlds whose episodes, of `episode_length` control steps, start from the library's own clips.

        Only from those that stay upright: any other lies, or ends in a fall, before its controller has decided anything.
        """
        upright = ground_of(self.clips, self.character.skeleton).upright
        return CharacterEnv(
            make_backend(engine, self.character, num_envs, threads),
            self.character.skeleton,
            self.clips,
            window=self.skills.window_length,
            episode_length=episode_length,
            rng=rng,
            clip_weights=lambda: self.clips.weights * upright,
        )


def open_parent(store: Store, ref: str) -> Parent:
    """The library that `ref` means now. Body and clips are those that its manifest names."""
    skills = SkillLibrary.open(store, ref, intra_op_num_threads=torch.get_num_threads())
    manifest = skills.version.manifest
    character = from_manifest(manifest.character)
    if "motions" not in manifest.lineage.config:
        raise ValueError(
            f"{skills.version.ref} does not say which motions it was trained on: its config has no 'motions'"
        )
    dataset = load_dataset(manifest.lineage.config["motions"], character.skeleton)
    return Parent(skills, character, dataset, pack(dataset.clips, dataset.weights))
