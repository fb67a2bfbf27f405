#!/usr/bin/env bash
# upc-pymotion 0.3.4: a walk that a BVH file has below its root stays on the spot; with bvhio 1.5.4 it goes.
#
# Any joint of a BVH file may have position channels, which hold where it is in its parent's frame. In files of which the
# root rests (as in Bandai Namco's set) the hips' channels carry the whole motion. pymotion reads them, but its forward
# kinematics, called as its documentation does (rotations, positions of the root, offsets), has no place for them: each
# joint stays at its OFFSET, and nothing says so.
#
# Seen (Python 3.11, Linux), of hips that move from z = 0 to z = 100 below a root that rests, the head's z at the end:
#   bvhio          100
#   upc-pymotion   0     (the local positions that it has read: 100)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'upc-pymotion==0.3.4' 'bvhio==1.5.4' 'numpy==2.4.6' 'pyglm==2.8.2'

cat > walk.bvh <<'BVH'
HIERARCHY
ROOT Root
{
  OFFSET 0 0 0
  CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
  JOINT Hips
  {
    OFFSET 0 90 0
    CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
    JOINT Head
    {
      OFFSET 0 70 0
      CHANNELS 3 Zrotation Xrotation Yrotation
      End Site
      {
        OFFSET 0 10 0
      }
    }
  }
}
MOTION
Frames: 3
Frame Time: 0.5
0 0 0 0 0 0 0 90 0 0 0 0 0 0 0
0 0 0 0 0 0 0 90 50 0 0 0 0 0 0
0 0 0 0 0 0 0 90 100 0 0 0 0 0 0
BVH

cat > walk.py <<'PY'
import bvhio
from pymotion.io.bvh import BVH
from pymotion.ops.skeleton import fk

root = bvhio.readAsHierarchy("walk.bvh")
root.loadPose(2)
head = next(joint for joint, _, _ in root.layout() if joint.Name == "Head")
print(f"bvhio: {head.PositionWorld.z:.0f}")

file = BVH()
file.load("walk.bvh")
rotations, positions, parents, offsets, _, _ = file.get_data()
world, _ = fk(rotations, positions[:, 0, :], offsets, parents)
print(f"upc-pymotion: {world[2, 2, 2]:.0f}, having read {positions[2, 1, 2]:.0f}")
PY
env/bin/python walk.py | tee seen
diff seen - <<'EXPECTED'
bvhio: 100
upc-pymotion: 0, having read 100
EXPECTED
