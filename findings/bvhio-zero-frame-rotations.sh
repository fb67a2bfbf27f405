#!/usr/bin/env bash
# bvhio 1.5.4: the rotations of a frame of zeros are not those of the file.
#
# A joint's rotation is given against a rest pose that bvhio makes up, in which each bone's y axis points to its child.
# In a BVH file a frame of zeros turns nothing, and all axes are the world's. So `RotationWorld` of a thigh, whose child
# lies below it, is half a turn off, and that of the hips a quarter turn; positions are right. A retargeting that takes
# rotations from one reader and a rest pose from another meets 90 and 180 degrees.
#
# Seen (Python 3.11, Linux), of hips with one leg, all channels 0 but the height:
#   Hips        turned by 90 degrees    at (0, 90, 0)
#   LeftUpLeg   turned by 180 degrees   at (10, 90, 0)
#   LeftLeg     turned by 180 degrees   at (10, 50, 0)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'bvhio==1.5.4' 'numpy==2.4.6' 'pyglm==2.8.2'

cat > zero.bvh <<'BVH'
HIERARCHY
ROOT Hips
{
  OFFSET 0 90 0
  CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
  JOINT LeftUpLeg
  {
    OFFSET 10 0 0
    CHANNELS 3 Zrotation Xrotation Yrotation
    JOINT LeftLeg
    {
      OFFSET 0 -40 0
      CHANNELS 3 Zrotation Xrotation Yrotation
      End Site
      {
        OFFSET 0 -40 0
      }
    }
  }
}
MOTION
Frames: 2
Frame Time: 0.5
0 90 0 0 0 0 0 0 0 0 0 0
0 90 0 0 0 0 0 0 0 0 0 0
BVH

cat > rotations.py <<'PY'
import numpy as np
import bvhio

root = bvhio.readAsHierarchy("zero.bvh")
root.loadPose(0)
for joint, _, _ in root.layout():
    angle = 2 * np.degrees(np.arccos(min(1, abs(joint.RotationWorld.w))))
    place = ", ".join(f"{value + 0:.0f}" for value in joint.PositionWorld)
    print(f"{joint.Name} turned by {angle:.0f} degrees at ({place})")
PY
env/bin/python rotations.py | tee seen
diff seen - <<'EXPECTED'
Hips turned by 90 degrees at (0, 90, 0)
LeftUpLeg turned by 180 degrees at (10, 90, 0)
LeftLeg turned by 180 degrees at (10, 50, 0)
EXPECTED
