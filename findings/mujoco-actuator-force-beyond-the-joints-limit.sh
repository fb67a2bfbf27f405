#!/usr/bin/env bash
# mujoco 4.0.0: actuator_force goes beyond a torque limit that stands on the joint, as the effort of a URDF does.
#
# A limit can be the actuator's (forcerange) or the joint's (actuatorfrcrange, which a URDF's effort becomes). The motion
# is the same. But data.actuator_force and the sensor actuatorfrc hold what was asked of the motor before the joint's
# limit cut it, so a penalty on torque or energy that reads them is of a torque that never acted. qfrc_actuator and the
# sensor jointactuatorfrc hold the torque that acts.
#
# Seen (Python 3.11, Linux), of a position actuator of kp 300 that is 1 rad from its target, limit 10 N m, in N m:
#   limit                      actuator_force   qfrc_actuator   angle after 0.1 s
#   forcerange                 10               10              0.06
#   actuatorfrcrange           300              10              0.06
#   effort, read from a URDF   300              10              0.06
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'mujoco==4.0.0' 'numpy==2.4.6'

cat > limit.py <<'PY'
import mujoco

MJCF = """<mujoco>
  <worldbody>
    <body>
      <joint name="knee" axis="0 0 1" {joint}/>
      <inertial pos="0.4 0 0" mass="5" diaginertia="0.01 0.01 0.01"/>
    </body>
  </worldbody>
</mujoco>"""
URDF = """<robot name="leg">
  <link name="thigh"/>
  <link name="shin">
    <inertial>
      <origin xyz="0.4 0 0"/>
      <mass value="5"/>
      <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/>
    </inertial>
  </link>
  <joint name="knee" type="revolute">
    <parent link="thigh"/>
    <child link="shin"/>
    <axis xyz="0 0 1"/>
    <limit lower="-2" upper="2" effort="10" velocity="9"/>
  </joint>
</robot>"""


def show(name, xml, limits=()):
    """Print the forces of the first step, and how far the joint gets."""
    spec = mujoco.MjSpec.from_string(xml)
    motor = spec.add_actuator(name="motor", target="knee", trntype=mujoco.mjtTrn.mjTRN_JOINT)
    motor.set_to_position(kp=300)
    if limits:
        motor.forcerange = limits
    model = spec.compile()
    data = mujoco.MjData(model)
    data.ctrl[0] = 1
    mujoco.mj_step(model, data)
    forces = f"{data.actuator_force[0]:.0f}, {data.qfrc_actuator[0]:.0f}"
    for _ in range(49):
        mujoco.mj_step(model, data)
    print(f"{name}: {forces}, {data.qpos[0]:.2f}")


show("forcerange", MJCF.format(joint=""), (-10, 10))
show("actuatorfrcrange", MJCF.format(joint='actuatorfrcrange="-10 10"'))
show("effort", URDF)
PY
env/bin/python limit.py | tee seen
diff seen - <<'EXPECTED'
forcerange: 10, 10, 0.06
actuatorfrcrange: 300, 10, 0.06
effort: 300, 10, 0.06
EXPECTED
