"""The real humanoid with random skills: the smallest parent that a controller can be trained on."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import pad

from hlc.config import CONFIG_MODEL, ControllerPPOConfig, HlcConfig
from hlc.parent import Parent, open_parent
from pretrain.characters.character import load_character
from pretrain.characters.placement import place
from pretrain.characters.rotations import from_axis_angle, multiply, rotate
from pretrain.characters.state import CharacterState, Part
from pretrain.motion.dataset import load_dataset
from pretrain.motion.library import pack
from pretrain.publishing.lineage import describe_clips
from pretrain.publishing.manifest_character import to_manifest
from pretrain.publishing.start_states import write_starts
from pretrain.sim.ground import read_ground
from skills_store.store import Store
from tests import tiny


def publish_skills(
    store: Store, seed: int = 0, policy: bytes | None = None, motions: str = "locomotion"
) -> Parent:
    """Random weights for the real humanoid, published as if trained on the clips of recipe
    `motions`, and opened.

    `policy` replaces the random one.
    """
    drawn = tiny.skills_manifest()
    body = load_character("humanoid")
    dataset = load_dataset(motions, body.skeleton)
    clips = pack(dataset.clips, dataset.weights)
    starts = write_starts(clips, read_ground(clips, body.skeleton).upright, most=10_000)
    lineage = drawn.lineage.model_copy(update={"clips": describe_clips(dataset)})
    changed = drawn.model_copy(
        update={"character": to_manifest(body), "lineage": lineage, "starts": starts[0]}
    )
    files = (
        tiny.skills_files(seed)
        | {starts[0].file: starts[1]}
        | ({"policy.onnx": policy} if policy else {})
    )
    return open_parent(store, store.publish(changed, files).pinned)


def make_toy(parent: Parent, store: Store, runs: Path) -> HlcConfig:
    """Two iterations of eight decisions in four worlds."""
    ppo = ControllerPPOConfig(horizon=4, epochs=2, minibatch=8, hidden=(16,))
    return CONFIG_MODEL(
        skill=parent.version.pinned,
        num_envs=4,
        samples=32,
        ppo=ppo,
        runs=str(runs),
        store=str(store.root),
        threads=1,
    )


def moved(
    state: CharacterState, goal: Tensor, layout: tuple[Part, ...], yaw: float, shift: Tensor
) -> tuple[CharacterState, Tensor]:
    """The whole scene turned by `yaw` about the world's z axis, then shifted.

    Positions of a goal are turned and shifted, directions turned, and scalars unchanged."""
    q = from_axis_angle("z", torch.full(state.shape, yaw))
    scene = place(state, q, shift)
    return scene, torch.cat([_moved_part(goal, part, q, shift) for part in layout], -1)


def _moved_part(goal: Tensor, part: Part, q: Tensor, shift: Tensor) -> Tensor:
    values = goal[..., part.start : part.stop]
    if part.unit == "quaternion wxyz":
        return multiply(q, values)
    if part.frame != "world":
        return values
    width = values.shape[-1]
    turned = rotate(q, pad(values, (0, 3 - width)))
    return (turned + shift if part.unit == "m" else turned)[..., :width]


def clip_states(parent: Parent, n: int, seed: int = 0) -> CharacterState:
    """Random states of the clips, (n, ...)."""
    rng = torch.Generator().manual_seed(seed)
    return parent.clips.at(*parent.clips.sample(n, rng))
