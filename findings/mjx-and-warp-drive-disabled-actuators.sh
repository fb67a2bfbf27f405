#!/usr/bin/env bash
# mujoco-mjx 3.17.0 and mujoco-warp 4.0.0: actuators of a group that option/actuatorgroupdisable disables still act.
#
# A model may have two sets of actuators on the same joints, for instance torques and position servos, and the option
# chooses between them: mujoco computes no force for an actuator of a disabled group. Both put_model functions raise an
# error for what they cannot simulate, and MuJoCo's documentation promises that for MJX. So one would guess that a model
# which they accept moves as in mujoco. Both accept this one. MJX copies the number to model.opt.disableactuator, Warp
# does not, and neither uses it: all sets act at once. A policy that is trained on torques there is trained with servos
# that hold the joints, without a warning. In the source: fwd_actuation of mujoco/mjx/_src/forward.py and of
# mujoco_warp/_src/forward.py.
#
# Seen (mujoco 4.0.0, jax 0.10.2, warp-lang 1.19.0, Python 3.11, Linux, CPU), of 1 kg on a slide with a motor (group 1,
# 1 N) and a position actuator (group 2, kp 100 and 1 m from its target), the acceleration in m/s2:
#   groups disabled    mujoco    mujoco-mjx    mujoco-warp
#   none               101       101           101
#   2                    1       101           101
#   1                  100       101           101
#   1 and 2              0       101           101
#   solver PGS                   NotImplementedError of both, as expected of what is not supported
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'mujoco-mjx==3.17.0' 'mujoco-warp==4.0.0' 'mujoco==4.0.0' \
    'mujoco-core==4.0.0' 'jax==0.10.2' 'jaxlib==0.10.2' 'warp-lang==1.19.0' 'numpy==2.4.6'
export JAX_PLATFORMS=cpu WARP_CACHE_PATH=$folder/kernels

cat > groups.py <<'PY'
import sys

import jax
import mujoco
import warp

warp.config.quiet = True

import mujoco_warp
from mujoco import mjx

MJCF = """<mujoco>
  <option gravity="0 0 0" {}/>
  <worldbody>
    <body>
      <joint name="slide" type="slide" axis="1 0 0"/>
      <geom size="0.1" mass="1"/>
    </body>
  </worldbody>
  <actuator>
    <motor joint="slide" group="1"/>
    <position joint="slide" kp="100" group="2"/>
  </actuator>
</mujoco>"""


def refusal(put_model, model):
    """The error that put_model raises for a model."""
    try:
        put_model(model)
    except NotImplementedError as error:
        return type(error).__name__
    return "taken"


def show(name, option):
    """The acceleration of one model in the three of them."""
    model = mujoco.MjModel.from_xml_string(MJCF.format(option))
    data = mujoco.MjData(model)
    data.ctrl[:] = 1

    mjx_model = mjx.put_model(model, impl="jax")
    mjx_data = jax.jit(mjx.forward)(mjx_model, mjx.put_data(model, data, impl="jax"))

    with warp.ScopedDevice("cpu"):
        warp_model = mujoco_warp.put_model(model)
        warp_data = mujoco_warp.put_data(model, data)
        mujoco_warp.forward(warp_model, warp_data)

    mujoco.mj_forward(model, data)
    accelerations = data.qacc[0], float(mjx_data.qacc[0]), warp_data.qacc.numpy()[0, 0]
    return f"{name}: " + " ".join(f"{value:.0f}" for value in accelerations)


lines = [
    show("none", ""),
    show("2", 'actuatorgroupdisable="2"'),
    show("1", 'actuatorgroupdisable="1"'),
    show("1 and 2", 'actuatorgroupdisable="1 2"'),
]
pgs = mujoco.MjModel.from_xml_string(MJCF.format('solver="PGS"'))
refusals = refusal(lambda model: mjx.put_model(model, impl="jax"), pgs), refusal(mujoco_warp.put_model, pgs)
lines.append(f"PGS: {' '.join(refusals)}")
with open(sys.argv[1], "w") as file:
    file.write("\n".join(lines) + "\n")
PY
env/bin/python groups.py seen > log 2>&1 || { cat log; exit 1; }
cat seen
diff seen - <<'EXPECTED'
none: 101 101 101
2: 1 101 101
1: 100 101 101
1 and 2: 0 101 101
PGS: NotImplementedError NotImplementedError
EXPECTED
