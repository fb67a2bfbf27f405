#!/usr/bin/env bash
# mujoco 4.0.0: with the flag speculative, a foot in the air touches the floor, and the contact's dist is no distance.
#
# The flag adds the contacts that a fast geom would come to within the step, so that it cannot pass through a thin one.
# They stand in data.contact among the others, so the contact and touch sensors, from which one reads whether a foot is
# down and how hard, report a touch and a force of a foot that is still above the floor. dist, elsewhere the distance of
# the surfaces, is a number made for the solver: here larger than the true one, which mj_geomDistance gives. Without the
# flag there is nothing to report in this state.
#
# Seen (Python 3.11, Linux), of a foot 4 cm thick and 2 cm above the floor, which moves down at 6 m/s in steps of 5 ms:
#                  mj_geomDistance   contact.dist   contact sensor (found)   touch sensor
#   speculative    2.0 cm            7.4 cm         4                        432 N
#   without        2.0 cm            -              0                        0 N
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'mujoco==4.0.0' 'numpy==2.4.6'

cat > touch.py <<'PY'
import mujoco

MJCF = """<mujoco>
  <option timestep="0.005" gravity="0 0 0">
    <flag speculative="{}"/>
  </option>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 0.1"/>
    <body pos="0 0 0.04">
      <freejoint/>
      <geom name="foot" type="box" size="0.1 0.05 0.02" mass="1"/>
      <site name="foot" type="box" size="0.11 0.06 0.03"/>
    </body>
  </worldbody>
  <sensor>
    <contact name="found" geom1="foot" geom2="floor"/>
    <touch name="touch" site="foot"/>
  </sensor>
</mujoco>"""


def show(flag):
    """Print what is known of the foot's contact with the floor, 2 cm above it and on its way down."""
    model = mujoco.MjModel.from_xml_string(MJCF.format(flag))
    data = mujoco.MjData(model)
    data.qvel[2] = -6
    mujoco.mj_forward(model, data)
    foot, floor = model.geom("foot").id, model.geom("floor").id
    distance = mujoco.mj_geomDistance(model, data, foot, floor, 1, None)
    dist = f"{100 * data.contact.dist[0]:.1f} cm" if data.ncon else "-"
    found = data.sensor("found").data[0]
    touch = data.sensor("touch").data[0]
    print(f"{flag}: {100 * distance:.1f} cm, {dist}, {found:.0f}, {touch:.0f} N")


show("enable")
show("disable")
PY
env/bin/python touch.py | tee seen
diff seen - <<'EXPECTED'
enable: 2.0 cm, 7.4 cm, 4, 432 N
disable: 2.0 cm, -, 0, 0 N
EXPECTED
