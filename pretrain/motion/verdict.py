"""A verdict on a clip from its measures, with advice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pretrain.motion.balance import GRAVITY
from pretrain.motion.clip import MotionClip
from pretrain.motion.feasibility import find_implausible, find_infeasible, find_turned
from pretrain.motion.licences import is_non_commercial
from pretrain.motion.measures import Measures, measure

GOOD = "good"
USABLE = "usable"
BAD = "bad"
PAST_LIMITS = 0.02  # share of frames
PENETRATION = 0.02  # m
FLOATING = 0.02  # m
SKATE = 0.03  # m a contact
BALANCE = 0.04  # m from the center of mass to the edge of the soles at rest
SHORTEST = 0.5  # s
LEVEL = "edit `plant: {level: true}`, or `settle` for a body that lies"
MAX_SPEED_FACTOR = 2.0
FALL = 1 / 3  # of g, by which a flight may fall slower or faster


@dataclass(frozen=True)
class Verdict:
    """One file or clip: quality, reasons, and measures where it could be read."""

    name: str
    verdict: str  # good, usable or bad
    advice: tuple[str, ...]
    measures: Measures | None = None
    licence: str = ""  # empty where a file states none and no recipe was read


def judge(clip: MotionClip) -> Verdict:
    """`bad`: cannot be learned; `usable`: should be inspected or edited."""
    measures = measure(clip)
    wrong = (*find_infeasible(clip), *find_implausible(clip))
    if wrong:
        return Verdict(
            clip.name, BAD, (*wrong, *advise(measures), *clip.warnings), measures, clip.licence
        )
    notes = (*advise(measures), *find_turned(clip))
    licence = (
        (f"licence {clip.licence}: not for products",) if is_non_commercial(clip.licence) else ()
    )
    advice = (*notes, *clip.warnings, *licence)
    return Verdict(clip.name, USABLE if notes else GOOD, advice, measures, clip.licence)


def advise(m: Measures) -> tuple[str, ...]:
    """One line per problem, with the edit that fixes it."""
    advice = [
        (
            m.past_limits > PAST_LIMITS,
            f"{m.past_limits:.0%} of its frames past a hinge's range, by up to "
            f"{m.past_limits_most:.2f} rad: "
            "edit `limit`, or look whether a limb is mapped to the wrong joint",
        ),
        (m.penetration > PENETRATION, f"{100 * m.penetration:.0f} cm in the ground: {LEVEL}"),
        (
            m.floating > FLOATING,
            f"standing soles {100 * m.floating:.0f} cm off the ground: {LEVEL}",
        ),
        (m.skate_most > SKATE, f"a standing foot slides {100 * m.skate_most:.0f} cm: edit `plant`"),
        (
            m.balance < BALANCE,
            f"at rest its weight is {100 * m.balance:.0f} cm inside the edge of the soles: "
            "edit `balance`",
        ),
        (
            m.seconds < SHORTEST,
            f"lasts {m.seconds:.2f} s: edit `repeat`, or `stand` at its end",
        ),
        (m.suggested_speed != 1, _rate(m)),
        (not plausible_fall(m.fall) and m.floating <= FLOATING, _fall(m.fall)),
    ]
    return tuple(line for applies, line in advice if applies)


def _rate(m: Measures) -> str:
    motion = "slow" if m.suggested_speed > 1 else "quick"
    remedy = f"at `speed` {m.suggested_speed:.1f} it would step like a person; is its rate right?"
    return f"walks by {m.cadence:.1f} steps/s of {m.step:.2f} m, as in {motion} motion: {remedy}"


def plausible_fall(fall: float) -> bool:
    """Whether a flight's acceleration (m/s^2, NaN without a flight) is near that of a fall."""
    return not np.isfinite(fall) or abs(fall + GRAVITY) <= FALL * GRAVITY


def _fall(fall: float) -> str:
    if not fall < 0:
        return f"accelerates by {fall:.1f} m/s^2 in flight, where things fall: is up another axis?"
    factor = np.sqrt(GRAVITY / -fall)
    if factor > MAX_SPEED_FACTOR:
        return (
            f"falls at {-fall:.1f} m/s^2 in flight, which no change of speed explains: "
            "something holds it up"
        )
    return (
        f"falls at {-fall:.1f} m/s^2 in flight: at `speed` {factor:.2f} it would fall as things do"
    )
