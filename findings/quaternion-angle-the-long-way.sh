#!/usr/bin/env bash
# numpy-quaternion 2024.0.13, transforms3d 0.4.2, pyquaternion 0.9.9: of a turn of 3 degrees they give 357 degrees.
#
# q and -q are the same rotation, and a conversion from matrices chooses a sign, so neighbouring frames of a clip may
# differ in it. Then w of the rotation from one frame to the next is negative: as_rotation_vector, quat2axangle and
# Quaternion.log give its turn the long way round. slerp of numpy-quaternion and pyquaternion takes the short way, and
# Quaternion.radians is from -pi to pi, so one would guess that the others do as well. The speed of a joint by
# differences then has a spike in one frame, in a reference for a policy or in a feature of a discriminator.
# angular_velocity of numpy-quaternion, a spline through the four numbers, errs in the frames around. unflip_rotors
# before it corrects that one; the others are right if the rotation between two frames is negated where its w is below 0.
#
# Seen (scipy 1.17.1, Python 3.11, Linux), of a clip that turns by 90 degrees a second for 5 s at 30 frames per second,
# each library with its own quaternions of the clip's matrices, the greatest speed in degrees per second:
#   scipy, Rotation.magnitude                 90
#   numpy-quaternion, as_rotation_vector   10710
#   numpy-quaternion, angular_velocity       145
#     the same, after unflip_rotors           90
#   transforms3d, quat2axangle             10710
#   pyquaternion, Quaternion.log           10710
#   pyquaternion, Quaternion.radians          90
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'numpy-quaternion==2024.0.13' 'transforms3d==0.4.2' 'pyquaternion==0.9.9' 'scipy==1.17.1' 'numpy==2.4.6'

cat > speed.py <<'PY'
import numpy as np
import quaternion
from pyquaternion import Quaternion
from scipy.spatial.transform import Rotation
from transforms3d import quaternions

FRAMES_PER_SECOND = 30
times = np.arange(5 * FRAMES_PER_SECOND + 1) / FRAMES_PER_SECOND
axis = np.array([1, 2, 3]) / np.sqrt(14)
clip = Rotation.from_rotvec(np.radians(90) * times[:, None] * axis)
matrices = clip.as_matrix()


def show(name, speeds):
    print(f"{name}: {np.degrees(np.max(speeds)):.0f}")


def show_turns(name, turns):
    """Print the greatest speed, of the angle from each frame to the next."""
    show(name, np.abs(turns) * FRAMES_PER_SECOND)


show_turns("scipy", (clip[1:] * clip[:-1].inv()).magnitude())

frames = quaternion.from_rotation_matrix(matrices)
vectors = quaternion.as_rotation_vector(frames[1:] / frames[:-1])
show_turns("as_rotation_vector", np.linalg.norm(vectors, axis=1))
show("angular_velocity", np.linalg.norm(quaternion.angular_velocity(frames, times), axis=1))
unflipped = quaternion.unflip_rotors(frames)
show("unflip_rotors", np.linalg.norm(quaternion.angular_velocity(unflipped, times), axis=1))

frames = [quaternions.mat2quat(matrix) for matrix in matrices]
steps = [quaternions.qmult(b, quaternions.qinverse(a)) for a, b in zip(frames, frames[1:])]
show_turns("quat2axangle", [quaternions.quat2axangle(step)[1] for step in steps])

frames = [Quaternion(matrix=matrix) for matrix in matrices]
steps = [b * a.inverse for a, b in zip(frames, frames[1:])]
show_turns("Quaternion.log", [2 * Quaternion.log(step).norm for step in steps])
show_turns("Quaternion.radians", [step.radians for step in steps])
PY
env/bin/python speed.py | tee seen
diff seen - <<'EXPECTED'
scipy: 90
as_rotation_vector: 10710
angular_velocity: 145
unflip_rotors: 90
quat2axangle: 10710
Quaternion.log: 10710
Quaternion.radians: 90
EXPECTED
