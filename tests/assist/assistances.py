"""Assistance for tests: nothing but the curriculum, unless another part is given."""

from __future__ import annotations

import torch

from pretrain.assist.assistance import Assistance
from pretrain.assist.curriculum import Curriculum
from pretrain.assist.getup import GetUpAssist
from pretrain.assist.switch_assist import SwitchAssist

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
    clips = len(curriculum.assist_strength)
    return Assistance(
        curriculum,
        getup or GetUpAssist(torch.zeros(clips)),
        switches or make_switches(clips, num_envs),
    )
