"""Uploads: a clip file as it came over the wire -> states at a skill's control rate. Runs no graph.

The file is client input: any failure to read it is a Problem, never a 500."""

from __future__ import annotations

import logging
from pathlib import PurePosixPath

import numpy as np
from fastapi import Request
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException

from pretrain.characters.skeleton import Skeleton
from pretrain.motion.clip import ClipError, MotionClip
from pretrain.motion.importers import read_clip
from serving.wire.problems import Refusal, invalid, quoted
from skills_store.manifest import Character

log = logging.getLogger("repertoire.serving")
EXPECTED = "a motion clip in one of the imported formats, fit for the skill's character"
FORM = "multipart/form-data with the field file, and skill if it is not the default"


async def parse_upload(request: Request, max_body: int) -> tuple[bytes, str, str | None]:
    """A multipart form's (bytes, file name, skill)."""
    try:
        async with request.form(max_files=1, max_fields=1, max_part_size=max_body) as form:
            _refuse_other_fields(form)
            file = form.get("file")
            skill = form.get("skill")
            if not isinstance(file, UploadFile):
                raise invalid("missing_field", "the form has no uploaded file", "file", FORM)
            if isinstance(skill, UploadFile):
                raise invalid("wrong_type", "skill is a file, not text", "skill", FORM)
            return await file.read(), file.filename or "", skill
    except HTTPException as error:  # Starlette's error for a malformed form
        raise invalid(
            "bad_upload", f"the form cannot be read: {quoted(error.detail)}", None, FORM
        ) from None


def read_states(data: bytes, filename: str, character: Character, max_frames: int) -> np.ndarray:
    """(T, S) float32, one control step apart."""
    # Only the last part of the name: it appears in messages and opens no file.
    name = PurePosixPath(filename.replace("\\", "/")).name or "clip"
    skeleton = _skeleton(character)
    try:
        clip = read_clip(data, name, skeleton)
        return _at_control_rate(clip, character.control_dt, max_frames)
    except Refusal:
        raise
    except ClipError as error:
        raise invalid("clip_unreadable", str(error), "file", EXPECTED) from error
    except Exception as error:  # unforeseen errors are defects of a reader, so they are logged
        log.warning("reading an uploaded clip failed", exc_info=error)
        raise invalid(
            "clip_unreadable", f"{name!a} cannot be read as a motion clip", "file", EXPECTED
        ) from error


def _refuse_other_fields(form: FormData) -> None:
    for name in form:
        if name not in ("file", "skill"):
            raise invalid(
                "unknown_field", f"no field {quoted(name)} in the form", quoted(name)[1:-1], FORM
            )


def _skeleton(character: Character) -> Skeleton:
    try:
        return Skeleton.from_dict(character.skeleton)
    except (
        KeyError,
        TypeError,
        AttributeError,
        ValueError,
    ) as error:  # the version is from another program
        raise Refusal(
            503, "store_error", f"{character.name} has no skeleton to fit a clip to"
        ) from error


def _at_control_rate(clip: MotionClip, control_dt: float, max_frames: int) -> np.ndarray:
    frames = clip.duration / control_dt + 1  # before resampling: a file may claim to last for years
    if frames > max_frames:
        message = (
            f"the clip has {frames:.0f} frames at the control rate; this service takes "
            f"up to {max_frames}"
        )
        raise invalid("batch_too_large", message, "file", f"at most {max_frames} frames")
    if len(clip) > 1 and abs(clip.fps * control_dt - 1) > 1e-6:
        clip = clip.resampled(1 / control_dt)
    with np.errstate(all="ignore"):  # what overflows is found by the next line
        states = np.asarray(clip.states.flatten(), dtype=np.float32)
    if not np.isfinite(states).all():
        frame = int(np.argwhere(~np.isfinite(states))[0][0])
        raise invalid("not_finite", f"the clip's frame {frame} is not finite", "file", EXPECTED)
    return states
