"""poselib's .npy: our own clip on a rig of hanging arms comes back."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.clip_files import formats
from pretrain.characters.rotations import from_axis_angle
from pretrain.motion.clip import ClipError
from pretrain.motion.feasibility import find_implausible
from pretrain.motion.importers import poselib, read_clip
from pretrain.motion.importers.copies import without_copies


@pytest.mark.parametrize(
    "fps",
    [30.0, np.float64(29.92459943449576), np.array(60, np.int32), 16.0],
    ids=repr,
)
def test_a_clip_comes_back_at_the_rate_that_is_stated(stroll, skeleton, fps):
    data = formats.npy(formats.poselib_document(stroll) | {"fps": fps})
    clip = poselib.read(data, "a.npy", skeleton)
    assert clip.fps == float(fps)
    np.testing.assert_allclose(clip.body_positions(), stroll.body_positions(), atol=1e-6)
    assert not clip.warnings


@pytest.mark.parametrize(
    "no", [False, np.bool_(False), np.array(False), np.array([False])], ids=repr
)
def test_rotations_in_the_world_are_taken_against_parents(stroll, skeleton, no):
    document = formats.poselib_document(stroll)
    document["rotation"]["arr"] = formats.hanging(stroll)[1][..., [1, 2, 3, 0]]
    clip = poselib.read(formats.npy(document | {"is_local": no}), "a.npy", skeleton)
    np.testing.assert_allclose(clip.body_positions(), stroll.body_positions(), atol=1e-6)


@pytest.mark.parametrize(
    "other", [None, "False", 0, np.array([True, False]), np.array(1.0)], ids=repr
)
def test_is_local_that_is_no_bool_is_refused(stroll, skeleton, other):
    document = formats.poselib_document(stroll) | {"is_local": other}
    with pytest.raises(ClipError, match=r"a\.npy: is_local is .*, expected True or False"):
        poselib.read(formats.npy(document), "a.npy", skeleton)


def test_duplicated_frames_are_dropped_with_a_warning(stroll, skeleton):
    document = formats.poselib_document(stroll)
    for key in ("rotation", "root_translation"):
        document[key]["arr"] = np.repeat(document[key]["arr"], 2, axis=0)
    data = formats.npy(document | {"fps": 60})
    clip = without_copies(poselib.read(data, "a.npy", skeleton))
    assert (len(clip), clip.fps) == (len(stroll), 30)
    expected = "a.npy: every pose is stored twice: every second frame kept, 60 -> 30 frames/s"
    assert clip.warnings == (expected,)
    steps = np.linalg.norm(np.diff(clip.root_pos, axis=0), axis=-1)
    assert (steps > 0).all()


def test_bodies_match_by_name_and_weapon_bodies_are_dropped(stroll, skeleton):
    document = formats.poselib_document(stroll)
    tree = document["skeleton_tree"]
    order = list(range(10))
    order.insert(6, 15)  # the sword behind the right hand
    none = np.tile([0, 0, 0, 1.0], (len(stroll), 1, 1))
    rotations = np.concatenate([document["rotation"]["arr"], none], axis=1)
    names = [*tree["node_names"], "sword"]
    parents = [*tree["parent_indices"]["arr"], 5]
    order = [*range(6), 15, *range(6, 15)]
    place = {body: at for at, body in enumerate(order)}
    tree["node_names"] = [names[i] for i in order]
    tree["parent_indices"]["arr"] = np.array([place.get(parents[i], -1) for i in order])
    document["rotation"]["arr"] = rotations[:, order]
    offsets = np.vstack([tree["local_translation"]["arr"], np.zeros(3)])
    tree["local_translation"]["arr"] = offsets[order]
    clip = poselib.read(formats.npy(document), "a.npy", skeleton)
    np.testing.assert_allclose(clip.body_positions(), stroll.body_positions(), atol=1e-6)


def test_unrepresentable_hand_or_knee_rotation_gives_a_warning(stroll, skeleton):
    document = formats.poselib_document(stroll)
    turn = from_axis_angle("x", np.array(0.5))[[1, 2, 3, 0]]
    names = document["skeleton_tree"]["node_names"]
    document["rotation"]["arr"][7, names.index("right_hand")] = turn
    document["rotation"]["arr"][9, names.index("left_shin")] = turn
    lines = poselib.read(formats.npy(document), "a.npy", skeleton).warnings
    assert "the turn of its right hand is left out" in lines[0]
    assert "left_shin turns 29 degrees about other axes than its hinge's in frame 9" in lines[1]


def test_quaternions_in_wxyz_order_are_reported(stroll, skeleton):
    document = formats.poselib_document(stroll)
    document["rotation"]["arr"] = document["rotation"]["arr"][..., [3, 0, 1, 2]]
    clip = poselib.read(formats.npy(document), "a.npy", skeleton)
    assert any("xyzw order" in line for line in find_implausible(clip))


def test_signs_of_quaternions_do_not_matter(stroll, skeleton):
    document = formats.poselib_document(stroll)
    plain = read_clip(formats.npy(document), "a.npy", skeleton)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(len(stroll), 15, 1))
    document["rotation"]["arr"] = document["rotation"]["arr"] * signs
    document["fps"] = 60  # half of the frames of the clip lie between two of the file
    doubled = read_clip(formats.npy(document), "a.npy", skeleton).states.flatten()
    np.testing.assert_allclose(doubled[:, :3], plain.states.flatten()[::2, :3], atol=0.02)
    step = np.abs(np.diff(doubled[:, 13:41], axis=0))
    assert step.max() < 1.0


def test_velocities_of_the_file_are_not_read(stroll, skeleton):
    document = formats.poselib_document(stroll)
    plain = poselib.read(formats.npy(document), "a.npy", skeleton)
    document["global_velocity"] = {"arr": np.full((3, 3), np.nan)}
    other = poselib.read(formats.npy(document), "a.npy", skeleton)
    np.testing.assert_array_equal(other.states.flatten(), plain.states.flatten())


def test_another_body_and_exchanged_sides_are_refused(stroll, skeleton):
    document = formats.poselib_document(stroll)
    tree = document["skeleton_tree"]
    offsets = tree["local_translation"]["arr"].copy()
    tree["local_translation"]["arr"] = offsets * np.float32(1.3)
    with pytest.raises(ClipError, match=r"torso is 0\.307 m from its parent, expected 0\.236"):
        poselib.read(formats.npy(document), "a.npy", skeleton)
    tree["local_translation"]["arr"] = offsets * np.array([1, -1, 1], np.float32)
    with pytest.raises(ClipError, match="are left and right exchanged"):
        poselib.read(formats.npy(document), "a.npy", skeleton)


def put(*place: int | slice, value: float):
    def change(document: dict) -> None:
        document["rotation"]["arr"][place] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put(5, 1, 0, value=np.nan), "rotation: frame 5 torso is nan"),
        (put(5, 2, slice(None), value=0.0), "frame 5: the quaternion of head has length 0.000"),
        (put(slice(None), 0, slice(None), value=1.0), "pelvis has length 2.000, expected 1"),
        (lambda d: d.pop("fps"), "no fps, expected a SkeletonMotion"),
        (lambda d: d.update(fps=0), "its rate is 0"),
        (
            lambda d: d["skeleton_tree"]["node_names"].__setitem__(9, "leg"),
            "no body right_thigh; it has pelvis",
        ),
        (
            lambda d: d["skeleton_tree"]["parent_indices"]["arr"].__setitem__(1, 5),
            "name a body before its parent",
        ),
        (lambda d: d["skeleton_tree"].pop("node_names"), "node_names is no list of names"),
        (lambda d: d["rotation"].pop("arr"), "rotation is NoneType, expected an array"),
        (
            lambda d: d["root_translation"].update(arr=np.zeros((4, 3))),
            "rotation has shape",
        ),
    ],
)
def test_invalid_npy_is_refused_with_its_reason(stroll, skeleton, change, message):
    document = formats.poselib_document(stroll)
    change(document)
    with pytest.raises(ClipError, match=message) as caught:
        read_clip(formats.npy(document), "a.npy", skeleton)
    assert str(caught.value).startswith("a.npy: ")


def test_another_npy_is_refused(skeleton):
    for data, message in ((formats.npy(7), "holds int"), (formats.npy({"a": 1}), "no rotation")):
        with pytest.raises(ClipError, match=message):
            read_clip(data, "a.npy", skeleton)


def test_generated_elbow_rotations_are_about_y(stroll):
    """The generated file has its own joint axes: elbows bend about y there, about z here."""
    document = formats.poselib_document(stroll)
    names = document["skeleton_tree"]["node_names"]
    q = document["rotation"]["arr"][:, names.index("right_lower_arm")][:, [3, 0, 1, 2]]
    assert np.abs(q[:, [1, 3]]).max() < 1e-6 < np.abs(q[:, 2]).max()
