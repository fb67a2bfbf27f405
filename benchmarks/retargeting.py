"""Retargeting against an inverse-kinematics loop by `mink` on the same clip, in one run.

    python -m pip install --no-deps --target /tmp/mink mink==1.3.0 qpsolvers==4.13.0 daqp==0.11.0
    PYTHONPATH=/tmp/mink:$PYTHONPATH python -m benchmarks.retargeting [file=take.bvh] [repeats=9]

Without `file` it is a bundled walk, written as a BVH file of another rig. The loop has a target for
the pose of every body and takes up to ITERATIONS steps a frame, each frame from the one before,
until a step gains less than GAIN: what GMR does for each frame. Its targets are the poses of our
retargeting, which the body can reach: easier than those of the file. Times are CPU seconds; ours
are the median of `repeats`, without reading, and with planting listed separately."""

# MuJoCo's bindings ship no type stubs
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.clip_files.human_rigs import bvh_of
from pretrain.characters.character import load_character
from pretrain.characters.mujoco_bindings import mujoco
from pretrain.characters.skeleton import Skeleton
from pretrain.cli import program
from pretrain.motion.clip import MotionClip
from pretrain.motion.dataset import EVERYDAY
from pretrain.motion.files import load_file
from pretrain.motion.importers import RawFormat, recognize
from pretrain.motion.importers.amc import read_bytes
from pretrain.motion.raw import RawMotion
from pretrain.motion.retargeting.retarget import retarget
from pretrain.motion.stance import plant
from pretrain.options import parse_int, parse_options

WALK = "cmu_49_01.npz"
ITERATIONS = 10
GAIN = 1e-3  # of the sum of all tasks' errors
DAMPING = 0.1
INSTALL = (
    "python -m pip install --no-deps --target FOLDER mink==1.3.0 qpsolvers==4.13.0 daqp==0.11.0"
)


@dataclass(frozen=True)
class Loop:
    """Time and accuracy of the inverse-kinematics loop."""

    seconds: float  # CPU time
    iterations: float  # a frame
    error: float  # m between a body and its target, mean


def read_raw(path: Path | None, skeleton: Skeleton) -> RawMotion:
    """The motion of a file with its own skeleton. Raises ValueError for a file with ours."""
    if path is None:
        data = bvh_of(load_file(EVERYDAY / WALK, skeleton.name))
        name = "walk.bvh"
    else:
        data = read_bytes(path)
        name = path.name
    format_ = recognize(data, name)
    if not isinstance(format_, RawFormat):
        raise ValueError(f"{name}: its skeleton is ours, so that nothing is retargeted")
    return format_.read(data, name)


def seconds_of(work: Callable[[], object], repeats: int) -> float:
    """CPU seconds of `work`, the median."""
    found = []
    for _ in range(repeats):
        started = time.process_time()
        work()
        found.append(time.process_time() - started)
    return statistics.median(found)


def solve_by_mink(mink: Any, clip: MotionClip) -> Loop:
    """The poses of `clip` by differential inverse kinematics, frame after frame."""
    model = mujoco.MjModel.from_xml_string(load_character(clip.skeleton.name).mjcf)
    configuration = mink.Configuration(model)
    start = np.concatenate([clip.root_pos[0], clip.root_rot[0], clip.joint_pos[0]])
    configuration.update(start)
    tasks = [
        mink.FrameTask(body, "body", position_cost=1.0, orientation_cost=0.5, lm_damping=1.0)
        for body in clip.skeleton.bodies
    ]
    limits = [mink.ConfigurationLimit(model)]
    positions, rotations = clip.world_poses
    iterations = 0
    errors = []
    started = time.process_time()
    for place, turn in zip(positions, rotations, strict=True):
        for task, x, q in zip(tasks, place, turn, strict=True):
            task.set_target(mink.SE3(np.concatenate([q, x])))
        iterations += _solve_frame(mink, configuration, tasks, limits)
        errors.append([np.linalg.norm(task.compute_error(configuration)[:3]) for task in tasks])
    seconds = time.process_time() - started
    return Loop(seconds, iterations / len(clip), float(np.mean(errors)))


def _solve_frame(mink: Any, configuration: Any, tasks: list[Any], limits: list[Any]) -> int:
    """Solve a frame; returns the number of steps."""
    step = configuration.model.opt.timestep
    error = _error(configuration, tasks)
    for iteration in range(1, ITERATIONS + 1):
        velocity = mink.solve_ik(configuration, tasks, step, "daqp", DAMPING, limits=limits)
        configuration.integrate_inplace(velocity, step)
        before = error
        error = _error(configuration, tasks)
        if before - error < GAIN:
            return iteration
    return ITERATIONS


def _error(configuration: Any, tasks: list[Any]) -> float:
    return float(np.linalg.norm([task.compute_error(configuration) for task in tasks]))


def compare(mink: Any, raw: RawMotion, skeleton: Skeleton, repeats: int) -> dict[str, float | str]:
    """Frames a second of both, and the ratio of ours to the loop's."""
    clip = retarget(raw, skeleton)
    ours = len(clip) / seconds_of(lambda: retarget(raw, skeleton), repeats)
    planted = len(clip) / seconds_of(lambda: plant(retarget(raw, skeleton)), repeats)
    loop = solve_by_mink(mink, clip)
    theirs = len(clip) / loop.seconds
    return {
        "clip": raw.name,
        "frames": len(clip),
        "retarget_frames_per_s": round(ours),
        "retarget_and_plant_frames_per_s": round(planted),
        "mink_frames_per_s": round(theirs, 1),
        "mink_iterations": round(loop.iterations, 1),
        "mink_error_m": round(loop.error, 4),
        "ratio": round(ours / theirs, 1),
        "ratio_with_planting": round(planted / theirs, 1),
    }


def main(arguments: list[str]) -> int:
    """The exit status."""
    try:
        options = parse_options(arguments, {"file": "", "repeats": "9"})
        repeats = parse_int(options, "repeats", 1)
        skeleton = load_character("humanoid").skeleton
        raw = read_raw(Path(options["file"]) if options["file"] else None, skeleton)
        mink = importlib.import_module("mink")
    except ImportError as error:
        print(f"{error}: {INSTALL}, and FOLDER on PYTHONPATH", file=sys.stderr)
        return 2
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print(json.dumps(compare(mink, raw, skeleton, repeats)))
    return 0


if __name__ == "__main__":
    sys.exit(program(main, lambda: str(__doc__)))
