"""Assistance and references for tests."""

from __future__ import annotations

import torch

from pretrain.assist.assistance import Assistance
from pretrain.assist.curriculum import Curriculum
from pretrain.assist.getup import GetUpAssist
from pretrain.assist.reference_tracker import ReferenceTracker
from pretrain.assist.switch_assist import SwitchAssist
from pretrain.motion.library import MotionLibrary
from pretrain.sim.features import measure_std
from pretrain.sim.start_states import StartStates

PERIOD = 10  # control steps of a switch


def make_switches(clips: int, num_envs: int, start: float = 0.0) -> SwitchAssist:
    """Of all `clips`; it weakens by half in an iteration in which enough switches succeed."""
    return SwitchAssist(torch.full((clips,), start), num_envs, PERIOD, rate=0.5)


def make_assistance(
    curriculum: Curriculum,
    num_envs: int,
    getup: GetUpAssist | None = None,
    switches: SwitchAssist | None = None,
) -> Assistance:
    """Nothing but the curriculum, unless another part is given."""
    clips = len(curriculum.assist_strength)
    return Assistance(
        curriculum,
        getup or GetUpAssist(torch.zeros(clips)),
        switches or make_switches(clips, num_envs),
    )


def make_tracker(
    library: MotionLibrary,
    starts: StartStates,
    rising: torch.Tensor,
    num_envs: int,
    blend_steps: int = 0,
) -> ReferenceTracker:
    """References whose error is in units of the std over the start states."""
    scale = measure_std(starts.frames.flatten(1))
    return ReferenceTracker(library, starts, rising, num_envs, scale=scale, blend_steps=blend_steps)
