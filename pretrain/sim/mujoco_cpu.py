"""The default engine: `mujoco.batch.Batch` steps all worlds on a thread pool, bit-identical at any
thread count."""

# MuJoCo's bindings ship no type stubs
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import logging

import mujoco
import mujoco.batch
import numpy as np
import torch
from torch import Tensor

from pretrain.characters.character import Character
from pretrain.characters.rotations import conjugate, rotate
from pretrain.characters.state import CharacterState
from pretrain.sim.mujoco_box import MujocoBox, add_box

FLOOR = "floor"
logger = logging.getLogger(__name__)
# Otherwise the engine writes each warning to a file MUJOCO_LOG.TXT in the working folder.
mujoco.set_mju_user_warning(logger.warning)
# The engine's integration state: a world restored from it continues bit for bit.
INTEGRATION = ("time", "qpos", "qvel", "qacc_warmstart", "ctrl", "xfrc_applied")
# Autoreset: CharacterEnv counts and resets diverged worlds itself. Islands: a character is one, and
# finding it takes time. Warm start: under a new target the last acceleration is a worse initial
# guess for the solver than the unconstrained one: 3.1 iterations instead of 2.4.
DISABLED = (
    mujoco.mjtDisableBit.mjDSBL_AUTORESET,
    mujoco.mjtDisableBit.mjDSBL_ISLAND,
    mujoco.mjtDisableBit.mjDSBL_WARMSTART,
)
MAX_SPEED = 1e3  # rad/s or m/s; from it on a world has diverged, even if finite


class MujocoBackend:
    """A `Backend` on the CPU. Views of the engine's memory are not exposed."""

    def __init__(self, character: Character, num_envs: int, threads: int = 0):
        self.num_envs = num_envs
        self.skeleton = character.skeleton
        model = compile_model(character)
        # 1/60 s with our character: the passive part of its damping keeps the body stable at that
        # step, which is three times as fast as 1/240 s.
        self._substeps = round(character.control_dt / model.opt.timestep)
        self._batch = mujoco.batch.Batch(model, num_envs, threads)
        self._views = {name: self._batch.bind(name) for name in INTEGRATION}
        self._widths = (7 + self.skeleton.num_hinges, 6 + self.skeleton.num_hinges)
        contacts = self._batch.bind("sensordata")
        self._contacts = contacts[:, : len(self.skeleton.bodies)]
        self.box = self._make_box(contacts) if character.box else None
        self._batch.reset()
        self._state: CharacterState | None = None  # cached until something moves

    def _make_box(self, contacts: np.ndarray) -> MujocoBox:
        """The box's coordinates and contacts follow the character's."""
        qpos, qvel = self._widths
        return MujocoBox(
            self._views["qpos"][:, qpos:],
            self._views["qvel"][:, qvel:],
            contacts[:, len(self.skeleton.bodies) :],
        )

    def state(self) -> CharacterState:
        if self._state is None:
            self._state = self._read()
        return self._state

    def _read(self) -> CharacterState:
        widths = self._widths
        qpos = torch.from_numpy(self._views["qpos"][:, : widths[0]]).float()
        qvel = torch.from_numpy(self._views["qvel"][:, : widths[1]]).float()
        root_rot = qpos[:, 3:7]
        # a free joint's angular velocity is in the body's frame
        return CharacterState(
            root_pos=qpos[:, :3],
            root_rot=root_rot,
            root_vel=qvel[:, :3],
            root_ang_vel=rotate(root_rot, qvel[:, 3:6]),
            joint_pos=qpos[:, 7:],
            joint_vel=qvel[:, 6:],
        )

    def touching(self) -> Tensor:
        return torch.from_numpy(self._contacts > 0)

    def place(self, ids: Tensor, state: CharacterState) -> None:
        if not len(ids):
            return
        self._state = None
        rows = ids.numpy()
        body_rate = rotate(conjugate(state.root_rot), state.root_ang_vel)
        pose = torch.cat([state.root_pos, state.root_rot, state.joint_pos], -1)
        velocity = torch.cat([state.root_vel, body_rate, state.joint_vel], -1)
        self._views["qpos"][rows, : self._widths[0]] = pose.numpy()
        self._views["qvel"][rows, : self._widths[1]] = velocity.numpy()
        for name in ("time", "qacc_warmstart", "xfrc_applied"):
            self._views[name][rows] = 0
        self._views["ctrl"][rows] = state.joint_pos.numpy()

    def advance(self, targets: Tensor) -> Tensor:
        self._views["ctrl"][:] = targets.numpy()
        self._batch.step(nstep=self._substeps)
        self._state = None
        fastest = np.abs(self._views["qvel"]).max(-1)
        # Comparisons with NaN are false, so valid speeds are selected, not invalid ones.
        valid = (fastest < MAX_SPEED) & np.isfinite(self._views["qpos"]).all(-1)
        return torch.from_numpy(~valid)

    def push(self, ids: Tensor, body: str, wrench: Tensor) -> None:
        index = 1 + self.skeleton.bodies.index(body)  # body 0 is the world
        self._views["xfrc_applied"][ids.numpy(), index] = wrench.numpy()

    def snapshot(self) -> dict[str, Tensor]:
        return {name: torch.from_numpy(view.copy()) for name, view in self._views.items()}

    def restore(self, snapshot: dict[str, Tensor]) -> None:
        for name, view in self._views.items():
            view[:] = snapshot[name].numpy()
        self._state = None


def compile_model(character: Character) -> mujoco.MjModel:
    """The character's MJCF with one ground-contact sensor per body and its box, checked for the
    solver settings we rely on."""
    spec = mujoco.MjSpec.from_string(character.mjcf)
    for body in character.skeleton.bodies:
        sensor = spec.add_sensor(name=f"{body}_on_floor", type=mujoco.mjtSensor.mjSENS_CONTACT)
        sensor.objtype = mujoco.mjtObj.mjOBJ_GEOM
        sensor.objname = FLOOR
        sensor.reftype = mujoco.mjtObj.mjOBJ_BODY
        sensor.refname = body
        sensor.intprm = [1 << int(mujoco.mjtConDataField.mjCONDATA_FOUND), 0, 1]
    if character.box:
        add_box(spec, character.box, character.skeleton.bodies)
    for flag in DISABLED:
        spec.option.disableflags |= flag
    model = spec.compile()
    # MuJoCo 4.0.0's sparse Cholesky gives wrong accelerations; the dense one does not (fixed in
    # 4.0.1)
    assert not mujoco.mj_isSparse(model), "the character's MJCF must set jacobian='dense'"
    return model
