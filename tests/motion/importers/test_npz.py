"""The project's own clips."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

from pretrain.motion.clip import ClipError
from pretrain.motion.importers import npz, read_clip


def test_npz_round_trip_keeps_the_clip(stroll, skeleton):
    again = read_clip(npz.write(stroll), "again.npz", skeleton)
    np.testing.assert_allclose(again.root_pos, stroll.root_pos, atol=1e-6)
    np.testing.assert_allclose(again.joint_pos, stroll.joint_pos, atol=1e-5)
    assert (again.source, again.licence, again.fps) == (stroll.source, stroll.licence, stroll.fps)


def test_the_same_clip_gives_the_same_bytes(stroll):
    assert npz.write(stroll) == npz.write(stroll)


def arrays(data: bytes) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name[:-4]: np.load(io.BytesIO(archive.read(name))) for name in archive.namelist()}


def packed(changed: dict[str, np.ndarray]) -> bytes:
    out = io.BytesIO()
    np.savez(out, **changed)  # pyright: ignore[reportArgumentType]
    return out.getvalue()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"root_rot": np.zeros((163, 4), np.float32)}, "not of length 1"),
        ({"root_pos": np.full((163, 3), np.nan, np.float32)}, "root_pos is not finite"),
        ({"root_pos": np.zeros((163, 2), np.float32)}, r"root_pos has shape \(163, 2\)"),
        ({"joint_pos": np.zeros((162, 28), np.float32)}, "joint_pos has shape"),
        ({"fps": np.array(0.0)}, "its rate is 0.0, expected 1 to 1000"),
        ({"fps": np.array(1e-300)}, "its rate is 1e-300, expected 1 to 1000"),
        ({"fps": np.array("30")}, "fps holds"),
        ({"hinges": np.array(["a"] * 28)}, "'humanoid' has others"),
    ],
)
def test_invalid_array_is_refused_with_its_reason(stroll, skeleton, change, message):
    with pytest.raises(ClipError, match=message):
        npz.read(packed(arrays(npz.write(stroll)) | change), "a.npz", skeleton)


def test_pickled_objects_are_not_loaded(stroll, skeleton):
    out = io.BytesIO()
    np.savez(
        out,
        allow_pickle=True,
        **(arrays(npz.write(stroll)) | {"source": np.array([{}], dtype=object)}),
    )  # pyright: ignore[reportArgumentType]
    with pytest.raises(ClipError, match="not a clip of this project"):
        npz.read(out.getvalue(), "a.npz", skeleton)


def test_half_a_file_is_refused(stroll, skeleton):
    with pytest.raises(ClipError, match="not a clip of this project"):
        npz.read(npz.write(stroll)[:5000], "a.npz", skeleton)
