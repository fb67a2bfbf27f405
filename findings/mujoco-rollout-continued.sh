#!/usr/bin/env bash
# mujoco 4.0.0: a rollout continued from the last state that it returned goes another way than one without a break.
#
# mujoco.rollout takes and returns the "full physics state", and values already in the given MjData have no effect, so
# one would guess that 10 steps and 10 more from the last state are 20 steps. The acceleration from which the solver
# starts is not in that state and begins at 0 in each call. A solver that converges differs by rounding only; with few
# iterations, as models of characters often have for speed, the motion is another one. With initial_warmstart, read from
# MjData.qacc_warmstart after the first call, both are equal to the bit. After a batch, an MjData holds only the one of
# the last rollout that it ran.
#
# Seen (Python 3.11, Linux), of a body with two legs on the floor under 20 sequences of controls, steps 11 to 20 of a
# rollout without a break and of a continued one, as the largest difference in the state:
#                          without initial_warmstart   with it
#   100 iterations (most)  below 1e-5                  0
#   1 iteration (most)     above 1                     0
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


def differences(model, controls):
    """Largest difference of steps 11 to 20 between one call and two, without and with initial_warmstart."""
    data = mujoco.MjData(model)
    for _ in range(100):
        mujoco.mj_step(model, data)
    on_floor = np.empty(mujoco.mj_stateSize(model, FULL_PHYSICS))
    mujoco.mj_getState(model, data, on_floor, FULL_PHYSICS)

    whole, _ = rollout(model, data, on_floor, controls)
    first_half, _ = rollout(model, data, on_floor, controls[:10])
    warmstart = data.qacc_warmstart.copy()
    last_state = first_half[0, -1]
    cold, _ = rollout(model, data, last_state, controls[10:])
    warm, _ = rollout(model, data, last_state, controls[10:], initial_warmstart=warmstart)
    return [np.abs(continued - whole[:, 10:]).max() for continued in (cold, warm)]


sequences = np.random.default_rng(0).uniform(-1, 1, (20, 20, 2))
for iterations in (100, 1):
    model = mujoco.MjModel.from_xml_string(MJCF.format(iterations))
    cold, warm = np.max([differences(model, controls) for controls in sequences], axis=0)
    size = "below 1e-5" if cold < 1e-5 else "above 1" if cold > 1 else f"{cold:g}"
    print(f"{iterations}: {size}, {warm:g}")
PY
env/bin/python continued.py | tee seen
diff seen - <<'EXPECTED'
100: below 1e-5, 0
1: above 1, 0
EXPECTED
