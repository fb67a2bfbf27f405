"""All formats are recognized by content, and mutated files are read or refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.clip_files import formats
from benchmarks.clip_files.human_rigs import bvh_of, deepmimic, human_amc, standing
from pretrain.motion.clip import CONTROL_RATE, ClipError, MotionClip
from pretrain.motion.importers import FORMATS, npz, read_clip, recognize

MAKERS = {
    "deepmimic": deepmimic,
    "bvh": bvh_of,
    "asf/amc": human_amc,
    "mimickit": formats.mimickit,
    "poselib": lambda clip: formats.npy(formats.poselib_document(clip)),
    "npz": npz.write,
    "isaac lab": formats.isaac_lab,
    "amass": lambda clip: formats.smpl(9),
    "protomotions": lambda clip: formats.protomotions(*standing()),
}


@pytest.mark.parametrize("name", MAKERS)
def test_format_is_recognized_by_content(stroll, name):
    data = MAKERS[name](stroll)
    assert recognize(data, "a") is FORMATS[name]
    assert [other for other in FORMATS if FORMATS[other].recognize(data)] == [name]


@pytest.mark.parametrize("name", MAKERS)
def test_generated_file_is_read(stroll, skeleton, name):
    clip = read_clip(MAKERS[name](stroll), "a", skeleton)
    assert clip.fps == CONTROL_RATE
    assert clip.digest.startswith("sha256:")


MADE: dict[str, bytes] = {}


def made_once(name: str, clip: MotionClip) -> bytes:
    """The file of a format, the same bytes in every example."""
    if name not in MADE:
        MADE[name] = MAKERS[name](clip)
    return MADE[name]


@pytest.mark.parametrize("name", MAKERS)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_mutated_file_is_read_or_raises_clip_error(stroll, skeleton, name, data):
    """Any exception but ClipError is a defect."""
    plain = made_once(name, stroll)
    changed = bytearray(plain)
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(changed) - 1))
        kind = data.draw(st.sampled_from(("set", "cut", "copy")))
        if kind == "set":
            changed[at] = data.draw(st.integers(0, 255))
        elif kind == "cut" and len(changed) > 50:
            del changed[at : at + data.draw(st.integers(1, 40))]
        else:
            changed[at:at] = changed[at : at + data.draw(st.integers(1, 40))]
    message = ""
    try:
        assert np.isfinite(read_clip(bytes(changed), "a", skeleton).root_pos).all()
    except ClipError as error:
        message = str(error)
    assert not message or message.startswith("a: ")
