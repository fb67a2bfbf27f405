#!/usr/bin/env bash
# jax 0.10.2: of single rotations that jax.scipy's Rotation.concatenate joins, only the first one is left.
#
# Its documentation has scipy's sentence, that it concatenates a sequence of Rotation objects, and scipy makes N single
# rotations to one object of N. In JAX the quaternions are put one behind the other, to 4 N numbers in a row, and
# magnitude, matrices, rotation vectors, Euler angles and apply read the first four of them. So a clip that is put
# together frame by frame is its first frame: as_euler gives one frame, and apply to one point a frame turns each by the
# first rotation. There is no error and no warning, under jit neither. Rotations that have a first axis, even of size 1,
# are joined as in scipy. In the source: Rotation.concatenate of jax/_src/scipy/spatial/transform.py.
#
# Seen (scipy 1.17.1, Python 3.11, Linux, CPU), of turns by 10, 30 and 90 degrees about z, in degrees:
#                                       scipy      jax        jax, each with a first axis
#   magnitude                           10 30 90   10         10 30 90
#   as_euler, about z                   10 30 90   10         10 30 90
#   apply, where three points come to   10 30 90   10 10 10   10 30 90
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'jax==0.10.2' 'jaxlib==0.10.2' 'scipy==1.17.1' 'numpy==2.4.6'
export JAX_PLATFORMS=cpu

cat > joined.py <<'PY'
import numpy as np
import scipy.spatial.transform
from jax.scipy.spatial.transform import Rotation

DEGREES = np.array([10.0, 30.0, 90.0])
POINTS = np.tile([1.0, 0.0, 0.0], (3, 1))


def frames(kind, shape):
    """Three single rotations, of this class and with quaternions of this shape."""
    turns = [kind.from_euler("z", angle, degrees=True) for angle in DEGREES]
    return [kind.from_quat(turn.as_quat().reshape(shape)) for turn in turns]


def show(name, clip):
    """Print the angles of a clip of three frames, and those of three points on x that it turns."""
    x, y, _ = np.asarray(clip.apply(POINTS)).T
    about_z = clip.as_euler("xyz", degrees=True)[..., 2]
    columns = [np.degrees(clip.magnitude()), about_z, np.degrees(np.arctan2(y, x))]
    print(f"{name}:", "; ".join(" ".join(f"{angle:.0f}" for angle in np.ravel(column)) for column in columns))


of_scipy = scipy.spatial.transform.Rotation
show("scipy", of_scipy.concatenate(frames(of_scipy, 4)))
show("jax", Rotation.concatenate(frames(Rotation, 4)))
show("jax, first axis", Rotation.concatenate(frames(Rotation, (1, 4))))
PY
env/bin/python joined.py | tee seen
diff seen - <<'EXPECTED'
scipy: 10 30 90; 10 30 90; 10 30 90
jax: 10; 10; 10 10 10
jax, first axis: 10 30 90; 10 30 90; 10 30 90
EXPECTED
