#!/usr/bin/env bash
# mujoco 4.0.0: a rollout continued from the last state that it returned goes another way than one without a break.
#
# mujoco.rollout takes and returns the "full physics state", and values already in the given MjData have no effect, so
# one would guess that 10 steps and 10 more from the last state are 20 steps. The acceleration from which the solver
# starts is not in that state and begins at 0 in each call. A solver that converges differs by rounding only; with few
# iterations, as simulations of characters often have for speed, the motion is another one. With initial_warmstart, read
# from MjData.qacc_warmstart after the first call, both are equal to the bit. After a batch, an MjData holds only the one
# of the last rollout that it ran.
#
# Seen (Python 3.11, Linux), of a body with two legs on the floor, steps 11 to 20, largest difference in the state:
#   iterations 100 (the default)                        not equal, below 1e-5
#   iterations 1                                        not equal, above 0.1
#   iterations 100 or 1, with initial_warmstart         equal
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'mujoco==4.0.0' 'numpy==2.4.6'

cat > continued.py <<'PY'
import mujoco
import numpy as np
from mujoco.rollout import rollout

MJCF = """<mujoco>
  <option timestep="0.005" iterations="{}"/>
  <worldbody>
    <geom type="plane" size="5 5 0.1"/>
    <body pos="0 0 0.5">
      <freejoint/>
      <geom type="capsule" size="0.1" fromto="-0.2 0 0 0.2 0 0"/>
      <body pos="0.2 0 0">
        <joint name="front" axis="0 1 0"/>
        <geom type="capsule" size="0.05" fromto="0 0 0 0.1 0.05 -0.4"/>
      </body>
      <body pos="-0.2 0 0">
        <joint name="back" axis="0 1 0"/>
        <geom type="capsule" size="0.05" fromto="0 0 0 0.1 -0.05 -0.4"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="front" gear="5"/>
    <motor joint="back" gear="5"/>
  </actuator>
</mujoco>"""
FULL_PHYSICS = mujoco.mjtState.mjSTATE_FULLPHYSICS


def show(iterations):
    """Print how steps 11 to 20 differ between one call and two."""
    model = mujoco.MjModel.from_xml_string(MJCF.format(iterations))
    data = mujoco.MjData(model)
    for _ in range(100):
        mujoco.mj_step(model, data)
    on_floor = np.empty(mujoco.mj_stateSize(model, FULL_PHYSICS))
    mujoco.mj_getState(model, data, on_floor, FULL_PHYSICS)
    controls = np.random.default_rng(0).uniform(-1, 1, (1, 20, 2))

    whole, _ = rollout(model, data, on_floor, controls)
    first_half, _ = rollout(model, data, on_floor, controls[:, :10])
    warmstart = data.qacc_warmstart.copy()
    last_state = first_half[:, -1]
    continued, _ = rollout(model, data, last_state, controls[:, 10:])
    warm, _ = rollout(model, data, last_state, controls[:, 10:], initial_warmstart=warmstart)

    difference = np.abs(continued - whole[:, 10:]).max()
    size = "below 1e-5" if difference < 1e-5 else "above 0.1" if difference > 0.1 else difference
    print(f"iterations {iterations}: equal {np.array_equal(continued, whole[:, 10:])}, {size}")
    print(f"  with initial_warmstart: equal {np.array_equal(warm, whole[:, 10:])}")


show(100)
show(1)
PY
env/bin/python continued.py | tee seen
diff seen - <<'EXPECTED'
iterations 100: equal False, below 1e-5
  with initial_warmstart: equal True
iterations 1: equal False, above 0.1
  with initial_warmstart: equal True
EXPECTED
