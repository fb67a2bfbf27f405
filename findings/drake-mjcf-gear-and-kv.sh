#!/usr/bin/env bash
# drake 1.51.1: of an MJCF file's actuators it applies neither the gear to the torque nor the kv, without a warning.
#
# Drake's parser warns of what it does not support (an actuator <general>, a joint's stiffness, a position's dampratio),
# so one would guess that what it reads without a warning acts as in MuJoCo. There the torque is gear times the
# actuator's force, which forcerange bounds before the gear. Drake takes gear for the ratio of a gearbox, which only
# matters for the inertia of a rotor: the torque is the control itself, 1/100 where gear="100", as in many humanoids. The
# limit is forcerange without the gear. A position actuator becomes a PD controller with kp, but its kv is 0 there.
#
# Seen (Python 3.11, Linux), a hinge at 0.1 rad and 0.2 rad/s, control 0.5; torque in N m:
#                                                        mujoco 4.0.0   drake 1.51.1
#   <motor>                                                   0.5            0.5
#   <motor gear="100">                                       50.0            0.5
#   <motor gear="100" forcerange="-0.2 0.2">                 20.0            0.2
#   <position kp="50">                                       20.0           20.0
#   <position kp="50" gear="2">                              30.0           20.0
#   <position kp="50" kv="20">                               16.0           20.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'drake==1.51.1' 'mujoco==4.0.0' 'numpy==2.4.6'

cat > torque.py <<'PY'
import mujoco
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import MultibodyPlant

MJCF = """<mujoco model="leg">
  <worldbody>
    <body name="leg">
      <joint name="hip" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.05"/>
    </body>
  </worldbody>
  <actuator>{actuator}</actuator>
</mujoco>"""
ANGLE = 0.1
SPEED = 0.2
CONTROL = 0.5


def mujoco_torque(mjcf):
    model = mujoco.MjModel.from_xml_string(mjcf)
    data = mujoco.MjData(model)
    data.qpos[0] = ANGLE
    data.qvel[0] = SPEED
    data.ctrl[0] = CONTROL
    mujoco.mj_forward(model, data)
    return data.qfrc_actuator[0]


def drake_torque(mjcf):
    plant = MultibodyPlant(1e-6)
    plant.SetUseSampledOutputPorts(False)  # the torque of this state, without a step before
    (leg,) = Parser(plant).AddModelsFromString(mjcf, "xml")
    plant.Finalize()
    context = plant.CreateDefaultContext()
    plant.SetPositions(context, [ANGLE])
    plant.SetVelocities(context, [SPEED])
    (index,) = plant.GetJointActuatorIndices()
    if plant.get_joint_actuator(index).has_controller():
        plant.get_desired_state_input_port(leg).FixValue(context, [CONTROL, 0.0])
    else:
        plant.get_actuation_input_port().FixValue(context, [CONTROL])
    return plant.get_net_actuation_output_port().Eval(context)[0]


for actuator in (
    '<motor joint="hip"/>',
    '<motor joint="hip" gear="100"/>',
    '<motor joint="hip" gear="100" forcerange="-0.2 0.2"/>',
    '<position joint="hip" kp="50"/>',
    '<position joint="hip" kp="50" gear="2"/>',
    '<position joint="hip" kp="50" kv="20"/>',
):
    mjcf = MJCF.format(actuator=actuator)
    print(f"{actuator}: mujoco {mujoco_torque(mjcf):.1f}, drake {drake_torque(mjcf):.1f}")
PY
env/bin/python torque.py 2>&1 | tee seen
diff seen - <<'EXPECTED'
<motor joint="hip"/>: mujoco 0.5, drake 0.5
<motor joint="hip" gear="100"/>: mujoco 50.0, drake 0.5
<motor joint="hip" gear="100" forcerange="-0.2 0.2"/>: mujoco 20.0, drake 0.2
<position joint="hip" kp="50"/>: mujoco 20.0, drake 20.0
<position joint="hip" kp="50" gear="2"/>: mujoco 30.0, drake 20.0
<position joint="hip" kp="50" kv="20"/>: mujoco 16.0, drake 20.0
EXPECTED
