#!/usr/bin/env bash
# mujoco 4.0.0: of a body asleep on the floor, some contact sensors still report the contact and others report none.
#
# With the flag sleep, a body that has come to rest is left out of collision detection: data.ncon is 0. A contact sensor
# that names the body keeps its last reading; one that names the floor, or no geom, or a site, counts the contacts there
# are now and reads 0. One would guess that two sensors of the same contact agree. The touch sensor keeps the weight, a
# force sensor of the floor loses it, and data.qacc is that of free fall while the accelerometer reads rest. So reward or
# observation "does the box stand on the floor" depends on the way it is asked, and changes without any motion.
#
# Seen (Python 3.11, Linux), of a box on the floor, awake after 20 steps and asleep after 300:
#   data.ncon                               4      0
#   contact, geom1="box"                    4      4
#   contact, geom1="box" geom2="floor"      4      4
#   contact, geom1="floor"                  4      0
#   contact, site around the box            4      0
#   touch, site of the box                  78 N   79 N
#   force, site of the floor                78 N   0 N
#   accelerometer of the box, z             10     10
#   data.qacc of the box, z                 0      -10
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'mujoco==4.0.0' 'numpy==2.4.6'

cat > asleep.py <<'PY'
import mujoco

MJCF = """<mujoco>
  <option timestep="0.005">
    <flag sleep="enable"/>
  </option>
  <worldbody>
    <body name="ground">
      <geom name="floor" type="plane" size="5 5 0.1"/>
      <site name="ground"/>
    </body>
    <body name="box" pos="0 0 0.1">
      <freejoint/>
      <geom name="box" type="box" size="0.1 0.1 0.1"/>
      <site name="box" type="box" size="0.12 0.12 0.12"/>
    </body>
  </worldbody>
  <sensor>
    <contact name="box" geom1="box"/>
    <contact name="box and floor" geom1="box" geom2="floor"/>
    <contact name="floor" geom1="floor"/>
    <contact name="site" site="box"/>
    <touch name="touch" site="box"/>
    <force name="force" site="ground"/>
    <accelerometer name="accelerometer" site="box"/>
  </sensor>
</mujoco>"""
model = mujoco.MjModel.from_xml_string(MJCF)
data = mujoco.MjData(model)


def readings():
    """What the contacts, the sensors and the acceleration are now, by name."""
    values = {"ncon": data.ncon}
    for index in range(model.nsensor):
        sensor = data.sensor(index)
        values[sensor.name] = sensor.data[-1]
    values["qacc"] = data.qacc[2]
    return values


mujoco.mj_step(model, data, 20)
awake = readings()
assert data.tree_asleep[0] < 0
mujoco.mj_step(model, data, 280)
asleep = readings()
assert data.tree_asleep[0] >= 0
for name in awake:
    print(f"{name}: {round(awake[name])}, {round(asleep[name])}")
PY
env/bin/python asleep.py | tee seen
diff seen - <<'EXPECTED'
ncon: 4, 0
box: 4, 4
box and floor: 4, 4
floor: 4, 0
site: 4, 0
touch: 78, 79
force: 78, 0
accelerometer: 10, 10
qacc: 0, -10
EXPECTED
