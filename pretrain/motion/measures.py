"""Measures of a clip: its speeds, and how far it is from a feasible motion. For training: needs
masses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import ConvexHull

from pretrain.characters import rotations
from pretrain.characters.kinematics import lowest_points
from pretrain.motion.balance import center_of_mass
from pretrain.motion.clip import MotionClip
from pretrain.motion.feasibility import past_range
from pretrain.motion.gait import read_gait, suggested_speed
from pretrain.motion.soles import SIDEWAYS, Soles, contacts, runs, soles_of

SLACK = np.radians(1.0)  # past a hinge's range, tolerated
AIRBORNE = 0.005  # m of the lowest point above the ground
LOWEST_FLIGHT = 0.025  # m that it reaches in a flight; a lower one is a retargeting gap
TOUCHING = 0.02  # m of a sole above the ground, below which it may not slide
STILL = 0.3  # m/s of a sole, below which it should be on the ground
SHORTEST_FLIGHT = 3  # frames in which a fall can be measured
REST = 0.15  # m/s of the fastest body at rest
SHORTEST_REST = 1.0  # s in all
MOST_RESTS = 32  # frames at rest that are measured


@dataclass(frozen=True)
class Measures:
    """One clip in numbers; SI units, radians."""

    name: str
    seconds: float
    rate: float
    speed: float  # m/s over the ground, mean
    ahead: float  # m/s along the heading, mean
    aside: float  # m/s to the left, mean
    turn: float  # rad/s to the left, mean
    past_limits: float  # share of frames with a hinge past its range
    past_limits_most: float  # rad
    penetration: float  # m, the deepest
    floating: float  # m of a standing sole above the ground, 95th percentile
    skate: float  # m that a foot slides in one contact, mean
    skate_most: float  # m, the worst contact
    jump: float  # m/s, the fastest body
    seam: float  # rad, the joint that differs most between the last frame and the first
    fall: float  # m/s^2, the center of mass in flight; NaN without a flight
    balance: float  # m from the center of mass to the edge of the soles at rest; NaN without rest
    hand_low: float  # m, the lowest height of a hand
    hand_high: float  # m
    cadence: float  # steps/s, NaN without a steady gait
    step: float  # m, length of a step, NaN without a steady gait
    suggested_speed: float  # factor at which a walk steps like a person


def measure(clip: MotionClip) -> Measures:
    """`clip` in numbers."""
    state = clip.states
    facing = rotations.heading_direction(clip.root_rot)
    steps = (
        rotations.to_heading_frame(facing[:-1], np.diff(clip.root_pos, axis=0)).mean(0) * clip.fps
    )
    heading = np.unwrap(np.arctan2(facing[:, 1], facing[:, 0]))
    past = past_range(clip.skeleton, state.joint_pos)
    points = lowest_points(clip.skeleton, state)
    soles = soles_of(clip)
    standing = contacts(soles, slow=STILL, upright=SIDEWAYS)
    slides = _slides(clip)
    bodies = clip.body_positions()
    hands = bodies[:, [clip.skeleton.bodies.index(f"{side}_hand") for side in ("left", "right")], 2]
    gait = read_gait(clip)
    speeds = np.linalg.norm(np.diff(bodies, axis=0), axis=-1).max(-1) * clip.fps
    return Measures(
        name=clip.name,
        seconds=clip.duration,
        rate=clip.fps,
        speed=float(
            np.linalg.norm(np.diff(clip.root_pos[:, :2], axis=0), axis=-1).mean() * clip.fps
        ),
        ahead=float(steps[0]),
        aside=float(steps[1]),
        turn=float((heading[-1] - heading[0]) / clip.duration),
        past_limits=float((past > SLACK).any(-1).mean()),
        past_limits_most=float(max(0.0, past.max())),
        penetration=float(max(0.0, -points.min())),
        floating=_floating(soles, standing),
        skate=float(np.mean(slides)) if slides else 0.0,
        skate_most=float(np.max(slides)) if slides else 0.0,
        jump=float(speeds.max()),
        seam=_seam(clip),
        fall=_fall(clip, points.min(-1)),
        balance=_balance(clip, soles, (speeds < REST) & standing[1:].all(-1)),
        hand_low=float(hands.min()),
        hand_high=float(hands.max()),
        cadence=gait.cadence if gait else float("nan"),
        step=gait.step if gait else float("nan"),
        suggested_speed=suggested_speed(gait),
    )


def _floating(soles: Soles, standing: np.ndarray) -> float:
    """Height of the lower sole above the ground while it stands, 95th percentile, m; 0 where none
    ever stands. A sole in the ground is `penetration`.
    """
    lower = soles.lowest.argmin(-1)[:, None]
    heights = np.take_along_axis(soles.lowest, lower, -1)[np.take_along_axis(standing, lower, -1)]
    return float(np.quantile(heights.clip(min=0), 0.95)) if len(heights) else 0.0


def _balance(clip: MotionClip, soles: Soles, at_rest: np.ndarray) -> float:
    """How far the center of mass is inside the convex hull of the soles, median over the frames
    at the end of the steps `at_rest` (T - 1,), m; below 0 outside of it. NaN for a clip that is at
    rest for less than SHORTEST_REST."""
    rests = np.flatnonzero(at_rest) + 1
    if len(rests) < SHORTEST_REST * clip.fps:
        return float("nan")
    center = center_of_mass(clip)[:, :2]
    measured = rests[:: -(-len(rests) // MOST_RESTS)]
    return float(np.median([_inside(soles.corners[i, ..., :2], center[i]) for i in measured]))


def _inside(corners: np.ndarray, point: np.ndarray) -> float:
    """Distance of `point` (2,) from the edge of the convex hull of `corners` (..., 2), below 0
    outside."""
    sides = ConvexHull(corners.reshape(-1, 2)).equations
    return float(-(sides[:, :2] @ point + sides[:, 2]).max())


def _slides(clip: MotionClip) -> list[float]:
    """Path length of each sole over the ground in each contact, m."""
    soles = soles_of(clip)
    standing = contacts(soles, near=TOUCHING, upright=SIDEWAYS)
    way = np.linalg.norm(soles.slips(), axis=-1)
    return [
        float(way[a:b, foot].sum())
        for foot in range(len(soles.feet))
        for a, b in runs(standing[:, foot])
        if b > a
    ]


def _seam(clip: MotionClip) -> float:
    """How far the joint that differs most is turned between the last frame and the first, rad."""
    gaps = [
        rotations.log(rotations.multiply(q[-1:], rotations.conjugate(q[:1])))
        for q in clip.joint_rot.values()
    ]
    return float(max(np.linalg.norm(gap) for gap in gaps))


def _fall(clip: MotionClip, lowest: np.ndarray) -> float:
    """Vertical acceleration of the center of mass while nothing touches the ground, m/s^2, over all
    flights.

    The variance of a fitted acceleration falls by the fifth power of the frames that it is fitted
    to, so the mean is weighted by it: a flight of 3 frames has almost no weight."""
    height = center_of_mass(clip)[:, 2]
    accelerations = []
    weights = []
    for first, last in runs(lowest > AIRBORNE):
        frames = last - first + 1
        if frames >= SHORTEST_FLIGHT and lowest[first : last + 1].max() > LOWEST_FLIGHT:
            times = np.arange(frames) / clip.fps
            accelerations.append(2 * np.polyfit(times, height[first : last + 1], 2)[0])
            weights.append(float(frames) ** 5)
    return float(np.average(accelerations, weights=weights)) if weights else float("nan")
