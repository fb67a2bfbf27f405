"""What is done to a clip after it was read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pretrain.motion.clip import MotionClip


def swaying(walk: MotionClip, hz: float) -> MotionClip:
    """A walk's first pose, moved forward at 1 m/s and to and fro sideways by 0.1 m, for 4 s."""
    time = np.arange(121) / walk.fps
    root_pos = np.stack([time, 0.1 * np.sin(2 * np.pi * hz * time), np.ones_like(time)], -1)
    held = {body: np.tile(q[:1], (len(time), 1)) for body, q in walk.joint_rot.items()}
    return replace(walk, root_pos=root_pos, root_rot=np.tile(walk.root_rot[:1], (len(time), 1)), joint_rot=held)


@pytest.mark.parametrize(("hz", "left"), [(0.5, 0.99), (2, 0.917), (4, 0.5**0.5), (8, 0.25), (15 / 2, 0.296)])
def test_low_pass_leaves_what_is_slow_and_halves_the_power_at_its_cutoff(material, hz, left):
    clip = swaying(material.dataset.clips[0], hz)
    passed = clip.low_passed(4.0)
    inner = slice(30, -30)  # a reflected end is another wave's
    assert np.abs(passed.root_pos[inner, 1]).max() == pytest.approx(0.1 * left, rel=0.03)
    assert passed.root_pos[:, 0] == pytest.approx(clip.root_pos[:, 0], abs=1e-12)
    for body, q in passed.joint_rot.items():
        assert q == pytest.approx(clip.joint_rot[body], abs=1e-12)


def test_low_pass_keeps_both_ends_and_unit_rotations(material):
    for clip in material.dataset.originals:
        passed = clip.low_passed(3.0)
        for before, after in [
            (clip.root_rot, passed.root_rot),
            *zip(clip.joint_rot.values(), passed.joint_rot.values(), strict=True),
        ]:
            assert np.linalg.norm(after, axis=-1) == pytest.approx(1)
            assert after[[0, -1]] == pytest.approx(before[[0, -1]])
        assert passed.root_pos[[0, -1]] == pytest.approx(clip.root_pos[[0, -1]])


def test_low_pass_of_a_mirror_image_is_the_mirror_image_of_a_low_pass(material):
    for clip in material.dataset.originals:
        one, other = clip.mirrored().low_passed(4.0), clip.low_passed(4.0).mirrored()
        assert one.body_positions() == pytest.approx(other.body_positions(), abs=1e-9)


def test_low_pass_says_how_far_it_moves_a_body_and_is_another_clip(material):
    walk = material.dataset.clips[0]
    passed = walk.low_passed(2.0)
    far = np.linalg.norm(passed.body_positions() - walk.body_positions(), axis=-1).max()
    assert passed.warnings[-1].startswith(f"walk: low-passed at 2 Hz, which moves a body by up to {far:.2f} m (frame ")
    assert passed.digest not in (walk.digest, walk.low_passed(3.0).digest)
