#!/usr/bin/env bash
# sbx-rl 0.28.0: PPO takes clip_range_vf and documents it, and never clips the value function.
#
# Stable-Baselines3's PPO, whose interface sbx has, clips how far the value function moves from its old prediction in an
# update. The docstring of sbx says the same of its own clip_range_vf, but sbx only stores it: a run with it gives, bit
# for bit, the parameters of a run without, and a value that Stable-Baselines3 refuses is accepted. Nothing is printed,
# and train/clip_range_vf is not logged. Hyperparameters moved from one library to the other train something else.
#
# Seen (stable-baselines3 2.9.2, torch 2.13.0, jax 0.10.2, Python 3.11, Linux, CPU), of Pendulum-v1, 128 steps, seed 0,
# whether the parameters that clip_range_vf=0.001 gives are those of clip_range_vf=None:
#   stable-baselines3   False    clip_range_vf=-1: AssertionError
#   sbx                 True     clip_range_vf=-1: True
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'sbx-rl==0.28.0' 'stable-baselines3==2.9.2' 'torch==2.13.0' \
    'jax==0.10.2' 'flax==0.12.8' 'gymnasium==1.4.0' 'numpy==2.4.6'

cat > clip.py <<'PY'
import inspect

import jax
import numpy as np
import sbx
import stable_baselines3
import torch

torch.set_num_threads(1)


def train(library, clip):
    """The parameters of the policy and the value function, and what is logged."""
    model = library.PPO(
        "MlpPolicy", "Pendulum-v1", n_steps=64, batch_size=32, n_epochs=4, seed=0, device="cpu", clip_range_vf=clip
    )
    model.learn(128)
    model.train()
    logged = "train/clip_range_vf" in model.logger.name_to_value
    if library is sbx:
        leaves = jax.tree.leaves((model.policy.actor_state.params, model.policy.vf_state.params))
    else:
        leaves = [parameter.detach().numpy() for parameter in model.policy.parameters()]
    return np.concatenate([np.ravel(leaf) for leaf in leaves]), logged


for library in (stable_baselines3, sbx):
    plain, _ = train(library, None)
    clipped, logged = train(library, 0.001)
    try:
        negative = np.array_equal(plain, train(library, -1)[0])
    except AssertionError as error:
        negative = type(error).__name__
    documented = "Clipping parameter for the value function" in inspect.getdoc(library.PPO)
    name = library.__name__
    print(f"{name}: documented {documented}, the same {np.array_equal(plain, clipped)}, logged {logged}, with -1 {negative}")
PY
env/bin/python clip.py | tee seen
diff seen - <<'EXPECTED'
stable_baselines3: documented True, the same False, logged True, with -1 AssertionError
sbx: documented True, the same True, logged False, with -1 True
EXPECTED
