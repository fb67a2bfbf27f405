#!/usr/bin/env bash
# newton 1.8.0: of an MJCF file it leaves out the range of a ball joint and the gear of a position actuator.
#
# add_mjcf reads both elsewhere: the range of a hinge and the gear of a motor arrive in the model, and of an equality
# that it cannot carry over it warns. So one would guess that a file read without a warning is the same character. But
# the shoulder of a character with ball joints has no limit, and a position actuator with a gear, whose stiffness at the
# joint is kp times the gear squared, holds with kp alone. It is not the solver: here MuJoCo steps both its own reading
# of the file and the model that newton made of it. With ctrl_direct=True the gear is kept, the range is not. In the
# source: newton/_src/utils/import_mjcf.py.
#
# Seen (mujoco 3.17.0, the release that newton asks for, Python 3.11, Linux, CPU), of an arm that gravity pulls down
# from the horizontal, its angle in degrees after 5 s:
#                                                mujoco   newton   newton, ctrl_direct=True
#   hinge, range="-40 40"                        40       40       40
#   ball, range="0 40"                           40       90       90
#   hinge with a spring, motor of gear 4         3        3        3
#   hinge, position of kp 20, gear 3, target 0   2        14       2
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'newton==1.8.0' 'warp-lang==1.19.0' 'mujoco==3.17.0' 'mujoco-warp==3.17.0' 'numpy==2.4.6'

export WARP_CACHE_PATH=$folder/warp

cat > arm.py <<'PY'
import warnings

import mujoco
import newton
import numpy as np

warnings.simplefilter("error", newton.NewtonWarning)

MJCF = """<mujoco>
  <worldbody>
    <body name="arm" pos="0 0 2">
      <joint name="shoulder" axis="0 1 0" damping="2" {joint}/>
      <geom size="0.1" pos="0.5 0 0" mass="1"/>
    </body>
  </worldbody>
  <actuator>{actuator}</actuator>
</mujoco>"""


def angle(model, control):
    """How far the arm is from the horizontal after 5 s, in degrees."""
    data = mujoco.MjData(model)
    data.ctrl[:] = control
    mujoco.mj_step(model, data, round(5 / model.opt.timestep))
    along = data.xmat[-1].reshape(3, 3)[:, 0]
    return round(float(np.rad2deg(np.arccos(along[0]))))


def as_newton_has_it(xml, **arguments):
    """The MuJoCo model that newton's solver makes of its own."""
    builder = newton.ModelBuilder()
    builder.add_mjcf(xml, **arguments)
    return newton.solvers.SolverMuJoCo(builder.finalize(device="cpu"), use_mujoco_cpu=True).mj_model


def show(name, joint="", actuator="", control=0):
    """Print the angles of one file."""
    xml = MJCF.format(joint=joint, actuator=actuator)
    models = [mujoco.MjModel.from_xml_string(xml), as_newton_has_it(xml), as_newton_has_it(xml, ctrl_direct=True)]
    print(f"{name}:", *(angle(model, control) for model in models))


show("hinge", 'range="-40 40"')
show("ball", 'type="ball" range="0 40"')
show("motor", 'stiffness="20"', '<motor joint="shoulder" gear="4"/>', -1)
show("position", "", '<position joint="shoulder" kp="20" gear="3"/>')
PY
env/bin/python arm.py | grep -E '^(hinge|ball|motor|position):' | tee seen
diff seen - <<'EXPECTED'
hinge: 40 40 40
ball: 40 90 90
motor: 3 3 3
position: 2 14 2
EXPECTED
