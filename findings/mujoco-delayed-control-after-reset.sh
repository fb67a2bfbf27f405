#!/usr/bin/env bash
# mujoco 4.0.0: after a reset to a keyframe, an actuator with a delay takes its control to be 0, not the keyframe's.
#
# mj_resetDataKeyframe writes the keyframe's ctrl, but fills the delay's history with zeros, as mj_resetData does where
# the caller writes ctrl itself. So for the length of the delay after each reset, a position actuator drives its joint
# towards 0, out of the pose in which the keyframe has placed it. One would guess that a body whose pose is its target
# rests. mj_initCtrlHistory, called after the reset, fills the history with what is meant.
#
# Seen (Python 3.11, Linux), of a joint at 1 rad with the target 1 rad and no gravity, kp 100, in steps of 0.01 s, the
# force in the first four steps and the smallest angle within 0.6 s:
#   no delay                           0 0 0 0            1.000
#   delay 0.03 s                       -100 -75 -51 69    0.662
#   delay 0.03 s, mj_initCtrlHistory   0 0 0 0            1.000
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'mujoco==4.0.0' 'numpy==2.4.6'

cat > reset.py <<'PY'
import mujoco
import numpy as np

MJCF = """<mujoco>
  <option timestep="0.01" gravity="0 0 0"/>
  <worldbody>
    <body>
      <joint name="hip" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.4" size="0.05" mass="4"/>
    </body>
  </worldbody>
  <actuator>
    <position joint="hip" kp="100" kv="5" {}/>
  </actuator>
  <keyframe>
    <key qpos="1" ctrl="1"/>
  </keyframe>
</mujoco>"""
DELAY = 'delay="0.03" nsample="4"'


def show(name, delay, fill=False):
    """Print the first forces after a reset to the keyframe, and how far the joint leaves it."""
    model = mujoco.MjModel.from_xml_string(MJCF.format(delay))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    if fill:
        mujoco.mj_initCtrlHistory(model, data, 0, None, np.full(4, data.ctrl[0]))
    forces, angles = [], []
    for _ in range(60):
        mujoco.mj_step(model, data)
        forces.append(f"{data.actuator_force[0]:.0f}")
        angles.append(data.qpos[0])
    print(f"{name}: {' '.join(forces[:4])}, {min(angles):.3f}")


show("no delay", "")
show("delay", DELAY)
show("delay, mj_initCtrlHistory", DELAY, fill=True)
PY
env/bin/python reset.py | tee seen
diff seen - <<'EXPECTED'
no delay: 0 0 0 0, 1.000
delay: -100 -75 -51 69, 0.662
delay, mj_initCtrlHistory: 0 0 0 0, 1.000
EXPECTED
