#!/usr/bin/env bash
# minari 0.5.4: if actions are written into one array, each step of an episode is saved with the action of the last one.
#
# A policy may write its actions into an array that it keeps, as with numpy's out= or an output bound in onnxruntime.
# The environment has used an action when its step is over, and gymnasium's rule of new data in each step is for what
# environments return, so one would guess that DataCollector saves what it was given in each step. It appends the array
# itself to a list and writes the list when the episode is over, so all actions of an episode are its last one.
# Observations, rewards and the number of steps are right, and there is no warning: a policy cloned from the dataset
# learns one constant for each episode. In the source: minari/data_collector/episode_buffer.py.
#
# Seen (gymnasium 1.4.0, Python 3.11, Linux), of a joint that is moved by 0.1, 0.2, 0.3 and 0.4, what the dataset has:
#                              actions           observations
#   one array, overwritten     0.4 0.4 0.4 0.4   0.0 0.1 0.3 0.6 1.0
#   a new array in each step   0.1 0.2 0.3 0.4   0.0 0.1 0.3 0.6 1.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'minari==0.5.4' 'gymnasium==1.4.0' 'numpy==2.4.6' 'h5py==3.16.0' 'pillow==13.0.0' 'ml-dtypes==0.6.0' 'opt-einsum==3.4.0'
# minari takes jax.tree_util alone, which needs no scipy
env/bin/pip install --quiet --disable-pip-version-check --no-deps 'jax==0.10.2' 'jaxlib==0.10.2'
export MINARI_DATASETS_PATH=$folder/datasets JAX_PLATFORMS=cpu

cat > collect.py <<'PY'
import warnings

import gymnasium
import minari
import numpy as np
from gymnasium.utils.env_checker import check_env

MOVES = [0.1, 0.2, 0.3, 0.4]


class Joint(gymnasium.Env):
    """A joint whose angle grows by the action."""

    observation_space = gymnasium.spaces.Box(-10, 10, (1,), np.float64)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.angle = np.zeros(1)
        return self.angle, {}

    def step(self, action):
        self.angle = self.angle + action
        return self.angle, float(action[0]), False, False, {}


def collect(name, reuse):
    """Save one episode, and print what the dataset has."""
    collector = minari.DataCollector(Joint(), data_format="hdf5")
    collector.reset(seed=0)
    action = np.zeros(1)
    for move in MOVES:
        if not reuse:
            action = np.zeros(1)
        action[:] = move
        collector.step(action)
    collector.create_dataset(f"joint/{name}-v0")
    episode = minari.load_dataset(f"joint/{name}-v0")[0]
    assert np.allclose(episode.rewards, MOVES)
    columns = [episode.actions, episode.observations]
    print(f"{name}:", "; ".join(" ".join(f"{number:.1f}" for number in np.ravel(column)) for column in columns))


with warnings.catch_warnings():
    warnings.simplefilter("error")
    check_env(Joint(), skip_render_check=True)
warnings.simplefilter("ignore")
collect("overwritten", reuse=True)
collect("new", reuse=False)
PY
env/bin/python collect.py | tee seen
diff seen - <<'EXPECTED'
overwritten: 0.4 0.4 0.4 0.4; 0.0 0.1 0.3 0.6 1.0
new: 0.1 0.2 0.3 0.4; 0.0 0.1 0.3 0.6 1.0
EXPECTED
