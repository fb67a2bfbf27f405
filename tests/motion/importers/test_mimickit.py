"""MimicKit's .pkl: our own clip, written as MimicKit would, comes back; and errors."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.clip_files import formats
from pretrain.motion.clip import ClipError
from pretrain.motion.feasibility import find_implausible
from pretrain.motion.importers import mimickit, read_clip


@pytest.mark.parametrize("fps", [30, 30.0, np.float64(30), np.array(30)], ids=repr)
def test_clip_round_trips_with_any_type_of_rate(stroll, skeleton, fps):
    clip = mimickit.read(formats.mimickit(stroll, fps=fps), "a.pkl", skeleton)
    assert clip.fps == 30
    np.testing.assert_allclose(clip.root_pos, stroll.root_pos, atol=1e-5)
    np.testing.assert_allclose(clip.body_positions(), stroll.body_positions(), atol=1e-5)
    assert not clip.warnings


@pytest.mark.parametrize("protocol", [2, 4])
def test_lists_are_read_as_arrays_are(stroll, skeleton, protocol):
    frames = formats.mimickit_frames(stroll)
    document = {"loop_mode": 1, "fps": 30, "frames": frames.tolist()}
    listed = mimickit.read(pickle.dumps(document, protocol), "a.pkl", skeleton)
    arrays = mimickit.read(formats.mimickit(stroll, frames=frames), "a.pkl", skeleton)
    np.testing.assert_array_equal(listed.states.flatten(), arrays.states.flatten())


def test_sword_and_shield_hand_is_dropped_with_a_warning(stroll, skeleton):
    frames = formats.mimickit_frames(stroll)
    at = 6 + 3 + 3 + 3 + 1  # behind the right elbow
    wide = np.insert(frames, [at] * 3, 0.5, axis=1)
    clip = mimickit.read(formats.mimickit(stroll, frames=wide), "a.pkl", skeleton)
    np.testing.assert_allclose(clip.body_positions(), stroll.body_positions(), atol=1e-5)
    assert "right hand, which holds a sword, is left out" in clip.warnings[0]


def put(frame: int, column: int, value: float):
    def change(frames: np.ndarray) -> np.ndarray:
        frames[frame, column] = value
        return frames

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put(7, 9, np.nan), "frame 7 head is nan, expected a finite number"),
        (put(7, 2, np.inf), "frame 7 root position is inf"),
        (put(3, 33, 1e9), "frame 3 left_foot is 1000000000.0"),
        (lambda frames: frames[:1], "1 frames at 30 a second, expected 2 or more"),
        (lambda frames: frames[:0], "0 frames at 30 a second"),
        (lambda frames: frames[:, :28], "28 numbers a frame; expected 34"),
        (lambda frames: np.pad(frames, ((0, 0), (0, 1))), "as a Unitree G1 has; expected 34"),
        (lambda frames: frames[:, :18], "as a Unitree Go2 has; expected 34"),
        (lambda frames: frames[0], r"frames is \(34,\), expected \(T, 34\)"),
        (lambda frames: frames.astype("S8"), r"holds \|S8, expected numbers"),
        (lambda frames: [[1.0] * 34, [1.0] * 33], "frame 1 has 33 numbers, expected 34"),
        (lambda frames: [[1.0] * 34, [*[1.0] * 33, "x"]], "frames hold float, str, expected"),
        (lambda frames: [[1.0] * 34, [*[1.0] * 33, 10**400]], "more digits than a float has"),
    ],
)
def test_invalid_frames_error_names_frame_and_joint(stroll, skeleton, change, message):
    data = formats.mimickit(stroll, frames=change(formats.mimickit_frames(stroll)))
    with pytest.raises(ClipError, match=message) as caught:
        read_clip(data, "a.pkl", skeleton)
    assert str(caught.value).startswith("a.pkl: ")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"fps": 0}, "its rate is 0, expected 1 to 1000 frames/s"),
        ({"fps": 1 / 30}, "is it a frame time?"),
        ({"fps": "30,0"}, "its rate is 30,0"),
        ({"fps": np.zeros(2)}, "its rate is"),
        ({"loop_mode": 2}, "loop_mode is 2, expected 0"),
        ({"frames": 7}, "frames is int"),
    ],
)
def test_invalid_key_is_refused_with_its_reason(stroll, skeleton, changed, message):
    with pytest.raises(ClipError, match=message):
        read_clip(formats.mimickit(stroll, **changed), "a.pkl", skeleton)


@pytest.mark.parametrize("document", [[], {"fps": 30}, 7, {"a": 1}])
def test_another_pickle_is_refused_with_the_keys_that_are_expected(skeleton, document):
    with pytest.raises(ClipError, match="loop_mode"):
        read_clip(pickle.dumps(document), "a.pkl", skeleton)


def test_unencodable_text_is_escaped_in_the_error(skeleton):
    with pytest.raises(ClipError, match=r"it has \\ud800") as caught:
        read_clip(pickle.dumps({"\ud800": 1}), "a.pkl", skeleton)
    assert str(caught.value).encode()


def test_robot_pickle_is_refused(skeleton):
    document = {"fps": 30, "root_pos": [], "root_rot": [], "dof_pos": [], "link_body_list": None}
    with pytest.raises(ClipError, match=r"a robot's motion by GMR .*no character here"):
        read_clip(pickle.dumps(document), "a.pkl", skeleton)


def test_implausible_length_unit_gives_a_warning(stroll, skeleton):
    large = replace(stroll, root_pos=stroll.root_pos * 100)
    (line,) = mimickit.read(formats.mimickit(large), "a.pkl", skeleton).warnings
    assert "m high in half of its frames; is it in cm?" in line
    small = replace(stroll, root_pos=stroll.root_pos / 200)
    (line,) = mimickit.read(formats.mimickit(small), "a.pkl", skeleton).warnings
    assert "is it in 100 m?" in line


def test_wrong_up_axis_warns_if_the_clip_is_named_walk(stroll, skeleton):
    turn = np.array([np.sqrt(0.5), -np.sqrt(0.5), 0, 0])
    lying = replace(stroll, root_rot=np.tile(turn, (len(stroll), 1)))
    (line,) = mimickit.read(formats.mimickit(lying), "my_walk.pkl", skeleton).warnings
    assert line == "my_walk.pkl: called walk, but it lies or hangs; is another axis than z up?"
    assert not mimickit.read(formats.mimickit(lying), "crawl.pkl", skeleton).warnings


def test_angles_in_degrees_are_detected_by_hinge_ranges(stroll, skeleton):
    frames = formats.mimickit_frames(stroll)
    frames[:, 6:] = np.degrees(frames[:, 6:])
    clip = mimickit.read(formats.mimickit(stroll, frames=frames), "a.pkl", skeleton)
    assert any("are its angles in degrees?" in line for line in find_implausible(clip))
