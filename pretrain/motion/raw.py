"""RawMotion: a motion file's content, on its own skeleton and in its units. Numpy only."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pretrain.characters.rotations import multiply, rotate


@dataclass(frozen=True)
class RawMotion:
    """Poses of a named tree of joints at `rate`, before retargeting. Joints are parent-first.

    `rest` is a pose of the file in which the person stands upright with arms spread (a T-pose), or
    None where the file has none: its zero pose may then be no human pose."""

    name: str
    rate: float  # frames/s
    joints: tuple[str, ...]
    parents: tuple[int, ...]  # -1 for the root
    offsets: np.ndarray  # (J, 3) joint in its parent's frame, units of the file
    rotations: np.ndarray  # (T, J, 4) wxyz, relative to the parent
    root_pos: np.ndarray  # (T, 3) units of the file
    rest: np.ndarray | None = None  # (J, 4) wxyz, relative to the parent
    translations: dict[int, np.ndarray] = field(default_factory=dict)  # (T, 3) in place of offsets
    up: str = "y"  # the axis that points up
    warnings: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.root_pos)

    def ancestors(self, joint: int) -> tuple[int, ...]:
        """`joint`, its parent, and so on up to the root."""
        chain = [joint]
        while self.parents[chain[-1]] >= 0:
            chain.append(self.parents[chain[-1]])
        return tuple(chain)

    def forward(
        self, joints: tuple[int, ...]
    ) -> tuple[dict[int, np.ndarray], dict[int, np.ndarray]]:
        """World positions (T, 3) and rotations (T, 4) of `joints` and all of their ancestors."""
        needed = sorted({above for joint in joints for above in self.ancestors(joint)})
        positions = {}
        rotations = {}
        for joint in needed:
            parent = self.parents[joint]
            local = self.rotations[:, joint]
            if parent < 0:
                positions[joint] = self.root_pos
                rotations[joint] = local
                continue
            offset = self.translations.get(joint, self.offsets[joint])
            positions[joint] = positions[parent] + rotate(rotations[parent], offset)
            rotations[joint] = multiply(rotations[parent], local)
        return positions, rotations
