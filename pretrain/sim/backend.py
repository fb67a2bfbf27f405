"""Backend: the interface of a physics engine, methods over CharacterState and tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from torch import Tensor

from pretrain.characters.character import Character
from pretrain.characters.state import CharacterState
from skills_store.processors import count_processors


class FreeBox(Protocol):
    """The boxes of N worlds."""

    def state(self) -> Tensor:
        """As in `BOX_LAYOUT`, (N, 13)."""
        ...

    def place(self, ids: Tensor, state: Tensor) -> None:
        """Put the boxes of worlds `ids` (n,) into `state` (n, 13)."""
        ...

    def touching(self) -> Tensor:
        """Which bodies touched the box in the last physics step, (N, B) bool."""
        ...


class Backend(Protocol):
    """N worlds with one character each, on flat ground. World frame, SI units, float32."""

    num_envs: int

    @property
    def box(self) -> FreeBox | None:
        """The character's box (`Character.box`), where it has one."""
        ...

    def state(self) -> CharacterState:
        """The present states, (N, ...)."""
        ...

    def touching(self) -> Tensor:
        """Which bodies were on the ground in the last physics step, (N, B) bool."""
        ...

    def place(self, ids: Tensor, state: CharacterState) -> None:
        """Put worlds `ids` (n,) into `state` (n, ...), velocities included; pushes on them end."""
        ...

    def advance(self, targets: Tensor) -> Tensor:
        """One control step towards joint targets (N, J) rad. Returns the broken worlds, (N,) bool:
        a coordinate is not finite, or a speed is 1,000 m/s or rad/s or more."""
        ...

    def push(self, ids: Tensor, body: str, wrench: Tensor) -> None:
        """Force and torque (n, 6) N and N m, world, at `body`'s center of mass from now on; zero
        ends it."""
        ...

    def snapshot(self) -> dict[str, Tensor]:
        """Everything that `restore` needs to continue bit for bit."""
        ...

    def restore(self, snapshot: dict[str, Tensor]) -> None: ...


def count_threads(threads: int) -> int:
    """How many threads an engine uses; `threads` 0 means all that the process may use."""
    return threads or count_processors()


def make_backend(engine: str, character: Character, num_envs: int, threads: int = 0) -> Backend:
    """The engine called `engine`, on `count_threads` of `threads`; KeyError lists what exists."""
    if engine not in ENGINES:
        raise KeyError(f"no engine {engine!r}; there are: {', '.join(ENGINES)}")
    return ENGINES[engine](character, num_envs, count_threads(threads))


def _mujoco(character: Character, num_envs: int, threads: int) -> Backend:
    from pretrain.sim.mujoco_cpu import MujocoBackend

    return MujocoBackend(character, num_envs, threads)


ENGINES: dict[str, Callable[[Character, int, int], Backend]] = {"mujoco": _mujoco}
