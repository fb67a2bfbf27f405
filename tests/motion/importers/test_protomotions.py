"""ProtoMotions' .motion: read without torch, bodies recognized by their number."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from benchmarks.clip_files import formats
from benchmarks.clip_files.human_rigs import standing
from pretrain.characters.rotations import normalize
from pretrain.motion.clip import ClipError
from pretrain.motion.importers import protomotions, read_clip

GLOBALS = b"cprotomotions.simulator.base_simulator.simulator_state\nStateConversion\n"


def world(bodies: int, count: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Any positions, and rotations xyzw."""
    rng = np.random.default_rng(bodies)
    return rng.normal(size=(count, bodies, 3)), normalize(rng.normal(size=(count, bodies, 4)))


@pytest.mark.parametrize("bodies", [23, 24, 52])
def test_poses_in_the_world_come_back(bodies):
    positions, rotations = world(bodies)
    motion = protomotions.read(formats.protomotions(positions, rotations), "a.motion")
    found = motion.forward(tuple(range(bodies)))
    for body in range(bodies):
        np.testing.assert_allclose(found[0][body], positions[:, body], atol=1e-5)
        same = np.abs((found[1][body] * rotations[:, body][:, [3, 0, 1, 2]]).sum(-1))
        np.testing.assert_allclose(same, 1, atol=1e-5)
    assert (motion.rate, motion.up) == (30, "z")


@pytest.mark.parametrize(
    "state",
    [b"X\x06\x00\x00\x00common", GLOBALS + b"X\x06\x00\x00\x00common\x85R"],
    ids=["text", "enum of its own package"],
)
def test_newer_files_with_an_enum_are_read(state):
    data = formats.protomotions(*world(24), state_conversion=state)
    assert len(protomotions.read(data, "a.motion")) == 5


def test_files_saved_by_torch_read_like_torch_load(tmp_path):
    torch = pytest.importorskip("torch")
    positions, rotations = world(24)
    document = {
        "rigid_body_pos": torch.tensor(positions, dtype=torch.float32),
        "rigid_body_rot": torch.tensor(rotations, dtype=torch.float32),
        "rigid_body_contacts": torch.zeros(5, 24, dtype=torch.bool),
        "fps": 30,
    }
    torch.save(document, tmp_path / "a.motion")
    data = (tmp_path / "a.motion").read_bytes()
    motion = protomotions.read(data, "a.motion")
    np.testing.assert_allclose(motion.root_pos, positions[:, 0], atol=1e-6)


def test_upright_pose_stays_upright_after_retargeting(skeleton):
    positions, rotations = standing()
    clip = read_clip(formats.protomotions(positions, rotations), "a.motion", skeleton)
    head = clip.body_positions()[:, skeleton.bodies.index("head"), 2]
    assert head.min() > 1.2
    assert clip.root_pos[-1, 0] - clip.root_pos[0, 0] == pytest.approx(0.1, abs=0.03)
    assert "torch" not in vars(sys.modules[protomotions.__name__])


def test_robot_motion_file_is_refused():
    with pytest.raises(ClipError, match=r"a\.motion: 33 bodies, a Unitree G1's motion; no"):
        protomotions.read(formats.protomotions(*world(33)), "a.motion")


def nan_at(frame: int, body: int) -> np.ndarray:
    positions = world(24)[0]
    positions[frame, body] = np.nan
    return positions


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (formats.protomotions(*world(7)), "7 bodies without names, expected 24"),
        (formats.protomotions(nan_at(3, 13), world(24)[1]), "rigid_body_pos: frame 3 Head is nan"),
        (formats.protomotions(world(24)[0], np.zeros((5, 24, 4))), "Pelvis has length 0"),
        (formats.protomotions(*world(24), fps=0), "its rate is 0"),
        (formats.protomotions(*world(24), state_conversion="simulator"), "in a simulator's order"),
        (formats.protomotions(world(24)[0][:, 0], world(24)[1]), r"shapes \(5, 3\) and"),
        (formats.protomotions(*world(24)).replace(b"data/1", b"data/7"), "zip cannot be read"),
    ],
)
def test_invalid_motion_file_is_refused_with_its_reason(data, message):
    with pytest.raises(ClipError, match=message) as caught:
        protomotions.read(data, "a.motion")
    assert str(caught.value).startswith("a.motion: ")


def test_pickle_referencing_other_globals_is_refused():
    call = b"cbuiltins\nprint\nX\x01\x00\x00\x00a\x85R"
    data = formats.protomotions(*world(24), fps=call)
    with pytest.raises(ClipError, match=r"its pickle asks for 'builtins\.print'"):
        protomotions.read(data, "a.motion")
