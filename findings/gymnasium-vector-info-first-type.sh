#!/usr/bin/env bash
# gymnasium 1.4.0: in a vector environment's info, the first environment's type truncates the others' numbers.
#
# SyncVectorEnv and AsyncVectorEnv join the numbers of one name in an array. Its type is that of the first environment
# that has this name in this step, and the others' numbers are written into it. One would guess that the type fits all,
# as that of numpy.array([0, 0.7]) does. An environment that reports a penalty as 0 where there is none, and as 0.7
# otherwise, gives the array the type int in environment 0, and the 0.7 of environment 1 becomes 0, without a warning.
# Where environment 0 has a penalty itself, all numbers are right. A count beside False becomes True, and an array of
# int truncates arrays of float. DictInfoToList returns the truncated numbers. Means of reward terms in a log are then
# too small, by an amount that depends on one environment. With 0.0 in place of 0 all are right. In the source:
# VectorEnv._add_info of gymnasium/vector/vector_env.py.
#
# Seen (numpy 2.4.6, Python 3.11, Linux), of the penalty tilt - 0.3, or 0 if the tilt is below 0.3, in two environments,
# and of the number of feet that slip, or False if none does:
#   tilts              0.1 1.0      1.0 0.1
#   SyncVectorEnv      0   0        0.7 0.0
#   AsyncVectorEnv     0   0        0.7 0.0
#   DictInfoToList     0   0        0.7 0.0
#   0.0 instead of 0   0.0 0.7      0.7 0.0
#   feet that slip     0 2 ->       2 0 ->
#                      False True   2 0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'gymnasium==1.4.0' 'numpy==2.4.6'

cat > info.py <<'PY'
import gymnasium
import numpy as np


class Walker(gymnasium.Env):
    """The action is the tilt. A walker that tilts too far pays a penalty and slips with two feet."""

    observation_space = gymnasium.spaces.Box(-2, 2, (1,))
    action_space = gymnasium.spaces.Box(-2, 2, (1,))

    def __init__(self, none=0):
        self.none = none

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        excess = round(float(action[0]) - 0.3, 6)
        penalty = excess if excess > 0 else self.none
        slipping = 2 if excess > 0 else False
        return action, 1.0, False, False, {"penalty": penalty, "slipping": slipping}


def infos(envs, tilts):
    """The info of one step with these tilts."""
    envs.reset()
    info = envs.step(np.array(tilts, np.float32)[:, None])[4]
    envs.close()
    return info


def text(numbers):
    """Numbers as text."""
    return " ".join(str(number) for number in numbers)


def show(name, make, read):
    """Print what is read with environment 1 tilted, and with environment 0 tilted."""
    print(f"{name}: {text(read(infos(make(), (0.1, 1))))}, {text(read(infos(make(), (1, 0.1))))}")


def sync(**arguments):
    """Two walkers in one process."""
    return gymnasium.vector.SyncVectorEnv([lambda: Walker(**arguments)] * 2)


if __name__ == "__main__":
    show("SyncVectorEnv", sync, lambda info: info["penalty"])
    show(
        "AsyncVectorEnv",
        lambda: gymnasium.vector.AsyncVectorEnv([Walker] * 2),
        lambda info: info["penalty"],
    )
    show(
        "DictInfoToList",
        lambda: gymnasium.wrappers.vector.DictInfoToList(sync()),
        lambda info: [entry["penalty"] for entry in info],
    )
    show("0.0", lambda: sync(none=0.0), lambda info: info["penalty"])
    show("slipping", sync, lambda info: info["slipping"])
PY
env/bin/python info.py | tee seen
diff seen - <<'EXPECTED'
SyncVectorEnv: 0 0, 0.7 0.0
AsyncVectorEnv: 0 0, 0.7 0.0
DictInfoToList: 0 0, 0.7 0.0
0.0: 0.0 0.7, 0.7 0.0
slipping: False True, 2 0
EXPECTED
