#!/usr/bin/env bash
# kinpy 0.6.1 and pytorch-kinematics 0.10.0: a joint for which a URDF gives no axis turns about z instead of x.
#
# A URDF may leave out the <axis> of a joint, which then is 1 0 0. Both accept such a file without a warning and turn or
# move the joint along 0 0 1, which is the default of MJCF. So forward and inverse kinematics of a robot with such a
# joint are those of another robot, while its simulation is right.
#
# Seen (torch 2.13.0, Python 3.11, Linux), of a tip at (0, 1, 0), turned by 90 degrees, and moved by 2:
#   mujoco, yourdfpy             (0, 0, 1)    (2, 1, 0)
#   kinpy, pytorch-kinematics    (-1, 0, 0)   (0, 1, 2)
#   all four, with <axis xyz="1 0 0"/>: as mujoco
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'kinpy==0.6.1' 'pytorch-kinematics==0.10.0' 'mujoco==4.0.0' \
    'yourdfpy==0.0.60' 'torch==2.13.0' 'numpy==2.4.6'

cat > axis.py <<'PY'
import io
import math

import kinpy
import mujoco
import numpy as np
import pytorch_kinematics
import torch
import yourdfpy

URDF = """<robot name="arm">
  <link name="base"/>
  <link name="upper">
    <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <link name="tip"/>
  <joint name="shoulder" type="TYPE">
    <parent link="base"/><child link="upper"/>AXIS<limit lower="-2" upper="2" effort="10" velocity="1"/>
  </joint>
  <joint name="wrist" type="fixed">
    <parent link="upper"/><child link="tip"/><origin xyz="0 1 0"/>
  </joint>
</robot>"""


def by_mujoco(urdf, value):
    model = mujoco.MjModel.from_xml_string(urdf)
    data = mujoco.MjData(model)
    data.qpos[0] = value
    mujoco.mj_forward(model, data)
    body = data.body("upper")
    return body.xpos + body.xmat.reshape(3, 3) @ [0, 1, 0]


def by_yourdfpy(urdf, value):
    robot = yourdfpy.URDF.load(io.BytesIO(urdf.encode()))
    robot.update_cfg([value])
    return robot.get_transform("tip")[:3, 3]


def by_kinpy(urdf, value):
    return kinpy.build_serial_chain_from_urdf(urdf.encode(), "tip").forward_kinematics([value]).pos


def by_pytorch_kinematics(urdf, value):
    chain = pytorch_kinematics.build_serial_chain_from_urdf(urdf, "tip")
    return chain.forward_kinematics(torch.tensor([value])).get_matrix()[0, :3, 3].numpy()


for axis in "", '<axis xyz="1 0 0"/>':
    print("axis left out:" if not axis else "axis 1 0 0:")
    for compute in by_mujoco, by_yourdfpy, by_kinpy, by_pytorch_kinematics:
        places = []
        for kind, value in ("revolute", math.pi / 2), ("prismatic", 2.0):
            place = compute(URDF.replace("TYPE", kind).replace("AXIS", axis), value)
            places.append("({})".format(", ".join(f"{number:.0f}" for number in np.round(place) + 0.0)))
        print(compute.__name__[3:], *places)
PY
env/bin/python axis.py 2> errors | tee seen || { cat errors; exit 1; }
diff seen - <<'EXPECTED'
axis left out:
mujoco (0, 0, 1) (2, 1, 0)
yourdfpy (0, 0, 1) (2, 1, 0)
kinpy (-1, 0, 0) (0, 1, 2)
pytorch_kinematics (-1, 0, 0) (0, 1, 2)
axis 1 0 0:
mujoco (0, 0, 1) (2, 1, 0)
yourdfpy (0, 0, 1) (2, 1, 0)
kinpy (0, 0, 1) (2, 1, 0)
pytorch_kinematics (0, 0, 1) (2, 1, 0)
EXPECTED
