"""Libraries of known performance: an engine that plays clips, and policies that select one.

The clips are synthetic and repeat every second, so that loops are continuous.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pretrain.ase.reference_windows import make_reference_windows
from pretrain.characters.character import Character, load_character
from pretrain.characters.rotations import from_axis_angle, multiply
from pretrain.characters.state import CharacterState, unflatten
from pretrain.evaluation.conditions import Conditions
from pretrain.evaluation.setup import Setup
from pretrain.motion.clip import CONTROL_RATE, MotionClip
from pretrain.motion.dataset import Dataset
from pretrain.motion.library import MotionLibrary, pack
from pretrain.training_data import TrainingData

FRAMES = 61  # two cycles, the first frame again at the end
LATENT_DIM = 8
WINDOW = 3
ENGINE = "playback"
HEIGHT = 0.85  # m
SPEED = 1.0  # m/s of the walk
SIDE_SPEED = 0.5  # m/s to the left
TURN_RATE = 0.8  # rad/s to the left
FALL_EVERY = 60  # control steps
FALL_LASTS = 15


def made_up_clip(
    name: str, forward: float = 0.0, left: float = 0.0, turn: float = 0.0, swing: float = 0.0
) -> MotionClip:
    """A posture of its own, legs that swing once a second, and a root of constant velocity."""
    skeleton = load_character("humanoid").skeleton
    time = np.arange(FRAMES) / CONTROL_RATE
    rng = np.random.default_rng(list(name.encode()))
    joint_rot = {}
    for joint in skeleton.joints:
        rotation = np.tile([1.0, 0.0, 0.0, 0.0], (FRAMES, 1))
        for axis in joint.axes:
            rotation = multiply(
                rotation, from_axis_angle(axis, np.full(FRAMES, rng.uniform(-0.5, 0.5)))
            )
        side = 1 if joint.body.startswith("right") else -1
        cycle = swing * side * np.sin(2 * np.pi * time) * joint.body.endswith("thigh")
        joint_rot[joint.body] = multiply(rotation, from_axis_angle("y", cycle))
    heading = turn * time
    velocity = np.stack(
        [
            forward * np.cos(heading) - left * np.sin(heading),
            forward * np.sin(heading) + left * np.cos(heading),
        ],
        -1,
    )
    place = np.zeros((FRAMES, 3))
    place[:, :2] = np.cumsum(velocity, 0) / CONTROL_RATE
    place[:, 2] = HEIGHT
    root_rot = from_axis_angle("z", heading)
    return MotionClip(name, CONTROL_RATE, place, root_rot, joint_rot, skeleton)


def lying_clip() -> MotionClip:
    """On one side, arms and legs still."""
    clip = made_up_clip("lie")
    clip.root_pos[:, 2] = 0.12
    clip.root_rot[:] = from_axis_angle("x", np.full(FRAMES, np.pi / 2))
    return clip


CLIPS = (
    made_up_clip("stand"),
    made_up_clip("walk", forward=SPEED, swing=0.5),
    made_up_clip("sidestep", left=SIDE_SPEED, swing=0.2),
    made_up_clip("turn", turn=TURN_RATE, swing=0.1),
    lying_clip(),
)


def training_data(clips: tuple[MotionClip, ...] = CLIPS) -> TrainingData:
    body = load_character("humanoid")
    weights = tuple(1.0 for _ in clips)
    library = pack(clips, weights)
    demos = make_reference_windows(library, body.skeleton, WINDOW)
    return TrainingData(body, Dataset("made_up", "humanoid", clips, weights), library, demos)


class PlaybackEngine:
    """A `Backend` without physics: it plays the clip whose number is the first target.

    With `falls`, every character lies for half a second in each two seconds.
    """

    box = None

    def __init__(self, library: MotionLibrary, character: Character, num_envs: int, falls: bool):
        self.num_envs = num_envs
        self._frames = library.frames.view(-1, FRAMES, library.frames.shape[-1])
        self._bodies = len(character.skeleton.bodies)
        self._falls = falls
        self._clip = torch.zeros(num_envs, dtype=torch.long)
        self._frame = torch.zeros(num_envs, dtype=torch.long)
        self._steps = torch.zeros(num_envs, dtype=torch.long)
        self._flat = self._frames[self._clip, self._frame]

    @property
    def _down(self) -> Tensor:
        return (self._steps % FALL_EVERY >= FALL_EVERY - FALL_LASTS) & self._falls

    def state(self) -> CharacterState:
        return unflatten(self._flat.clone())

    def touching(self) -> Tensor:
        return self._down[:, None].expand(-1, self._bodies).clone()

    def place(self, ids: Tensor, state: CharacterState) -> None:
        flat = state.flatten()
        # position and heading do not identify a clip
        apart = torch.cdist(flat[:, 7:], self._frames[..., 7:].flatten(0, 1))
        height = (flat[:, 2:3] - self._frames[..., 2].flatten()).abs()
        nearest = (apart + 10 * height).argmin(1)
        self._clip[ids] = nearest // FRAMES
        self._frame[ids] = nearest % FRAMES
        self._steps[ids] = 0
        self._flat[ids] = flat

    def advance(self, targets: Tensor) -> Tensor:
        clip = targets[:, 0].round().long().clamp(0, len(self._frames) - 1)
        follows = torch.where(self._frame == FRAMES - 1, 1, self._frame + 1)
        self._frame = torch.where(clip == self._clip, follows, 0)
        self._clip = clip
        self._steps += 1
        self._flat = self._frames[self._clip, self._frame].clone()
        self._flat[:, 2] = torch.where(self._down, 0.15, self._flat[:, 2])
        return torch.zeros(self.num_envs, dtype=torch.bool)

    def push(self, ids: Tensor, body: str, wrench: Tensor) -> None:
        pass

    def snapshot(self) -> dict[str, Tensor]:
        return {}

    def restore(self, snapshot: dict[str, Tensor]) -> None:
        pass


def playback(monkeypatch: Any, data: TrainingData, falls: bool = False) -> None:
    """Make the engine "playback" play the clips of `data`."""
    from pretrain.sim.backend import ENGINES

    def make(character: Character, num_envs: int, threads: int) -> PlaybackEngine:
        return PlaybackEngine(data.library, character, num_envs, falls)

    monkeypatch.setitem(ENGINES, ENGINE, make)


def named_z(data: TrainingData) -> np.ndarray:
    """Each clip's own z: an axis of its own, (C, D)."""
    return np.eye(len(data.library.names), LATENT_DIM, dtype=np.float32)


