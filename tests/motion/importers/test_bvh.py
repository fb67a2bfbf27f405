"""The BVH reader: any order of channels, and invalid files, all of them synthetic."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.clip_files.rig import bvh, chain
from pretrain.characters.rotations import to_matrix
from pretrain.motion.clip import ClipError
from pretrain.motion.importers import bvh as importer

ORDERS = ("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")
EXAMPLES = 30


def turn(axis: str, degrees: float) -> np.ndarray:
    """The matrix of a turn about a coordinate axis, independent of the reader."""
    c = np.cos(np.radians(degrees))
    s = np.sin(np.radians(degrees))
    i = "XYZ".index(axis)
    j = (i + 1) % 3
    k = (i + 2) % 3
    matrix = np.eye(3)
    matrix[j, j] = matrix[k, k] = c
    matrix[j, k] = -s
    matrix[k, j] = s
    return matrix


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    order=st.sampled_from(ORDERS),
    child=st.sampled_from((*ORDERS, "X", "ZX")),
    angles=st.lists(st.floats(-180, 180), min_size=6, max_size=6),
)
def test_rotation_channels_compose_in_file_order(order, child, angles):
    names = [" ".join(f"{axis}rotation" for axis in axes) for axes in (order, child)]
    row = [10.0, 20.0, 30.0, *angles[: 3 + len(child)]]
    motion = importer.read(bvh(chain(*names), [row, row]), "a.bvh")
    root = np.linalg.multi_dot(
        [turn(axis, angle) for axis, angle in zip(order, angles, strict=False)]
    )
    arm = np.eye(3)
    for axis, angle in zip(child, angles[3:], strict=False):
        arm = arm @ turn(axis, angle)
    positions, rotations = motion.forward((1,))
    np.testing.assert_allclose(to_matrix(rotations[1])[0], root @ arm, atol=1e-6)
    np.testing.assert_allclose(positions[1][0], [10, 20, 30] + root @ [1, 2, 3], atol=1e-5)


def test_position_channels_of_a_joint_replace_its_offset():
    header = chain(child="Xposition Yposition Zposition Zrotation Yrotation Xrotation")
    motion = importer.read(bvh(header, [[0, 0, 0, 0, 0, 0, 7, 8, 9, 0, 0, 0]] * 2), "a.bvh")
    np.testing.assert_allclose(motion.forward((1,))[0][1], [[7, 8, 9]] * 2)


def test_leading_whole_degree_t_pose_becomes_the_rest_pose():
    rows = [
        [0, 0, 0, 0, 0, 0, -21, 0, 0],
        [0, 0, 0, 1.5, 2.5, 3.5, 0.1, 0.2, 0.3],
        [0, 0, 0, 1.6, 2.6, 3.6, 0.1, 0.2, 0.3],
    ]
    motion = importer.read(bvh(chain(), [list(map(float, row)) for row in rows]), "a.bvh")
    assert len(motion) == 2
    assert motion.rest is not None
    np.testing.assert_allclose(
        motion.rest[1], [np.cos(np.radians(10.5)), 0, 0, -np.sin(np.radians(10.5))]
    )


def test_line_ends_byte_order_mark_and_spaces_do_not_matter():
    data = bvh(chain(), [[1.0, 2, 3, 4, 5, 6, 7, 8, 9]] * 3)
    plain = importer.read(data, "a.bvh")
    for other in (
        data.replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + data,
        data.rstrip(),
        data.replace(b"JOINT Arm", b"JOINT My Arm"),
    ):
        assert importer.recognize(other)
        np.testing.assert_array_equal(importer.read(other, "a.bvh").rotations, plain.rotations)


ROW = [0.5] * 9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda text: text.replace("MOTION", "MOTIONS"),
            "'S' after MOTION",
        ),
        (lambda text: text.replace("Frame Time: 0.01", "Frame Time: 30"), "is it a rate"),
        (lambda text: text.replace("Frame Time: 0.01", "Frame Time: 0"), "Frame Time: 0"),
        (lambda text: text.replace("Frame Time: 0.01", "Frame Time: 0,01"), "expected Frame Time"),
        (
            lambda text: text.replace("Frames: 3", "Frames: 4"),
            "3 frames of 9 values, its header states 4",
        ),
        (lambda text: text.replace("Frames: 3", "Frames: 99999999999"), "values at most"),
        (lambda text: text.replace("Frames: 3", "Frames: 1"), "expected 2 or more"),
        (
            lambda text: text.replace("Frames: 3", "Frames: 400000"),
            "lasts 4000 s, expected 3600 at most",
        ),
        (
            lambda text: text.replace("    CHANNELS 3 Zrotation Yrotation Xrotation\n", "").replace(
                "CHANNELS 6 Xposition Yposition Zposition Zrotation Yrotation Xrotation",
                "CHANNELS 1 Xrotation",
            ),
            "1 channels for 2 joints",
        ),
        (lambda text: text.replace("0.5 0.5\n", "0.5 0,5\n", 1), "frame 0 has a comma"),
        (lambda text: text.replace("0.5 0.5\n", "0.5 nan\n", 1), "frame 0 column 8 is nan"),
        (
            lambda text: text.replace("0.5 0.5\n", "0.5 1e9\n", 1),
            "frame 0 column 8 is 1000000000.0",
        ),
        (lambda text: text.replace("0.5 0.5\n", "0.5 x\n", 1), "a frame is not of numbers"),
        (
            lambda text: text.replace("OFFSET 1 2 3", "OFFSET 1 2"),
            "line 8: '1 2', expected 3 numbers",
        ),
        (lambda text: text.replace("OFFSET 1 2 3", "OFFSET 1,5 2 3"), "decimal points"),
        (lambda text: text.replace("CHANNELS 3", "CHANNELS 4"), "expected CHANNELS, their number"),
        (
            lambda text: text.replace("JOINT Arm", "BONE Arm"),
            "line 6: 'BONE', expected ROOT, JOINT",
        ),
        (lambda text: text.replace("}\nMOTION", "\nMOTION"), "1 braces left open"),
        (
            lambda text: text.replace("\nMOTION", "\nROOT B\n{\nOFFSET 0 0 0\n}\nMOTION"),
            "a joint outside of the one root",
        ),
    ],
)
def test_invalid_bvh_error_names_file_and_place(change, message):
    data = change(bvh(chain(), [ROW] * 3).decode()).encode()
    with pytest.raises(ClipError, match=message) as caught:
        importer.read(data, "a.bvh")
    assert str(caught.value).startswith("a.bvh: ")


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_mutated_file_is_read_or_raises_clip_error(data):
    """Any exception but ClipError is a defect."""
    plain = bvh(chain(), [ROW] * 3)
    changed = bytearray(plain)
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(changed) - 1))
        kind = data.draw(st.sampled_from(("set", "cut", "copy")))
        if kind == "set":
            changed[at] = data.draw(st.integers(0, 255))
        elif kind == "cut":
            del changed[at : at + data.draw(st.integers(1, 40))]
            changed = changed or bytearray(plain)
        else:
            changed[at:at] = changed[at : at + data.draw(st.integers(1, 40))]
    try:
        motion = importer.read(bytes(changed), "a.bvh")
    except ClipError:
        return
    assert np.isfinite(motion.rotations).all()
    assert np.isfinite(motion.root_pos).all()
