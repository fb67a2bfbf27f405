#!/usr/bin/env bash
# mujoco-mjx 3.17.0: it accepts models with delays, motor inertia or a moving floor, and simulates them without.
#
# put_model raises NotImplementedError for what the JAX implementation does not support, as an actuator of the type
# dcmotor or an implicit integrator, and MuJoCo's documentation promises this for every unsupported feature. So one
# would guess that a model which it takes moves as in mujoco of the same version. The check looks at types and flags
# only. Numbers of newer features, such as delay, damping and armature of an actuator, actearly, the polynomial
# coefficients of a joint's damping and stiffness, a geom's surfacevel and the delay of a sensor, are dropped or never
# read, without a warning. Most of them describe the motors of a real robot, and a policy that is trained in MJX is
# trained without them. In the source: _put_model_jax of mujoco/mjx/_src/io.py.
#
# Seen (mujoco 3.17.0, jax 0.10.2, Python 3.11, Linux, CPU), of 1 kg on a slide that 10 N push for 0.1 s, or of a box on
# a floor, the speed in m/s, and of the sensor the position that it reports in m:
#                                            mujoco    mujoco-mjx
#   motor                                    1.00      1.00
#   motor, delay="0.05"                      0.50      1.00
#   motor, damping="10"                      0.61      1.00
#   motor, armature="1"                      0.50      1.00
#   filter of 0.05 s                         0.52      0.52
#   filter of 0.05 s, actearly="true"        0.61      0.52
#   joint, damping="10"                      0.61      0.61
#   joint, damping="0 20"                    0.61      1.00
#   joint, stiffness="10"                    0.98      0.98
#   joint, stiffness="0 1000"                0.95      1.00
#   sensor                                   0.045     0.045
#   sensor, delay="0.05"                     0.010     0.045
#   floor                                    0.00      0.00
#   floor, surfacevel="1 0 0 0 0 0"          0.98      0.00
#   actuator dcmotor                                   NotImplementedError
#   integrator="implicit"                              NotImplementedError
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'mujoco-mjx==3.17.0' 'mujoco==3.17.0' 'jax==0.10.2' \
    'jaxlib==0.10.2' 'numpy==2.4.6'
export JAX_PLATFORMS=cpu

cat > features.py <<'PY'
import jax
import mujoco
from mujoco import mjx

jax.config.update("jax_enable_x64", True)

SLIDE = """<mujoco>
  <option timestep="0.01" gravity="0 0 0" {option}/>
  <worldbody>
    <body>
      <joint name="slide" type="slide" axis="1 0 0" {joint}/>
      <geom size="0.1" mass="1" contype="0" conaffinity="0"/>
    </body>
  </worldbody>
  <actuator>
    <{actuator} joint="slide"/>
  </actuator>
  <sensor>
    <jointpos joint="slide" {sensor}/>
  </sensor>
</mujoco>"""
FLOOR = """<mujoco>
  <option timestep="0.01"/>
  <worldbody>
    <geom type="plane" size="9 9 1" {floor}/>
    <body pos="0 0 0.0999">
      <freejoint/>
      <geom type="box" size="0.1 0.1 0.1" mass="1"/>
    </body>
  </worldbody>
</mujoco>"""


def run(mjcf):
    """The data of mujoco and of mjx after 0.1 s."""
    model = mujoco.MjModel.from_xml_string(mjcf)
    data = mujoco.MjData(model)
    data.ctrl[:] = 10
    try:
        mjx_model = mjx.put_model(model, impl="jax")
    except NotImplementedError as error:
        return type(error).__name__
    mjx_data = mjx.put_data(model, data, impl="jax")
    step = jax.jit(mjx.step)
    for _ in range(10):
        mujoco.mj_step(model, data)
        mjx_data = step(mjx_model, mjx_data)
    return data, mjx_data


def slide(option="", joint="", actuator="motor", sensor=""):
    """What becomes of the slide."""
    return run(SLIDE.format(option=option, joint=joint, actuator=actuator, sensor=sensor))


def show(name, results, field="qvel", digits=2):
    """Print one number of both."""
    numbers = (f"{abs(float(getattr(data, field)[0])):.{digits}f}" for data in results)
    print(f"{name}: {' '.join(numbers)}", flush=True)


FILTER = 'general dyntype="filterexact" dynprm="0.05"'
show("motor", slide())
show("motor delay", slide(actuator='motor delay="0.05" nsample="6"'))
show("motor damping", slide(actuator='motor damping="10"'))
show("motor armature", slide(actuator='motor armature="1"'))
show("filter", slide(actuator=FILTER))
show("filter, actearly", slide(actuator=f'{FILTER} actearly="true"'))
show("joint damping", slide(joint='damping="10"'))
show("joint damping, second", slide(joint='damping="0 20"'))
show("joint stiffness", slide(joint='stiffness="10"'))
show("joint stiffness, second", slide(joint='stiffness="0 1000"'))
show("sensor", slide(), "sensordata", 3)
show("sensor delay", slide(sensor='delay="0.05" nsample="6"'), "sensordata", 3)
show("floor", run(FLOOR.format(floor="")))
show("floor surfacevel", run(FLOOR.format(floor='surfacevel="1 0 0 0 0 0"')))
print("dcmotor:", slide(actuator='dcmotor motorconst="0.1" resistance="1"'))
print("implicit:", slide(option='integrator="implicit"'))
PY
# mjx prints two lines about warp, which this implementation does not use.
env/bin/python features.py | grep -v '^Failed to import' | tee seen
diff seen - <<'EXPECTED'
motor: 1.00 1.00
motor delay: 0.50 1.00
motor damping: 0.61 1.00
motor armature: 0.50 1.00
filter: 0.52 0.52
filter, actearly: 0.61 0.52
joint damping: 0.61 0.61
joint damping, second: 0.61 1.00
joint stiffness: 0.98 0.98
joint stiffness, second: 0.95 1.00
sensor: 0.045 0.045
sensor delay: 0.010 0.045
floor: 0.00 0.00
floor surfacevel: 0.98 0.00
dcmotor: NotImplementedError
implicit: NotImplementedError
EXPECTED