def conditioned(data: TrainingData) -> Any:
    """A library whose policy plays the clip of the nearest own z."""
    own = named_z(data)

    def act(state: np.ndarray, z: np.ndarray) -> np.ndarray:
        targets = np.zeros((len(state), 28), np.float32)
        targets[:, 0] = (z @ own.T).argmax(1)
        return targets

    return library_of(data, act)


def unconditioned(data: TrainingData, clip: str) -> Any:
    """A library whose policy plays `clip` under any z."""
    number = data.library.names.index(clip)

    def act(state: np.ndarray, z: np.ndarray) -> np.ndarray:
        return np.full((len(state), 28), number, np.float32)

    return library_of(data, act)


def library_of(data: TrainingData, act: Any) -> Any:
    own = named_z(data)
    clips = dict(zip(data.library.names, own.tolist(), strict=True))
    manifest = SimpleNamespace(latent=SimpleNamespace(clips=clips), card={})
    return SimpleNamespace(
        act=act,
        encode=lambda windows: np.tile(own[:1], (len(windows), 1)),
        window_length=WINDOW,
        latent_dim=LATENT_DIM,
        discriminator=None,
        version=SimpleNamespace(manifest=manifest),
    )


def setup_of(skills: Any, data: TrainingData, **conditions: Any) -> Setup:
    return Setup(skills, data, Conditions(**{"episodes": 64, "engine": ENGINE, **conditions}))
