#!/usr/bin/env bash
# pin 4.1.0 (Pinocchio): it leaves out what an MJCF file has in a <frame> of a body, and misreads two settings.
#
# buildModelFromMJCF skips <frame> and <replicate> inside a body, so an arm may be missing with its joint and its mass.
# Geoms that inertiagrouprange keeps out of the mass, as those for display, are counted. An eulerseq of capital letters
# (axes that do not turn along, as in the rpy of a URDF) is read as if they were small. Since shellinertia, which it does
# not know either, raises an error, one would guess that what raises none is read; there is not even a warning. Inverse
# dynamics then belong to another character than the one that MuJoCo simulates.
#
# Seen (Python 3.11, Linux), the joints, the mass and the x axis of the torso:
#                                           mujoco 4.0.0                        pin 4.1.0
#   an arm                                  2, 8.4 kg                           2, 8.4 kg
#   the arm in a <frame>                    2, 8.4 kg                           1, 4.2 kg
#   the arm in a <replicate>, twice         3, 12.6 kg                          1, 4.2 kg
#   inertiagrouprange, geom not in it       1, 4.2 kg                           1, 8.4 kg
#   euler="30 40 50", eulerseq="xyz"        1, 4.2 kg, (0.49, 0.87, 0.03)       the same
#   euler="30 40 50", eulerseq="XYZ"        1, 4.2 kg, (0.49, 0.59, -0.64)      1, 4.2 kg, (0.49, 0.87, 0.03)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'pin==4.1.0' 'mujoco==4.0.0' 'numpy==2.4.6'

cat > read.py <<'PY'
import mujoco
import pinocchio

MJCF = """<mujoco>
  <compiler {settings}/>
  <worldbody>
    <body name="torso" {orientation}>
      <joint name="waist" axis="0 1 0"/>
      <geom size="0.1"/>
      {parts}
    </body>
  </worldbody>
</mujoco>"""
ARM = '<body name="arm"><joint name="elbow" axis="0 1 0"/><geom size="0.1"/></body>'


def describe(joints, mass, torso_rotation):
    """The numbers of a model as text."""
    x_axis = ", ".join(f"{value:.2f}" for value in torso_rotation[:, 0])
    return f"{joints}, {mass:.1f} kg, ({x_axis})"


def show(name, settings="", orientation="", parts=""):
    """Print what mujoco and pinocchio make of one file."""
    with open("model.xml", "w") as file:
        file.write(MJCF.format(settings=settings, orientation=orientation, parts=parts))
    model = mujoco.MjModel.from_xml_path("model.xml")
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    torso_rotation = data.body("torso").xmat.reshape(3, 3)
    print(f"{name}, mujoco: {describe(model.njnt, model.body_mass.sum(), torso_rotation)}")

    model = pinocchio.buildModelFromMJCF("model.xml")
    mass = sum(inertia.mass for inertia in model.inertias)
    torso_rotation = model.jointPlacements[1].rotation
    print(f"{name}, pin: {describe(model.njoints - 1, mass, torso_rotation)}")


show("arm", parts=ARM)
show("frame", parts=f'<frame pos="0 0 0.3">{ARM}</frame>')
show("replicate", parts=f'<replicate count="2" offset="0 0.3 0">{ARM}</replicate>')
show("group", settings='inertiagrouprange="0 1"', parts='<geom size="0.1" group="2"/>')
show("xyz", settings='eulerseq="xyz"', orientation='euler="30 40 50"')
show("XYZ", settings='eulerseq="XYZ"', orientation='euler="30 40 50"')
PY
env/bin/python read.py | tee seen
diff seen - <<'EXPECTED'
arm, mujoco: 2, 8.4 kg, (1.00, 0.00, 0.00)
arm, pin: 2, 8.4 kg, (1.00, 0.00, 0.00)
frame, mujoco: 2, 8.4 kg, (1.00, 0.00, 0.00)
frame, pin: 1, 4.2 kg, (1.00, 0.00, 0.00)
replicate, mujoco: 3, 12.6 kg, (1.00, 0.00, 0.00)
replicate, pin: 1, 4.2 kg, (1.00, 0.00, 0.00)
group, mujoco: 1, 4.2 kg, (1.00, 0.00, 0.00)
group, pin: 1, 8.4 kg, (1.00, 0.00, 0.00)
xyz, mujoco: 1, 4.2 kg, (0.49, 0.87, 0.03)
xyz, pin: 1, 4.2 kg, (0.49, 0.87, 0.03)
XYZ, mujoco: 1, 4.2 kg, (0.49, 0.59, -0.64)
XYZ, pin: 1, 4.2 kg, (0.49, 0.87, 0.03)
EXPECTED
