#!/usr/bin/env bash
# jax 0.10.2: behind its last key, jax.scipy's Slerp goes back to the key before and turns through the last part again.
#
# Its documentation calls it the JAX implementation of scipy's Slerp, which raises ValueError for a time outside of its
# keys. JAX cannot raise under jit, so one would guess that such a time counts as the nearest key, as in jnp.interp, or
# is extrapolated, as times before the first key are. Behind the last key, the index of the part that is to be turned
# through is cut to the last part, while time counts from the last key. So just behind the end the rotation is that of
# the last key but one, without a warning. Rounding is enough: in float32, 7 times 1/30 s is more than 7/30 s, so the
# last frame of a clip comes out as the frame before it or, where keys are far apart, as a much earlier pose. A time
# that jnp.clip limits to the keys is right. In the source: Slerp of jax/_src/scipy/spatial/transform.py.
#
# Seen (scipy 1.17.1, Python 3.11, Linux, CPU), of keys 0, 10, 30 and 60 degrees at 0, 1, 2 and 3 s, in degrees:
#   time     scipy         jax     jax, time clipped
#   -0.5     ValueError     -5      0
#    0.5      5              5      5
#    2.5     45             45     45
#    3.0     60             60     60
#    3.001   ValueError     30     60
#    3.5     ValueError     45     60
#    4.0     ValueError     60     60
# and of keys at 0 and 7/30 s, 0 and 70 degrees, at 7 times 1/30 s in float32:
#            ValueError      0     70
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'jax==0.10.2' 'jaxlib==0.10.2' 'scipy==1.17.1' 'numpy==2.4.6'
export JAX_PLATFORMS=cpu

cat > slerp.py <<'PY'
import jax.numpy as jnp
import numpy as np
import scipy.spatial.transform
from jax.scipy.spatial.transform import Rotation, Slerp


def in_scipy(times, degrees, time):
    """The angle by scipy, in degrees."""
    rotations = scipy.spatial.transform.Rotation.from_euler("z", degrees[:, None], degrees=True)
    try:
        rotation = scipy.spatial.transform.Slerp(times, rotations)(time)
    except ValueError as error:
        return type(error).__name__
    return f"{np.degrees(rotation.as_rotvec()[2]):.0f}"


def in_jax(times, degrees, time):
    """The angle by jax, in degrees."""
    rotations = Rotation.from_euler("z", jnp.array(degrees[:, None]), degrees=True)
    rotation = Slerp.init(jnp.array(times), rotations)(time)
    return f"{np.degrees(rotation.as_rotvec()[2]) + 0.0:.0f}"


def show(name, times, degrees, time):
    """Print the three angles at a time."""
    time = np.float32(time)
    clipped = jnp.clip(time, times[0], times[-1])
    angles = in_scipy(times, degrees, time), in_jax(times, degrees, time), in_jax(times, degrees, clipped)
    print(f"{name}: {' '.join(angles)}")


keys = np.float32([0, 1, 2, 3])
for time in (-0.5, 0.5, 2.5, 3.0, 3.001, 3.5, 4.0):
    show(time, keys, np.float32([0, 10, 30, 60]), time)
show("7 frames", np.float32([0, 7 / 30]), np.float32([0, 70]), 7 * np.float32(1 / 30))
PY
env/bin/python slerp.py | tee seen
diff seen - <<'EXPECTED'
-0.5: ValueError -5 0
0.5: 5 5 5
2.5: 45 45 45
3.0: 60 60 60
3.001: ValueError 30 60
3.5: ValueError 45 60
4.0: ValueError 60 60
7 frames: ValueError 0 70
EXPECTED
