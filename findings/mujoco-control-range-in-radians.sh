#!/usr/bin/env bash
# mujoco 4.0.0: in a model whose angles are degrees, the range of a joint is converted and that of its actuator is not.
#
# MJCF's angles are degrees unless compiler/@angle says radian, and joint/@range is converted. ctrlrange of a position
# actuator on the same joint, which limits its target angle, is not: the same two numbers in both give the target 57
# times the joint's range. Neither is key/@qpos; inheritrange="1" takes the joint's range as it was converted.
#
# Seen (Python 3.11, Linux), of a hinge with range="-45 45", in radians:
#   joint/@range                     -0.785   0.785
#   position/@ctrlrange="-45 45"    -45.000  45.000
#   position/@inheritrange="1"       -0.785   0.785
#   key/@qpos="45"                   45.000
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'mujoco==4.0.0' 'numpy==2.4.6'

cat > degrees.py <<'PY'
import mujoco

model = mujoco.MjModel.from_xml_string("""<mujoco>
  <worldbody>
    <body>
      <joint name="knee" axis="0 0 1" range="-45 45"/>
      <inertial pos="0 0 0" mass="5" diaginertia="0.01 0.01 0.01"/>
    </body>
  </worldbody>
  <actuator>
    <position joint="knee" kp="10" ctrlrange="-45 45"/>
    <position joint="knee" kp="10" inheritrange="1"/>
  </actuator>
  <keyframe>
    <key qpos="45"/>
  </keyframe>
</mujoco>""")


def show(name, values):
    print(name, *(f"{value:.3f}" for value in values))


show("joint", model.jnt_range[0])
show("ctrlrange", model.actuator_ctrlrange[0])
show("inheritrange", model.actuator_ctrlrange[1])
show("key", model.key_qpos[0])
PY
env/bin/python degrees.py | tee seen
diff seen - <<'EXPECTED'
joint -0.785 0.785
ctrlrange -45.000 45.000
inheritrange -0.785 0.785
key 45.000
EXPECTED
