#!/usr/bin/env bash
# mujoco 4.0.0: mj_forward normalizes a quaternion in qpos, mju_rotVecQuat and mju_quat2Mat do not.
#
# So the same numbers, of motion data whose quaternions are not quite unit, are one rotation as a pose of a free joint and
# none as an argument of those functions: a vector comes back with another length and direction.
#
# Seen (Python 3.11, Linux), of a turn by 60 degrees about z whose quaternion has length 1.2, applied to (1, 0, 0):
#   by mj_forward       (0.5, 0.866, 0)       length 1
#   by mju_rotVecQuat   (0.28, 1.247, 0)      length 1.278
#   by mju_quat2Mat     (0.72, 1.247, 0)      length 1.44
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'mujoco==4.0.0' 'numpy==2.4.6'

cat > turn.py <<'PY'
import mujoco
import numpy as np

half = np.radians(60) / 2
quaternion = 1.2 * np.array([np.cos(half), 0, 0, np.sin(half)])
ahead = np.array([1.0, 0, 0])
model = mujoco.MjModel.from_xml_string(
    "<mujoco><worldbody><body><freejoint/><geom size='0.1'/></body></worldbody></mujoco>"
)
data = mujoco.MjData(model)
data.qpos[3:] = quaternion
mujoco.mj_forward(model, data)
rotated, matrix = np.zeros(3), np.zeros(9)
mujoco.mju_rotVecQuat(rotated, ahead, quaternion)
mujoco.mju_quat2Mat(matrix, quaternion)
found = {
    "mj_forward": data.xmat[1].reshape(3, 3) @ ahead,
    "mju_rotVecQuat": rotated,
    "mju_quat2Mat": matrix.reshape(3, 3) @ ahead,
}
for name, vector in found.items():
    print(f"{name}: {vector.round(3)}, length {np.linalg.norm(vector):.3f}")
PY
env/bin/python turn.py | tee seen
diff seen - <<'EXPECTED'
mj_forward: [0.5   0.866 0.   ], length 1.000
mju_rotVecQuat: [0.28  1.247 0.   ], length 1.278
mju_quat2Mat: [0.72  1.247 0.   ], length 1.440
EXPECTED
