"""Robots' motion files are recognized and refused."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.clip_files import formats
from pretrain.motion.clip import ClipError
from pretrain.motion.importers import is_recognized, read_clip


def row(columns: int) -> str:
    return ",".join(f"{value:.9e}" for value in np.linspace(-1, 1, columns))


SEED = "Frame,root_translateX,root_translateY,root_translateZ,left_hip_pitch_joint_dof,a,b,c,d\n1"
MJLAB = {key: np.zeros((4, 29)) for key in ("joint_pos", "joint_vel", "body_pos_w", "body_quat_w")}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (f"{row(36)}\n{row(36)}\n".encode(), r"xyzw \(Unitree\) or wxyz \(Kimodo"),
        (f"\ufeff{row(36)}\r\n".encode(), r"xyzw \(Unitree\) or wxyz \(Kimodo"),
        (f"{row(30)}\n".encode(), "a table of 30 columns, as robots' motions are"),
        (SEED.encode(), r"a Unitree G1's motion of SEED \(cm, degrees"),
        (
            formats.npz(fps=np.array([50]), **MJLAB),
            "mjlab or BeyondMimic; its columns have no names",
        ),
    ],
)
def test_a_robots_file_is_refused_by_name(skeleton, data, message):
    remedy = "no character here has a robot's joints"
    with pytest.raises(ClipError, match=f"^robot: .*{message}.*{remedy}"):
        read_clip(data, "robot", skeleton)


@pytest.mark.parametrize("data", [b"a,b,c,d,e,f,g,h,i\n", b"1,2,3\n", b"", b"1;2;3;4;5;6;7;8;9"])
def test_other_tables_are_not_recognized(data):
    assert not is_recognized(data)
