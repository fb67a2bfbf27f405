#!/usr/bin/env bash
# usd-core 26.11: an array of quaternions has its real part first in USD, and last once it is a NumPy array.
#
# Gf.Quatf(1, 2, 3, 4), its text, and the .usda file have the real part first, and so have the rotations of a
# SkelAnimation and the orientations of a PointInstancer when they are printed. One would guess that numpy.array of them
# has that order too. It is the memory of the C++ class, with the real part last. An attribute also takes a NumPy array
# without an error and reads its columns in this other order, so motion written from rotations with w first is another
# motion, and an array that goes in and out of USD is unchanged, which hides it. A list of tuples is refused.
#
# Seen (numpy 2.4.6, Python 3.11, Linux), a turn of 60 degrees about z, w = 0.87, z = 0.5:
#   Gf.Quatf(0.87, 0, 0, 0.5) in a SkelAnimation, the file       (0.87, 0, 0, 0.5)
#   the same, numpy.array(rotations)                              [0, 0, 0.5, 0.87]
#   numpy [0.87, 0, 0, 0.5] given to the attribute, the file      (0.5, 0.87, 0, 0)
#   the same, angle of the turn, and its axis                     120 degrees, x
#   a list with the tuple (0.87, 0, 0, 0.5)                       refused
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'usd-core==26.11' 'numpy==2.4.6'

cat > rotations.py <<'PY'
import math

import numpy
from pxr import Gf, Usd, UsdSkel, Vt

HALF = math.pi / 6  # half of a turn of 60 degrees about z
REAL_FIRST = (math.cos(HALF), 0.0, 0.0, math.sin(HALF))


def make_rotations():
    """The rotations attribute of an animation in a new stage."""
    stage = Usd.Stage.CreateInMemory()
    return stage, UsdSkel.Animation.Define(stage, "/animation").CreateRotationsAttr()


def read_file(stage):
    """The rotation in the stage's text, with two decimals."""
    text = stage.GetRootLayer().ExportToString()
    numbers = text.split("[(")[1].split(")]")[0].split(",")
    return [round(float(number), 2) for number in numbers]


stage, rotations = make_rotations()
rotations.Set(Vt.QuatfArray([Gf.Quatf(*REAL_FIRST)]))
print("Gf.Quatf, file:", read_file(stage))
print("Gf.Quatf, numpy:", [round(float(x), 2) for x in numpy.array(rotations.Get())[0]])

stage, rotations = make_rotations()
rotations.Set(numpy.array([REAL_FIRST], dtype=numpy.float32))
print("numpy, file:", read_file(stage))
print("numpy, numpy:", [round(float(x), 2) for x in numpy.array(rotations.Get())[0]])
turn = Gf.Rotation(rotations.Get()[0])
print("numpy, turn:", round(turn.angle), [round(x, 2) for x in turn.axis])

try:
    Vt.QuatfArray([REAL_FIRST])
except Exception as error:
    print("tuple:", type(error).__name__)
PY
env/bin/python rotations.py | tee seen
diff seen - <<'EXPECTED'
Gf.Quatf, file: [0.87, 0.0, 0.0, 0.5]
Gf.Quatf, numpy: [0.0, 0.0, 0.5, 0.87]
numpy, file: [0.5, 0.87, 0.0, 0.0]
numpy, numpy: [0.87, 0.0, 0.0, 0.5]
numpy, turn: 120 [1.0, 0.0, 0.0]
tuple: TypeError
EXPECTED
