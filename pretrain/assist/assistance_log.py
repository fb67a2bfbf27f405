"""Log scalars of the assistance, per clip."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from pretrain.assist.curriculum import Curriculum
from pretrain.assist.getup import GetUpAssist
from pretrain.assist.switch_assist import MIN_SWITCHES, SwitchAssist
from pretrain.rl.learner import Scalars


def log_assistance(names: Sequence[str], curriculum: Curriculum) -> Scalars:
    """`assist`, the mean strength; `assist/CLIP`, the strength of a clip's assistance, and
    `steps/CLIP`, control steps between the failures of episodes that begin in it;
    `foot_match/CLIP`, where the feet are compared with the reference's."""
    strengths = curriculum.assist_strength
    steps = curriculum.steps_between_failures
    scalars: Scalars = {"assist": float(strengths.mean())}
    for clip, name in enumerate(names):
        scalars[f"assist/{name}"] = float(strengths[clip])
        scalars[f"steps/{name}"] = float(steps[clip])
        if curriculum.compared[clip]:
            scalars[f"foot_match/{name}"] = float(curriculum.foot_match[clip])
    return scalars


def log_getting_up(names: Sequence[str], rising: Tensor, getup: GetUpAssist) -> Scalars:
    """Of the clips that rise, `rising` (C,) bool: `getup/CLIP`, the strength of the get-up
    assistance, and `recovery_rate/CLIP`."""
    scalars: Scalars = {}
    for clip in rising.nonzero()[:, 0].tolist():
        scalars[f"getup/{names[clip]}"] = float(getup.strength[clip])
        scalars[f"recovery_rate/{names[clip]}"] = float(getup.recovery_rate[clip])
    return scalars


def log_switches(names: Sequence[str], switches: SwitchAssist) -> Scalars:
    """`switch_assist/CLIP`, the mean strength of the assistance in switches to a clip, and
    `switch_success/CLIP`, the share of them that succeeds, means over the source clips with at
    least MIN_SWITCHES switches; empty without switch assistance."""
    if not switches.enabled:
        return {}
    scalars: Scalars = {}
    occurred = switches.switches >= MIN_SWITCHES
    for clip, name in enumerate(names):
        sources = occurred[:, clip]
        if sources.any():
            scalars[f"switch_assist/{name}"] = float(switches.strength[sources, clip].mean())
            scalars[f"switch_success/{name}"] = float(switches.success[sources, clip].mean())
    return scalars
