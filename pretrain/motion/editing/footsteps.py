"""A plan of footsteps: the pose of each foot over time, for a commanded motion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pretrain.motion.editing.time import smoothstep

SWING_SHARE = 0.8  # of a step's time in which its foot is in the air
LIFT = 0.07  # m that a foot is lifted
RAMP = 0.5  # s of a command's rise and of its fall
WAIT = 0.6  # s of standing before the first and after the last step
TIP = 0.5  # rad of pitch, toe down and then up, for a step of 1 m ahead
TURNED = 0.2  # m of a step per rad of a foot's turn, for the height of its lift


@dataclass(frozen=True)
class Gait:
    """The motion of a plan: velocities in its own frame, for a time."""

    ahead: float = 0.0  # m/s
    aside: float = 0.0  # m/s, to the left
    turn: float = 0.0  # rad/s, to the left
    seconds: float = 4.0  # at the full velocities
    step: float = 0.4  # s from one foot's landing to the other's
    width: float = 0.2  # m between the feet
    lift: float = LIFT


@dataclass(frozen=True)
class Footsteps:
    """Both feet over time, the right one first."""

    pos: np.ndarray  # (T, 2, 3) m of the ankles over their height in a stand
    yaw: np.ndarray  # (T, 2) rad
    pitch: np.ndarray  # (T, 2) rad, above 0 with the toe down
    support: np.ndarray  # (T, 2) 1 while a foot stands, else 0


def plan_footsteps(gait: Gait, fps: float) -> Footsteps:
    """From a stand into `gait` and to a stand again; each foot lands where the body will be at
    mid-stance."""
    times, path = _plan_body(gait, fps)
    now = [_place(gait, times, path, (0.0, side)) for side in (0, 1)]
    pos = np.zeros((len(times), 2, 3))
    yaw = np.zeros((len(times), 2))
    pitch = np.zeros((len(times), 2))
    swinging = np.zeros((len(times), 2))
    for side in (0, 1):
        pos[:, side, :2] = now[side][:2]
        yaw[:, side] = now[side][2]
    leader = 1 if (gait.aside > 0 or gait.turn > 0) else 0
    swing = SWING_SHARE * gait.step
    for i in range(round((gait.seconds + 2 * RAMP) / gait.step) + 3):
        side = (leader + i) % 2
        start = WAIT + i * gait.step
        target = _place(gait, times, path, (start + gait.step + swing / 2, side))
        s = np.clip((times - start) / swing, 0, 1)
        share = s**3 * (10 - 15 * s + 6 * s * s)
        later = times > start
        moved = target - now[side]
        pos[later, side, :2] = now[side][:2] + share[later, None] * moved[:2]
        yaw[later, side] = now[side][2] + share[later] * moved[2]
        size = float(np.linalg.norm(moved[:2])) + TURNED * abs(float(moved[2]))
        pos[:, side, 2] += gait.lift * min(1.0, size / 0.1) * np.sin(np.pi * s) ** 1.5
        stride = float(moved[0] * np.cos(target[2]) + moved[1] * np.sin(target[2]))
        pitch[:, side] += (
            TIP * max(stride, 0.3 * stride) * (np.sin(np.pi * s) ** 2 + np.sin(2 * np.pi * s)) / 1.5
        )
        swinging[:, side] = np.maximum(swinging[:, side], (s > 0) & (s < 1))
        now[side] = target
    return Footsteps(pos, yaw, pitch, 1 - swinging)


def _plan_body(gait: Gait, fps: float) -> tuple[np.ndarray, np.ndarray]:
    """Times (T,) s, and place and heading of the body (T, 3)."""
    duration = 2 * WAIT + gait.seconds + 2 * RAMP + 3 * gait.step
    times = np.arange(round(duration * fps) + 1) / fps
    since = np.clip((times - WAIT) / RAMP, 0, 1)
    until = np.clip((WAIT + 2 * RAMP + gait.seconds - times) / RAMP, 0, 1)
    share = smoothstep(since) * smoothstep(until)
    heading = np.cumsum(gait.turn * share) / fps
    ahead = np.stack([np.cos(heading), np.sin(heading)], -1)
    aside = np.stack([-np.sin(heading), np.cos(heading)], -1)
    velocity = (gait.ahead * ahead + gait.aside * aside) * share[:, None]
    place = np.cumsum(velocity, axis=0) / fps
    return times, np.concatenate([place, heading[:, None]], -1)


def _place(gait: Gait, times: np.ndarray, path: np.ndarray, when: tuple[float, int]) -> np.ndarray:
    """Pose of a foot under the body, x, y, yaw: `when` is a time and a side, 0 right and 1 left."""
    time, side = when
    at = np.array([np.interp(time, times, column) for column in path.T])
    off = (side - 0.5) * gait.width
    return at + np.array([-np.sin(at[2]) * off, np.cos(at[2]) * off, 0.0])
