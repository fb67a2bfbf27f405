#!/usr/bin/env bash
# robosuite 1.5.2: GymWrapper's reset(seed=...) does not set the start, and its time limit counts as termination.
#
# Its docstring says that reset "optionally resets seed". The seed goes to NumPy's global generator, but an environment
# draws its start from a generator of its own, which only make(..., seed=...) seeds. So episodes with the same seed
# begin in different states. An episode that reaches `horizon` ends with terminated=True, truncated=False and an empty
# info. So an algorithm takes the value of what would follow to be 0, and cannot know that it was only the time limit.
#
# Seen (gymnasium 1.4.0, mujoco 3.3.7, Python 3.11, Linux), of Lift with horizon=5, which ends for no other reason:
#   places of the cube after reset(seed=1), reset(seed=1), reset(seed=1)    3 different ones
#   places of the cube in 3 environments made with seed=1                   the same one
#   terminated, truncated, info of the fifth step                           True False {}
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
# robosuite.wrappers imports h5py, which robosuite does not install
env/bin/pip install --quiet --disable-pip-version-check 'robosuite==1.5.2' 'gymnasium==1.4.0' 'h5py==3.16.0' \
    'mujoco==3.3.7' 'numpy==1.26.4' 'scipy==1.17.1'

cat > episodes.py <<'PY'
import numpy as np
import robosuite
from robosuite.wrappers import GymWrapper


def make(seed=None):
    env = robosuite.make(
        "Lift",
        robots="Panda",
        has_renderer=False,
        has_offscreen_renderer=False,
        use_camera_obs=False,
        horizon=5,
        seed=seed,
    )
    return GymWrapper(env, keys=["cube_pos"])


def place(env, **options):
    return tuple(env.reset(**options)[0])


env = make()
places, numbers = set(), set()
for _ in range(3):
    places.add(place(env, seed=1))
    numbers.add(np.random.rand())
lines = [
    f"places after three times reset(seed=1): {len(places)}",
    f"global random numbers after it: {len(numbers)}",
    f"places in three environments made with seed=1: {len({place(make(seed=1)) for _ in range(3)})}",
]
env.reset()
for step in range(1, 6):
    _, _, terminated, truncated, info = env.step(np.zeros(env.action_space.shape))
    if step >= 4:
        lines.append(f"step {step}: terminated {terminated}, truncated {truncated}, info {info}")
with open("seen", "w") as file:
    print(*lines, sep="\n", file=file)
PY
# robosuite prints what it loads
env/bin/python episodes.py > log 2>&1 || { cat log; exit 1; }
cat seen
diff seen - <<'EXPECTED'
places after three times reset(seed=1): 3
global random numbers after it: 1
places in three environments made with seed=1: 1
step 4: terminated False, truncated False, info {}
step 5: terminated True, truncated False, info {}
EXPECTED
