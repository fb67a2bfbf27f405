"""Steering: a library's speeds and turn rates, whether it stands, and the time of a change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import avg_pool1d

from pretrain.characters.state import unflatten
from pretrain.evaluation.held_skills import HeldSkills, upright_worlds
from pretrain.evaluation.intervals import Interval, interval, share_interval
from pretrain.evaluation.setup import Setup
from pretrain.evaluation.switching import Switches
from pretrain.motion.clip import CONTROL_RATE, control_steps
from pretrain.sim.velocity_range import level_velocity

AXES = ("forward_speed", "lateral_speed", "turn_rate")  # m/s, m/s, rad/s
SETTLED = 2.0  # s after which a skill is moving steadily
STAND_SPEED = 0.1  # m/s, mean over STAND_SECONDS
STAND_SECONDS = 5.0
MIN_CHANGE = 0.3  # m/s or rad/s, of the steady motions, for a change that can be timed
SMOOTHING = 11  # control steps, about half of a walking stride
ARRIVED = 0.9  # of the change


@dataclass(frozen=True)
class SteadyMotion:
    """Mean velocity of K skills over the worlds that stay up."""

    velocity: Tensor  # (K, R, 3), NaN where a world is down
    valid: Tensor  # (K,) at least half of its worlds stay up


def steady_motion(held: HeldSkills) -> SteadyMotion:
    since = min(control_steps(SETTLED), held.recording.steps - 1)
    up = ~held.recording.down[since:].any(0).view(-1, held.repeats)
    velocity = held.recording.velocity[since:].mean(0).view(-1, held.repeats, 3)
    velocity = velocity.where(up[..., None], torch.nan)
    return SteadyMotion(velocity, up.float().mean(1) >= 0.5)


def ranges(motions: list[SteadyMotion]) -> dict[str, dict[str, Interval] | None]:
    """Minimum and maximum of each axis over all skills of `motions`, with the interval over that
    skill's worlds; None where no skill stays up."""
    rows = [row for motion in motions for row in motion.velocity[motion.valid]]
    limits: dict[str, dict[str, Interval] | None] = {}
    for axis, name in enumerate(AXES):
        velocities = [row[:, axis][~row[:, axis].isnan()] for row in rows]
        velocities.sort(key=lambda values: float(values.mean()))
        limits[name] = (
            {"least": interval(velocities[0]), "most": interval(velocities[-1])}
            if velocities
            else None
        )
    return limits


def standing_share(setup: Setup, held: HeldSkills) -> Tensor:
    """Share of each skill's worlds that are up and slower than 0.1 m/s over the last 5 s, (K,).
    Skills of clips that lie have the share 0."""
    last = control_steps(STAND_SECONDS)
    speed = held.recording.velocity[-last:, :, :2].norm(dim=-1).mean(0)
    up = upright_worlds(setup, held) & ~held.recording.down[-last:].any(0)
    stands = (speed < STAND_SPEED) & up
    return stands.view(-1, held.repeats).float().mean(1)


def response_times(setup: Setup, clip_skills: HeldSkills, switches: Switches) -> Tensor:
    """Seconds after each switch until the change of velocity is 90 % done, (P,).

    Infinite where it is not done within 4 s with at least half of the worlds up; NaN where the
    clips differ by less than 0.3 (m/s and rad/s), or the second one is not held. The velocity is
    the mean over a pair's worlds, averaged over half a stride; the change is from the first clip's
    to the steady one of the second z, with m/s and rad/s weighted alike."""
    steady = steady_motion(clip_skills)
    goal = steady.velocity.nanmean(1)[switches.target]
    start = _clip_velocity(setup)[switches.start]
    change = goal - start
    motion = switches.recording.velocity.unflatten(1, (-1, switches.repeats)).mean(2)  # (T, P, 3)
    smooth = avg_pool1d(motion.permute(1, 2, 0), SMOOTHING, 1).permute(2, 0, 1)
    done = ((smooth - start) * change).sum(-1) / change.square().sum(-1)
    down = switches.recording.down.unflatten(1, (-1, switches.repeats))
    up = down.float().mean(2) <= 0.5
    reached = (done >= ARRIVED) & up[SMOOTHING - 1 :]
    steps = reached.byte().argmax(0) + SMOOTHING  # the end of the first average that arrived
    seconds = (steps / CONTROL_RATE).where(reached.any(0), torch.inf)
    timed = steady.valid[switches.target] & (change.norm(dim=-1) >= MIN_CHANGE)
    return seconds.where(timed, torch.nan)


def _clip_velocity(setup: Setup) -> Tensor:
    """Mean velocity of each clip that is no mirror image, (C, 3)."""
    parts = setup.library.clip_frames
    means = [level_velocity(unflatten(parts[clip])).mean(0) for clip in setup.originals.tolist()]
    return torch.stack(means)


def steering(
    setup: Setup, clip_skills: HeldSkills, random_skills: HeldSkills, switches: Switches | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The numbers, and their n and 95 % intervals."""
    motions = [steady_motion(clip_skills), steady_motion(random_skills)]
    limits = ranges(motions)
    means = {
        name: [ends["least"]["mean"], ends["most"]["mean"]] if ends else None
        for name, ends in limits.items()
    }
    shares = torch.cat([standing_share(setup, clip_skills), standing_share(setup, random_skills)])
    times = torch.empty(0) if switches is None else response_times(setup, clip_skills, switches)
    timed = times[~times.isnan()]
    response = interval(timed[timed.isfinite()])
    arrived = share_interval(timed.isfinite().float())
    card = {
        **means,
        "stands": bool((shares >= 0.5).any()),
        "seconds_to_90_percent": response["mean"],
        "reach_90_percent": arrived["mean"],
    }
    detail = {
        **limits,
        "stands": {"skills": int((shares >= 0.5).sum()), "n": len(shares)},
        "seconds_to_90_percent": response,
        "reach_90_percent": arrived,
    }
    return card, detail
