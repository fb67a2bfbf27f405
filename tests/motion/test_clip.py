"""Low-pass filtering of a clip, and its hinge angles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pretrain.characters.rotations import from_axis_angle, log
from pretrain.motion.clip import MotionClip

AMPLITUDE = 0.1  # m of the root, rad of its heading and of a knee
INNER = slice(30, -30)  # without the ends, which are padded by reflection


def swaying(walk: MotionClip, hz: float) -> MotionClip:
    """A walk's first pose for 4 s, moved forward at 1 m/s; root, heading and left knee
    oscillate."""
    time = np.arange(121) / walk.fps
    wave = AMPLITUDE * np.sin(2 * np.pi * hz * time)
    held = {body: np.tile(q[:1], (len(time), 1)) for body, q in walk.joint_rot.items()}
    return replace(
        walk,
        root_pos=np.stack([time, wave, np.ones_like(time)], -1),
        root_rot=from_axis_angle("z", wave),
        joint_rot=held | {"left_shin": from_axis_angle("y", wave)},
    )


def most(q: np.ndarray) -> float:
    """The largest turn, rad."""
    return float(np.linalg.norm(log(q[INNER]), axis=-1).max())


@pytest.mark.parametrize(("hz", "left"), [(0.5, 0.99), (2, 0.917), (4, 0.5**0.5), (15 / 2, 0.296)])
def test_low_pass_keeps_slow_motion_and_halves_power_at_cutoff(training_data, hz, left):
    clip = swaying(training_data.dataset.clips[0], hz)
    passed = clip.low_passed(4.0)
    assert np.abs(passed.root_pos[INNER, 1]).max() == pytest.approx(AMPLITUDE * left, rel=0.03)
    assert most(passed.root_rot) == pytest.approx(AMPLITUDE * left, rel=0.03)
    assert most(passed.joint_rot["left_shin"]) == pytest.approx(AMPLITUDE * left, rel=0.03)
    assert passed.root_pos[:, 0] == pytest.approx(clip.root_pos[:, 0], abs=1e-12)
    for body in clip.joint_rot.keys() - {"left_shin"}:
        assert passed.joint_rot[body] == pytest.approx(clip.joint_rot[body], abs=1e-12)


def test_low_pass_keeps_both_ends_and_unit_rotations(training_data):
    for clip in training_data.dataset.originals:
        passed = clip.low_passed(3.0)
        joints = ((q, passed.joint_rot[body]) for body, q in clip.joint_rot.items())
        for before, after in ((clip.root_rot, passed.root_rot), *joints):
            assert np.linalg.norm(after, axis=-1) == pytest.approx(1)
            assert after[[0, -1]] == pytest.approx(before[[0, -1]])
        assert passed.root_pos[[0, -1]] == pytest.approx(clip.root_pos[[0, -1]])


def test_low_pass_and_mirroring_commute(training_data):
    for clip in training_data.dataset.originals:
        one = clip.mirrored().low_passed(4.0)
        other = clip.low_passed(4.0).mirrored()
        assert one.body_positions() == pytest.approx(other.body_positions(), abs=1e-9)


def test_low_pass_warns_of_its_shift_and_changes_the_digest(training_data):
    walk, run = (replace(clip, warnings=("old",)) for clip in training_data.dataset.originals[:2])
    passed = run.low_passed(2.0)
    far = np.linalg.norm(passed.body_positions() - run.body_positions(), axis=-1).max(-1)
    assert far.argmax() > 0
    warning = (
        f"{run.name}: low-passed at 2 Hz, which moves a body by up to {far.max():.2f} m "
        f"(frame {far.argmax()})"
    )
    assert passed.warnings == ("old", warning)
    assert len({c.digest for c in (run, passed, run.low_passed(3.0), walk.low_passed(2.0))}) == 4


def test_hinge_angles_do_not_depend_on_quaternion_signs(stroll):
    other = replace(stroll, joint_rot={body: -q for body, q in stroll.joint_rot.items()})
    assert other.joint_pos == pytest.approx(stroll.joint_pos, abs=1e-9)
    middle = (np.array(stroll.skeleton.lower) + np.array(stroll.skeleton.upper)) / 2
    assert (
        np.abs((np.ptp(other.joint_pos, 0) / 2 + other.joint_pos.min(0)) - middle) < np.pi
    ).all()
