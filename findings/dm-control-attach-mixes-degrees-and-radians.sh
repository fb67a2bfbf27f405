#!/usr/bin/env bash
# dm-control 1.0.50: attaching an MJCF model in radians to one in degrees makes radians of the other's degrees.
#
# Degrees are MJCF's default, so most files that mean them do not say so. attach merges the two <compiler> elements,
# and one would guess that it converts, as mujoco's MjSpec.attach does, or refuses, as it does where both files name
# their unit. Where the one in degrees leaves it to the default, angle="radian" of the other is taken for the whole,
# and the numbers stay as they are: a limit of 90 degrees becomes one of 90 radians, which is none, and what was turned
# by 90 degrees is turned by 117. It does not matter which of the two is the parent, and nothing warns. In the source:
# _attach of dm_control/mjcf/element.py, whose comment speaks of attributes that are copied over.
#
# Seen (mujoco 3.17.0, Python 3.11, Linux), of an arm in degrees, without a <compiler>, and a finger in radians that is
# attached to it, the ranges of their joints and the turns of their sites, in degrees:
#                                          arm: joint, site     finger: joint, site
#   alone                                  -90 90, 90           0 45, 45
#   by mujoco                              -90 90, 90           0 45, 45
#   by dm_control                          -5157 5157, 117      0 45, 45
#   by dm_control, the arm says degree     ValueError
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'dm-control==1.0.50' 'mujoco==3.17.0' 'numpy==2.4.6'
export MUJOCO_GL=disable

cat > attach.py <<'PY'
import math

import mujoco
import numpy as np
from dm_control import mjcf

ARM = """<mujoco model="arm">
  <worldbody>
    <body name="arm">
      <joint name="elbow" axis="0 1 0" limited="true" range="-90 90"/>
      <geom size="0.1"/>
      <site name="hand" euler="0 90 0"/>
    </body>
  </worldbody>
</mujoco>"""
FINGER = f"""<mujoco model="finger">
  <compiler angle="radian"/>
  <worldbody>
    <body name="finger">
      <joint name="knuckle" axis="0 1 0" limited="true" range="0 {math.pi / 4}"/>
      <geom size="0.1"/>
      <site name="hand" euler="0 {math.pi / 4} 0"/>
    </body>
  </worldbody>
</mujoco>"""


def show(name, model):
    """Print the ranges of the joints and the angles of the sites, in degrees."""
    ranges = [" ".join(f"{number:.0f}" for number in pair) for pair in np.rad2deg(model.jnt_range)]
    angles = [f"{np.rad2deg(2 * math.acos(abs(quat[0]))):.0f}" for quat in model.site_quat]
    print(f"{name}: ranges {', '.join(ranges)}; sites {', '.join(angles)}")


def by_mujoco(parent, child):
    spec = mujoco.MjSpec.from_string(parent)
    spec.attach(mujoco.MjSpec.from_string(child), prefix="child/", site=spec.site("hand"))
    return spec.compile()


def by_dm_control(parent, child):
    root = mjcf.from_xml_string(parent)
    root.find("site", "hand").attach(mjcf.from_xml_string(child))
    return mjcf.Physics.from_mjcf_model(root).model


show("arm", mujoco.MjModel.from_xml_string(ARM))
show("finger", mujoco.MjModel.from_xml_string(FINGER))
for attach in by_mujoco, by_dm_control:
    show(f"{attach.__name__[3:]}, finger to arm", attach(ARM, FINGER))
    show(f"{attach.__name__[3:]}, arm to finger", attach(FINGER, ARM))
try:
    by_dm_control(ARM.replace('<worldbody>', '<compiler angle="degree"/><worldbody>'), FINGER)
except ValueError:
    print("dm_control, finger to arm that says degree: ValueError")
PY
env/bin/python attach.py 2> errors | tee seen || { cat errors; exit 1; }
diff seen - <<'EXPECTED'
arm: ranges -90 90; sites 90
finger: ranges 0 45; sites 45
mujoco, finger to arm: ranges -90 90, 0 45; sites 90, 45
mujoco, arm to finger: ranges 0 45, -90 90; sites 45, 90
dm_control, finger to arm: ranges -5157 5157, 0 45; sites 117, 45
dm_control, arm to finger: ranges 0 45, -5157 5157; sites 45, 117
dm_control, finger to arm that says degree: ValueError
EXPECTED
