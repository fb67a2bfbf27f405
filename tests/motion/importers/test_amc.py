"""ASF/AMC: bones by name, trimmed takes, the skeleton beside the take, and errors."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.clip_files.formats import ASF, amc
from pretrain.characters.rotations import to_matrix
from pretrain.motion.clip import ClipError
from pretrain.motion.importers import amc as importer
from pretrain.motion.importers.amc import find_skeleton, read_bytes
from tests.motion.importers.test_bvh import turn


def take(text: str | None = None, asf: str = ASF) -> bytes:
    return (asf + (text or amc())).encode()


def test_bone_rotation_uses_the_bones_local_axes():
    motion = importer.read(take(), "a.amc")
    own = turn("Z", 30) @ turn("Y", 20) @ turn("X", 10)
    root = turn("Z", 6) @ turn("Y", 5) @ turn("X", 4)
    upper = root @ own @ turn("Z", 8) @ turn("X", 7) @ own.T
    lower = upper @ turn("Z", 11) @ turn("Y", 10) @ turn("X", 9)
    positions, rotations = motion.forward((2,))
    np.testing.assert_allclose(to_matrix(rotations[1])[0], upper, atol=1e-9)
    np.testing.assert_allclose(to_matrix(rotations[2])[0], lower, atol=1e-9)
    np.testing.assert_allclose(positions[1][0], [1, 2, 3])  # a bone starts where its parent ends
    np.testing.assert_allclose(positions[2][0], [1, 2, 3] + upper @ [0, 2, 0], atol=1e-9)


def test_values_go_to_bones_by_name_and_not_by_position():
    lines = amc().replace("upper 7 8\nlower 9 10 11\n", "lower 9 10 11\nupper 7 8\n")
    plain = importer.read(take(), "a.amc")
    np.testing.assert_array_equal(importer.read(take(lines), "a.amc").rotations, plain.rotations)


def test_a_trimmed_take_begins_at_any_number():
    plain = importer.read(take(), "a.amc")
    trimmed = importer.read(take(amc(first=135)), "a.amc")
    np.testing.assert_array_equal(trimmed.rotations, plain.rotations)


def test_assumed_frame_rate_is_120_with_a_warning():
    motion = importer.read(take(), "a.amc")
    assert motion.rate == 120
    (line,) = motion.warnings
    assert line == "a.amc: an AMC states no rate: read at 120 frames/s, as CMU's takes are"


def test_radians_are_read_as_radians():
    text = "#!OML:ASF\n:FULLY-SPECIFIED\n:RADIANS\n" + "".join(
        f"{i}\nroot 0 0 0 0 0 0.5\nupper 0 0\nlower 0 0 0\n" for i in (1, 2)
    )
    motion = importer.read(take(text), "a.amc")
    np.testing.assert_allclose(motion.rotations[0, 0], [np.cos(0.25), 0, 0, np.sin(0.25)])


def test_line_ends_and_a_byte_order_mark_do_not_matter():
    plain = importer.read(take(), "a.amc").rotations
    for data in (take().replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + take(), take().rstrip()):
        assert importer.recognize(data)
        np.testing.assert_array_equal(importer.read(data, "a.amc").rotations, plain)


@pytest.mark.parametrize("name", ["02_01.asf", "02.asf", "someone.asf", "02.ASF"])
def test_the_skeleton_is_found_beside_the_take(tmp_path, name):
    (tmp_path / name).write_text(ASF)
    (tmp_path / "02_01.amc").write_text(amc())
    assert find_skeleton(tmp_path / "02_01.amc") == tmp_path / name
    assert len(importer.read(read_bytes(tmp_path / "02_01.amc"), "02_01.amc")) == 3


def test_a_skeleton_may_be_given(tmp_path):
    (tmp_path / "02_01.amc").write_text(amc())
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.asf").write_text(ASF)
    data = read_bytes(tmp_path / "02_01.amc", tmp_path / "elsewhere" / "a.asf")
    assert len(importer.read(data, "02_01.amc")) == 3


def test_amc_without_its_asf_is_refused_with_a_remedy(tmp_path):
    (tmp_path / "02_01.amc").write_text(amc())
    for name in ("05.asf", "07.asf"):
        (tmp_path / name).write_text(ASF)
    with pytest.raises(ClipError, match=r"expected 02\.asf beside it; there: 05\.asf, 07\.asf"):
        read_bytes(tmp_path / "02_01.amc")
    with pytest.raises(ClipError, match=r"a take without its skeleton .*before it in one file"):
        importer.read(amc().encode(), "a.amc")
    with pytest.raises(ClipError, match="a skeleton without a take"):
        importer.read(ASF.encode(), "a.asf")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.replace("upper 7 8", "upper 7"), r"line 35: frame 1: upper '7', expected 2"),
        (lambda t: t.replace("upper 7 8", "upper 7 8 9"), "expected 2 finite numbers"),
        (lambda t: t.replace("upper 7 8", "upper 7 nan"), "upper '7 nan', expected 2 finite"),
        (lambda t: t.replace("upper 7 8", "upper 7 8,5"), "with decimal points"),
        (lambda t: t.replace("upper 7 8", "uper 7 8"), "'uper' is no bone of .*near: upper"),
        (lambda t: t.replace("upper 7 8\n", "", 1), "frame 1 has no upper, expected every bone"),
        (lambda t: t.replace("upper 7 8", "lower 7 8 9"), "'lower' stands there twice"),
        (lambda t: t.replace("\n3\n", "\n7\n"), "frame 7 behind frame 2, expected 3; frames are"),
        (lambda t: t[: t.index("2\nroot")], "1 frames, expected 2 or more"),
        (lambda t: t[: t.index("1\nroot")], "no frame behind :FULLY-SPECIFIED"),
    ],
)
def test_invalid_amc_error_names_line_frame_and_bone(change, message):
    with pytest.raises(ClipError, match=message) as caught:
        importer.read(take(change(amc())), "a.amc")
    assert str(caught.value).startswith("a.amc: ")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("angle deg", "angle grad"), "line 4: 'angle grad', expected angle deg"),
        (("order TX TY TZ RX RY RZ", "order TX TY TZ RX RY"), "expected TX TY TZ RX RY RZ"),
        (("position 0 0 0", "position 0 1 0"), "position of the root, expected 0 0 0"),
        (("axis XYZ", "axis ZYX"), "axis of the root"),
        (("direction 0 1 0", "direction 0 1,5 0"), "upper direction '0 1,5 0', expected 3 numbers"),
        (("length 2\n", "length\n"), "upper length '', expected 1 numbers"),
        (("10 20 30 XYZ", "10 20 30 ZYX"), "expected three angles and XYZ"),
        (("dof rx rz", "dof rx l"), "expected some of rx ry rz"),
        (("name lower", "name upper"), "two bones of one name"),
        (("    upper lower\n", ""), "lower in no line of :hierarchy"),
        (("root upper", "root uper"), "'uper' is no bone of it"),
        (("upper lower\n", "upper upper\n"), "'upper' has two parents"),
        ((":hierarchy", ":tree"), "no :hierarchy"),
        (("     name lower\n", ""), "has no name"),
    ],
)
def test_invalid_asf_is_refused_with_its_reason(change, message):
    with pytest.raises(ClipError, match=message) as caught:
        importer.read(take(asf=ASF.replace(*change)), "a.amc")
    assert str(caught.value).startswith("a.amc: ")
