#!/usr/bin/env bash
# pybullet 3.2.7: of an MJCF file it leaves out masses, densities, damping, euler, and where in its body a geom weighs.
#
# loadMJCF reads names, limits, quat and the size of geoms, weighs a geom of MJCF's default density as MuJoCo does, and
# prints a line for some things that it misses. So one would guess that a file read without such a line is the same
# character. But mass and density have no effect, the centre of mass of a body is its origin wherever its geoms are,
# the damping of a joint is 0, euler of a body is not applied, of an <inertial> the inertia is replaced, and a body
# without a joint, which MJCF fixes in the world, falls. So an arm with its weight at the end needs no torque to stay
# level, and a controller tuned on it is one for another arm. But for euler, the shapes that collide are in their
# places.
#
# Seen (mujoco 3.17.0, Python 3.11, Linux), of an arm on a hinge, its mass in kg, inertia about the hinge in kg m2,
# torque of gravity in N m, damping, and where its first box is:
#                                        mujoco                             pybullet
#   a box of 20 cm at the hinge          8, 0.05, 0, 0, (0, 0, 1)           8, 0.05, 0, 0, (0, 0, 1)
#   with mass="2" or density="250"       2, 0.01, 0, 0, (0, 0, 1)           8, 0.05, 0, 0, (0, 0, 1)
#   0.5 m from the hinge                 8, 2.05, 39.2, 0, (0.5, 0, 1)      8, 0.05, 0, 0, (0.5, 0, 1)
#   the same, body euler="0 -90 0"       8, 2.05, 0, 0, (0, 0, 1.5)         8, 0.05, 0, 0, (0.5, 0, 1)
#   the same, body turned by quat        8, 2.05, 0, 0, (0, 0, 1.5)         8, 0.05, 0, 0, (0, 0, 1.5)
#   joint damping="3"                    8, 0.05, 0, 3, (0, 0, 1)           8, 0.05, 0, 0, (0, 0, 1)
#   <inertial> of 3 kg, 0.5 m away,      3, 2.75, 14.7, 0, (0, 0, 1)        3, 0.77, 14.7, 0, (0, 0, 1)
#     with an inertia of 2 kg m2
#   a ball without a joint, after 1 s    at 1 m                             at -4 m
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'pybullet==3.2.7' 'mujoco==3.17.0' 'numpy==2.4.6'

cat > arm.py <<'PY'
import mujoco
import numpy as np
import pybullet

ARM = """<mujoco>
  <worldbody>
    <body name="arm" pos="0 0 1" {body}>
      {inertial}
      <joint name="shoulder" type="hinge" axis="0 1 0" limited="true" range="-90 90" {joint}/>
      <geom type="box" size="0.1 0.1 0.1" {geom}/>
    </body>
  </worldbody>
</mujoco>"""
BALL = """<mujoco>
  <worldbody>
    <body name="ball" pos="0 0 1"><geom type="sphere" size="0.1"/></body>
  </worldbody>
</mujoco>"""
INERTIAL = '<inertial pos="0.5 0 0" mass="3" diaginertia="1 2 2.5"/>'


def by_mujoco(xml):
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    inertia = np.zeros((1, 1))
    mujoco.mj_fullM(model, data, inertia)
    return model.body_mass[1], inertia[0, 0], abs(data.qfrc_bias[0]), model.dof_damping[0], data.geom_xpos[0]


def load(xml):
    """The first body that pybullet reads, in a new world with gravity."""
    pybullet.connect(pybullet.DIRECT)
    pybullet.setGravity(0, 0, -9.81)
    with open("model.xml", "w") as file:
        file.write(xml)
    return pybullet.loadMJCF("model.xml")[0]


def by_pybullet(xml):
    arm = load(xml)
    links = range(pybullet.getNumJoints(arm))
    mass = sum(pybullet.getDynamicsInfo(arm, link)[0] for link in links)
    inertia = pybullet.calculateMassMatrix(arm, [0.0])[0][0]
    torque = abs(pybullet.calculateInverseDynamics(arm, [0.0], [0.0], [0.0])[0])
    damping = pybullet.getJointInfo(arm, 0)[6]
    state, shape = pybullet.getLinkState(arm, links[-1]), pybullet.getCollisionShapeData(arm, links[-1])[0]
    place, _ = pybullet.multiplyTransforms(state[0], state[1], shape[5], shape[6])
    pybullet.disconnect()
    return mass, inertia, torque, damping, place


def show(name, **attributes):
    """Print what both make of one file."""
    xml = ARM.format(**{"body": "", "inertial": "", "joint": "", "geom": ""} | attributes)
    for read in by_mujoco, by_pybullet:
        mass, inertia, torque, damping, place = read(xml)
        place = ", ".join(f"{number:g}" for number in np.round(place, 2) + 0.0)
        print(f"{name}, {read.__name__[3:]}: {mass:.0f}, {inertia:.2f}, {torque:.1f}, {damping:.0f}, ({place})")


show("box")
show("mass", geom='mass="2"')
show("density", geom='density="250"')
show("pos", geom='pos="0.5 0 0"')
show("euler", geom='pos="0.5 0 0"', body='euler="0 -90 0"')
show("quat", geom='pos="0.5 0 0"', body='quat="0.7071068 0 -0.7071068 0"')
show("damping", joint='damping="3"')
show("inertial", inertial=INERTIAL)

model = mujoco.MjModel.from_xml_string(BALL)
data = mujoco.MjData(model)
mujoco.mj_step(model, data, round(1 / model.opt.timestep))
print(f"ball, mujoco: {data.body('ball').xpos[2]:.0f}")
ball = load(BALL)
for _ in range(240):
    pybullet.stepSimulation()
print(f"ball, pybullet: {pybullet.getBasePositionAndOrientation(ball)[0][2]:.0f}")
PY
env/bin/python arm.py > said 2>&1 || { cat said; exit 1; }
# neither of both says anything but the day of pybullet's build
grep -v '^pybullet build time' said | tee seen
diff seen - <<'EXPECTED'
box, mujoco: 8, 0.05, 0.0, 0, (0, 0, 1)
box, pybullet: 8, 0.05, 0.0, 0, (0, 0, 1)
mass, mujoco: 2, 0.01, 0.0, 0, (0, 0, 1)
mass, pybullet: 8, 0.05, 0.0, 0, (0, 0, 1)
density, mujoco: 2, 0.01, 0.0, 0, (0, 0, 1)
density, pybullet: 8, 0.05, 0.0, 0, (0, 0, 1)
pos, mujoco: 8, 2.05, 39.2, 0, (0.5, 0, 1)
pos, pybullet: 8, 0.05, 0.0, 0, (0.5, 0, 1)
euler, mujoco: 8, 2.05, 0.0, 0, (0, 0, 1.5)
euler, pybullet: 8, 0.05, 0.0, 0, (0.5, 0, 1)
quat, mujoco: 8, 2.05, 0.0, 0, (0, 0, 1.5)
quat, pybullet: 8, 0.05, 0.0, 0, (0, 0, 1.5)
damping, mujoco: 8, 0.05, 0.0, 3, (0, 0, 1)
damping, pybullet: 8, 0.05, 0.0, 0, (0, 0, 1)
inertial, mujoco: 3, 2.75, 14.7, 0, (0, 0, 1)
inertial, pybullet: 3, 0.77, 14.7, 0, (0, 0, 1)
ball, mujoco: 1
ball, pybullet: -4
EXPECTED
