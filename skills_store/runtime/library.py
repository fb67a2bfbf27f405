"""The runtime of a published version: numpy in, numpy out. Independent of simulator and trainer,
and without state.

The caller keeps z and history, so one library serves any number of characters and threads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike

from skills_store.errors import InvalidInput, UnknownGraph, WrongKind
from skills_store.manifest import OWN_OBSERVATIONS
from skills_store.runtime.onnx_session import Array, Device, Net, load_net
from skills_store.signatures.trust_policy import TrustPolicy
from skills_store.store import Store
from skills_store.version import Version

CHUNK = 1024  # windows encoded at once: bounds the memory that a long motion takes


@dataclass(frozen=True)
class Embedding:
    """A motion in skill space: one z per window, and one for the whole."""

    windows: Array  # (N, D), unit rows
    pooled: Array  # (D,), unit


@dataclass(frozen=True)
class SkillLibrary:
    """A frozen low-level policy pi(a|s,z) and its encoder q(z|s,s')."""

    version: Version
    policy: Net
    encoder: Net
    discriminator: Net | None

    @classmethod
    def open(
        cls,
        store: Store,
        ref: str | Version,
        *,
        intra_op_num_threads: int = 1,
        device: Device = "cpu",
        trust: TrustPolicy | None = None,
    ) -> SkillLibrary:
        """`trust` sets whose signature the version needs; by default REPERTOIRE_TRUST does."""
        version = _resolve_kind(store, ref, "skills", trust)
        nets = _load_nets(store, version, intra_op_num_threads, device)
        return cls(version, nets["policy"], nets["encoder"], nets.get("style"))

    @property
    def latent_dim(self) -> int:
        return self.version.manifest.latent.dim

    @property
    def state_width(self) -> int:
        return self.policy.graph.input("state").width

    @property
    def window_length(self) -> int:
        """W: consecutive states, one control step apart, that make one window."""
        length = self.encoder.graph.input("window").shape[1]
        assert isinstance(length, int)
        return length

    def act(self, state: ArrayLike, z: ArrayLike) -> Array:
        """Joint targets (B, J), rad, in the order of the manifest's `character.joints`, for states
        (B, S) and skills z (B, D).

        The slices of the policy's `state` describe S: root position, m, rotation, wxyz, and
        velocities, joint angles and joint velocities. z need not be of unit length. Raises
        InvalidInput, which names the expected shape.
        """
        return self.policy.run(state=state, z=z)

    def encode(self, window: ArrayLike) -> Array:
        """z (B, D) of unit length, for windows (B, W, S) of W states, oldest first, one control
        step apart.
        """
        return self.encoder.run(window=window)

    def style(self, window: ArrayLike) -> Array:
        """Similarity of each window (B, W, S) to the clip that it is most like, (B,) in (0, 1).

        Raises UnknownGraph if the version has no such graph.
        """
        if self.discriminator is None:
            raise UnknownGraph("style", self.version.manifest.graphs, self.version.ref)
        return self.discriminator.run(window=window)

    def embed(self, states: ArrayLike, stride: int = 1) -> Embedding:
        """Embed a motion, states (T, S) one control step apart: the z of every `stride`-th window,
        and one for all.

        Raises InvalidInput for another shape or too few states, WrongKind for an imported library
        with other observations.
        """
        if (observations := self.version.manifest.observations) != OWN_OBSERVATIONS:
            raise WrongKind(
                self.version.ref, f"{observations} observations", f"{OWN_OBSERVATIONS} observations"
            )
        motion = np.asarray(states, dtype=np.float32)
        length = self.window_length
        if motion.ndim != 2 or motion.shape[1] != self.state_width:
            raise InvalidInput(
                f"{self.version.ref} needs states of shape (T, {self.state_width}), "
                f"got {motion.shape}"
            )
        if len(motion) < length:
            raise InvalidInput(
                f"{self.version.ref} needs at least {length} states, got {len(motion)}"
            )
        # (N, W, S)
        windows = sliding_window_view(motion, length, axis=0)[:: max(1, stride)].transpose(0, 2, 1)
        z = np.concatenate(
            [self.encode(windows[i : i + CHUNK]) for i in range(0, len(windows), CHUNK)]
        )
        return Embedding(z, pool(z))


@dataclass(frozen=True)
class Controller:
    """A frozen high-level controller omega(z|s,g), and the exact library it was trained on.

    A published state machine is one, too: its goal is its memory, which starts as zeros."""

    version: Version
    net: Net
    library: SkillLibrary
    memory: Net | None = None  # of a state machine

    @classmethod
    def open(
        cls,
        store: Store,
        ref: str | Version,
        *,
        library: SkillLibrary | None = None,
        intra_op_num_threads: int = 1,
        device: Device = "cpu",
        trust: TrustPolicy | None = None,
    ) -> Controller:
        """Pass an open `library` to share it; it must be the parent by digest."""
        version = _resolve_kind(store, ref, "controller", trust)
        parent = store.parent(version.manifest)
        if library is None:
            library = SkillLibrary.open(
                store, parent, intra_op_num_threads=intra_op_num_threads, device=device, trust=trust
            )
        if library.version.digest != parent.digest:
            raise WrongKind(
                library.version.ref, "another library", f"the parent of {version.ref}, {parent.ref}"
            )
        nets = _load_nets(store, version, intra_op_num_threads, device)
        return cls(version, nets["controller"], library, nets.get("memory"))

    @property
    def goal_width(self) -> int:
        return self.net.graph.input("goal").width

    @property
    def llc_steps(self) -> int:
        """Control steps for which each decision is held."""
        assert self.version.manifest.task is not None
        return self.version.manifest.task.llc_steps

    def decide(self, state: ArrayLike, goal: ArrayLike) -> Array:
        """(B, S), (B, G) -> z (B, D). A state machine takes the goal of `next_goal`."""
        return self.net.run(state=state, goal=goal)

    def next_goal(self, state: ArrayLike, goal: ArrayLike) -> Array:
        """The goal (B, G) that this decision uses and the next one starts with: the memory of a
        state machine after its transitions, for other controllers `goal` itself."""
        if self.memory is None:
            return np.asarray(goal, dtype=np.float32)
        return self.memory.run(state=state, goal=goal)


def pool(z: Array) -> Array:  # (N, D) unit rows -> (D,)
    """The point of the sphere nearest to all rows: their normalized mean."""
    mean = z.mean(axis=0)
    length = np.linalg.norm(mean)
    # Rows that cancel out have no mean direction; the row most like the others is used.
    return (mean / length).astype(np.float32) if length > 1e-6 else z[np.argmax(z @ z.sum(axis=0))]


def _resolve_kind(
    store: Store, ref: str | Version, kind: str, trust: TrustPolicy | None
) -> Version:
    version = store.resolve(ref) if isinstance(ref, str) else ref
    if version.manifest.kind != kind:
        raise WrongKind(version.ref, version.manifest.kind, kind)
    (trust or TrustPolicy.from_environment()).check(store, version)
    return version


def _load_nets(store: Store, version: Version, threads: int, device: Device) -> dict[str, Net]:
    return {
        name: load_net(
            f"{name} of {version.ref}", store.read(version, graph.file), graph, threads, device
        )
        for name, graph in version.manifest.graphs.items()
    }
