#!/usr/bin/env bash
# pytorch-kinematics 0.10.0: of an MJCF file it misplaces limbs whose joint has a pos, and leaves out a joint's ref.
#
# build_chain_from_mjcf has MuJoCo itself read the file, and refuses bodies with two joints; so one would guess that the
# limbs of what it accepts are where MuJoCo has them. A joint's pos says about which point of its body the body turns.
# Here the body is shifted by it instead, also at angle 0, and turns about its own origin, so that even a slide, for
# which the point does not matter, moves its limb. ref says which angle the joint has in the pose of the file; here that
# pose is always angle 0. Joints and limits are read from the same model, and there is no warning. Inverse kinematics,
# rewards and Jacobians are then those of another body. In the source: pytorch_kinematics/mjcf.py.
#
# Seen (mujoco 3.11.0, the last one with which it works, Python 3.11, Linux), of a leg of 0.4 m that hangs from a joint,
# where the foot is (x and z in m) with the joint at 0, and at 0.5 rad or 0.5 m:
#                                  mujoco                          pytorch-kinematics
#   hinge                          0.00 0.60     -0.19 0.65        0.00 0.60     -0.19 0.65
#   hinge, pos="0 0 0.1"           0.00 0.60     -0.24 0.66        0.00 0.70     -0.19 0.75
#   hinge, ref="0.5"               0.19 0.65      0.00 0.60        0.00 0.60     -0.19 0.65
#   slide                          0.00 0.60      0.50 0.60        0.00 0.60      0.50 0.60
#   slide, pos="0 0 0.1"           0.00 0.60      0.50 0.60        0.00 0.70      0.50 0.70
#   slide, ref="0.5"              -0.50 0.60      0.00 0.60        0.00 0.60      0.50 0.60
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'pytorch-kinematics==0.10.0' 'torch==2.13.0' 'mujoco==3.11.0' \
    'numpy==2.4.6'

cat > leg.py <<'PY'
import mujoco
import pytorch_kinematics
import torch

MJCF = """<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body name="leg" pos="0 0 1">
      <joint name="hip" {}/>
      <geom size="0.1"/>
      <body name="foot" pos="0 0 -0.4">
        <geom size="0.1"/>
      </body>
    </body>
  </worldbody>
</mujoco>"""
HINGE = 'type="hinge" axis="0 1 0"'
SLIDE = 'type="slide" axis="1 0 0"'


def text(points):
    """The x and z of points as text."""
    return ", ".join(f"{x + 0.0:.2f} {z + 0.0:.2f}" for x, _, z in points)


def show(name, joint):
    """Print where the foot is."""
    mjcf = MJCF.format(joint)
    model = mujoco.MjModel.from_xml_string(mjcf)
    data = mujoco.MjData(model)
    chain = pytorch_kinematics.build_chain_from_mjcf(mjcf).to(dtype=torch.float64)
    points, chain_points = [], []
    for position in (0, 0.5):
        data.qpos[0] = position
        mujoco.mj_forward(model, data)
        points.append(data.body("foot").xpos.round(6))
        frames = chain.forward_kinematics({"hip": position})
        chain_points.append(frames["foot"].get_matrix()[0, :3, 3].numpy().round(6))
    print(f"{name}, mujoco: {text(points)}")
    print(f"{name}, pytorch-kinematics: {text(chain_points)}")


show("hinge", HINGE)
show("hinge, pos", f'{HINGE} pos="0 0 0.1"')
show("hinge, ref", f'{HINGE} ref="0.5"')
show("slide", SLIDE)
show("slide, pos", f'{SLIDE} pos="0 0 0.1"')
show("slide, ref", f'{SLIDE} ref="0.5"')
PY
env/bin/python leg.py | tee seen
diff seen - <<'EXPECTED'
hinge, mujoco: 0.00 0.60, -0.19 0.65
hinge, pytorch-kinematics: 0.00 0.60, -0.19 0.65
hinge, pos, mujoco: 0.00 0.60, -0.24 0.66
hinge, pos, pytorch-kinematics: 0.00 0.70, -0.19 0.75
hinge, ref, mujoco: 0.19 0.65, 0.00 0.60
hinge, ref, pytorch-kinematics: 0.00 0.60, -0.19 0.65
slide, mujoco: 0.00 0.60, 0.50 0.60
slide, pytorch-kinematics: 0.00 0.60, 0.50 0.60
slide, pos, mujoco: 0.00 0.60, 0.50 0.60
slide, pos, pytorch-kinematics: 0.00 0.70, 0.50 0.70
slide, ref, mujoco: -0.50 0.60, 0.00 0.60
slide, ref, pytorch-kinematics: 0.00 0.60, 0.50 0.60
EXPECTED
