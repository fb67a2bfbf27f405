"""The DeepMimic importer: against the raw file's own kinematics, and invalid files."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pretrain.characters.rotations import multiply, rotate
from pretrain.motion.clip import ClipError
from pretrain.motion.fetch import fetched
from pretrain.motion.importers import deepmimic, read_clip
from skills_store import places

CLIPS = [
    "humanoid3d_walk",
    "humanoid3d_run",
    "humanoid3d_cartwheel",
    "humanoid3d_kick",
    "walker/turn_left0",
]


def raw(name: str) -> bytes:
    return (fetched(places.clips()) / f"{name}.txt").read_bytes()


def raw_wrist(frame: np.ndarray) -> np.ndarray:
    """Right wrist in the raw file's y-up world by root, chest, shoulder and elbow, independent of
    the importer."""

    def unit(q: np.ndarray) -> np.ndarray:
        return q / np.linalg.norm(q)

    chest = multiply(unit(frame[4:8]), unit(frame[8:12]))
    shoulder = multiply(chest, unit(frame[25:29]))
    half = frame[29] / 2
    elbow = multiply(shoulder, np.array([np.cos(half), 0, 0, np.sin(half)]))  # hinges turn about z
    position = frame[1:4] + rotate(unit(frame[4:8]), np.array([0, 0.236151, 0]))
    position = position + rotate(chest, np.array([-0.02405, 0.2435, 0.18311]))
    position = position + rotate(shoulder, np.array([0, -0.274788, 0]))
    return position + rotate(elbow, np.array([0, -0.258947, 0]))


@pytest.mark.parametrize("name", CLIPS)
def test_wrist_is_where_the_raw_file_puts_it(skeleton, name):
    data = raw(name)
    frames = np.array(json.loads(data)["Frames"])
    frames[:, 0] = 1 / 30  # one frame per control step: nothing is interpolated
    document = json.dumps({"Loop": "none", "Frames": frames.tolist()}).encode()
    clip = deepmimic.read(document, name, skeleton)
    assert len(clip) == len(frames)
    wrist = clip.body_positions()[:, skeleton.bodies.index("right_hand")]
    x, y, z = np.stack([raw_wrist(frame) for frame in frames]).T
    np.testing.assert_allclose(wrist, np.stack([x, -z, y], -1), atol=1e-6)


def test_walk_moves_forward_upright_and_on_the_ground(skeleton):
    clip = read_clip(raw("humanoid3d_walk"), "humanoid3d_walk.txt", skeleton)
    traveled = clip.root_pos[-1] - clip.root_pos[0]
    assert clip.name == "walk"
    assert traveled[0] == pytest.approx(1.24, abs=0.02)
    assert abs(traveled[1]) < 0.05
    assert 0.8 < clip.root_pos[:, 2].mean() < 0.95


def test_velocities_are_the_derivatives_of_positions(skeleton):
    clip = read_clip(raw("humanoid3d_walk"), "humanoid3d_walk.txt", skeleton)
    state = clip.states
    difference = (state.joint_pos[2:] - state.joint_pos[:-2]) * 15
    # the rates come from rotations over two frames, the differences from angles: second-order terms
    # apart
    np.testing.assert_allclose(
        state.joint_vel[1:-1], difference, atol=0.02 + 0.1 * np.abs(difference).max()
    )
    assert np.linalg.norm(state.root_vel, axis=-1).mean() == pytest.approx(0.98, abs=0.05)


def test_odd_frame_durations_are_integrated(skeleton):
    frames = np.array(json.loads(raw("humanoid3d_walk"))["Frames"])[:10]
    frames[:, 0] = 0.05
    frames[4, 0] = 0.25  # one long frame: 8 * 0.05 + 0.25 s in all
    clip = deepmimic.read(
        json.dumps({"Loop": "none", "Frames": frames.tolist()}).encode(), "odd", skeleton
    )
    assert clip.duration == pytest.approx(0.65, abs=1 / 30)


def test_non_unit_quaternions_are_normalized_with_a_warning(skeleton):
    clip = read_clip(raw("humanoid3d_kick"), "humanoid3d_kick.txt", skeleton)
    (warning,) = (line for line in clip.warnings if "non-unit" in line)
    assert (
        "29 non-unit quaternions normalized, worst |q| = 0.583, right_thigh in frame 27" in warning
    )
    assert "(right_thigh 20, right_foot 9)" in warning
    np.testing.assert_allclose(np.linalg.norm(clip.root_rot, axis=-1), 1, atol=1e-9)


def test_mirror_twice_is_the_clip_and_once_swaps_sides(skeleton):
    clip = read_clip(raw("walker/turn_left0"), "turn_left0.txt", skeleton)
    mirror = clip.mirrored()
    twice = clip.mirrored().mirrored()
    np.testing.assert_allclose(twice.joint_pos, clip.joint_pos, atol=1e-9)
    right, left = (skeleton.bodies.index(f"{side}_hand") for side in ("right", "left"))
    flipped = clip.body_positions()[:, right] * [1, -1, 1]
    np.testing.assert_allclose(mirror.body_positions()[:, left], flipped, atol=1e-9)


def damaged(change) -> bytes:
    document = json.loads(raw("humanoid3d_walk"))
    change(document)
    return json.dumps(document).encode()


def put(frame: int, column: int, value: object):
    def change(document: dict) -> None:
        document["Frames"][frame][column] = value

    return change


def spelled(number: str):
    """`damaged`, with that JSON number, which Python itself may not be able to write, in place of
    "HERE"."""
    return lambda change: damaged(change).replace(b'"HERE"', number.encode())


BAD = {
    "nan": (damaged, put(7, 3, float("nan")), "frame 7 column 3"),
    "infinite": (damaged, put(7, 3, float("inf")), "frame 7 column 3"),
    "text": (damaged, put(2, 9, "x"), "frame 2 column 9"),
    "no duration": (damaged, put(5, 0, 0.0), "frame 5 lasts 0"),
    "endless": (damaged, put(5, 0, 9e5), "lasts"),
    "zero quaternion": (
        damaged,
        lambda d: d["Frames"][4].__setitem__(slice(4, 8), [0, 0, 0, 0]),
        "frame 4",
    ),
    "columns": (damaged, lambda d: d["Frames"][9].pop(), "frame 9 has 43 columns, expected 44"),
    "one frame": (damaged, lambda d: d.update(Frames=d["Frames"][:1]), "1 frame"),
    "no time": (
        damaged,
        lambda d: d.update(Frames=[[0.005, *f[1:]] for f in d["Frames"][:3]]),
        "shorter than a control step",
    ),
    "more digits than an int has": (
        spelled("9" * 5000),
        put(7, 3, "HERE"),
        "frame 7 column 3 is inf, expected a finite",
    ),
    "more than a float holds": (
        spelled("9" * 400 + ".5"),
        put(7, 3, "HERE"),
        "frame 7 column 3 is inf, expected a finite",
    ),
    "whole number too large": (damaged, put(7, 3, 10**6), "frame 7 column 3 is 1000000.0"),
    "true": (damaged, put(7, 3, True), "frame 7 column 3 is True"),
    "long text": (damaged, put(2, 9, "x" * 10_000), r"frame 2 column 9 is 'x+\.\.\.x+', expected"),
    "loop of many digits": (
        spelled("9" * 5000),
        lambda d: d.update(Loop="HERE"),
        "Loop is inf, expected",
    ),
    "loop": (damaged, lambda d: d.update(Loop="maybe"), "maybe"),
    "no frames": (damaged, lambda d: d.pop("Frames"), "Frames"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_refused_by_name_and_frame(skeleton, case):
    make, change, message = BAD[case]
    with pytest.raises(ClipError, match=message) as caught:
        read_clip(make(change), "walk.txt", skeleton)
    assert str(caught.value).startswith("walk.txt: ")
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"\xff\xfe", b"[1, 2]", b"null", b"7", b"9" * 5000, b"[" * 2000 + b"]" * 2000],
)
def test_malformed_clip_file_is_refused_by_name(skeleton, data):
    with pytest.raises(ClipError, match=r"walk\.txt"):
        read_clip(data, "walk.txt", skeleton)


def test_whole_numbers_are_read_as_the_fractions_that_they_equal(skeleton):
    document = json.loads(raw("humanoid3d_walk"))
    document["Frames"][7][1:4] = [1.0, 1.0, -2.0]
    fractions = json.dumps(document).encode()
    whole = fractions.replace(b"1.0, 1.0, -2.0", b"1, 1, -2")
    assert len(whole) < len(fractions)
    one, other = (deepmimic.read(data, "walk", skeleton) for data in (whole, fractions))
    np.testing.assert_array_equal(one.root_pos, other.root_pos)


def test_unknown_format_lists_the_known_ones(skeleton):
    with pytest.raises(ClipError, match=r"\.txt"):
        read_clip(b"", "walk.fbx", skeleton)
