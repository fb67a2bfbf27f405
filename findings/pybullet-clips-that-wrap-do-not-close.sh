#!/usr/bin/env bash
# pybullet 3.2.7: its motion clips with "Loop": "wrap" do not close. A joint jumps by 0.3 to 1 rad where they repeat.
#
# The clips of DeepMimic that come with pybullet say how they end: "Loop" is "wrap" or "none". Their last frame lasts
# 0 s, and pybullet's player counts one interval less than frames, so one would guess that the last frame of a clip
# that wraps is its first. The height of the root is, within 1 mm. But the joints are not: in the walk, the right arm
# is 0.5 rad off, in the spin kick an arm by 1 rad and a knee by 0.8. A reference that repeats such a clip jumps at once,
# differences of frames across the seam give velocities of 15 rad/s in a walk, and a policy that walks on in stride is
# off its reference in every cycle. The spin closes.
#
# Seen (gym 0.23.1, which its player imports; Python 3.11, Linux), as pybullet plays them, of the joint that turns
# most: the change at the end of the clip within 2 us, and the median change in 1/30 s elsewhere, rad:
#   walk 0.50, 0.16   run 0.39, 0.33   crawl 0.61, 0.11   cartwheel 0.47, 0.15   jump 0.36, 0.16   spinkick 1.01, 0.38
#   spin 0.12, 0.19
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'pybullet==3.2.7' 'gym==0.23.1' 'numpy==2.4.6'

cat > seam.py <<'PY'
import json
import os
import sys

import numpy as np
import pybullet
import pybullet_data
from pybullet_envs.deep_mimic.env.humanoid_stable_pd import HumanoidStablePD
from pybullet_envs.deep_mimic.env.motion_capture_data import MotionCaptureData
from pybullet_utils.bullet_client import BulletClient

# the joints of a pose, from its 8th number on: quaternions, and the angles of knees and elbows
SIZES = 4, 4, 4, 1, 4, 4, 1, 4, 1, 4, 4, 1
INSTANT = 1e-6  # s
CONTROL_STEP = 1 / 30  # s


def read_pose(character, seconds):
    """The joints of the clip's pose at a time, as pybullet plays it."""
    character.setSimTime(seconds)
    pose = np.array(character.computePose(character._frameFraction))
    return np.split(pose[7:], np.cumsum(SIZES)[:-1])


def largest_change(before, after):
    """rad, of the joint that turns most."""
    return max(
        2 * np.arccos(min(1, abs(a @ b))) if len(a) == 4 else abs(b - a)[0]
        for a, b in zip(before, after)
    )


client = BulletClient(pybullet.DIRECT)
client.setAdditionalSearchPath(pybullet_data.getDataPath())
folder = os.path.join(pybullet_data.getDataPath(), "data", "motions")
for name in sys.argv[1:]:
    path = os.path.join(folder, f"humanoid3d_{name}.txt")
    motion = MotionCaptureData()
    motion.Load(path)
    character = HumanoidStablePD(client, motion, 1 / 240, False)
    end = motion.getCycleTime()
    seam = largest_change(read_pose(character, end - INSTANT), read_pose(character, end + INSTANT))
    times = np.arange(0, end - CONTROL_STEP, CONTROL_STEP)
    steps = [
        largest_change(read_pose(character, t), read_pose(character, t + CONTROL_STEP))
        for t in times
    ]
    with open(path) as file:
        loop = json.load(file)["Loop"]
    print(f"{name}: {loop}, {seam:.2f} at once, {np.median(steps):.2f} in a step")
PY
clips=(walk run crawl cartwheel jump spinkick spin)
# its URDF reader writes lines about joints without an axis
env/bin/python seam.py "${clips[@]}" > said 2>&1 || { cat said; exit 1; }
grep 'at once' said | tee seen
diff seen - <<'EXPECTED'
walk: wrap, 0.50 at once, 0.16 in a step
run: wrap, 0.39 at once, 0.33 in a step
crawl: wrap, 0.61 at once, 0.11 in a step
cartwheel: wrap, 0.47 at once, 0.15 in a step
jump: wrap, 0.36 at once, 0.16 in a step
spinkick: wrap, 1.01 at once, 0.38 in a step
spin: wrap, 0.12 at once, 0.19 in a step
EXPECTED
