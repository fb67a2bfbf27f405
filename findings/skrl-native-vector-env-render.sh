#!/usr/bin/env bash
# skrl 2.1.1: its trainers stop at the first step on a native gymnasium VectorEnv, unless `headless` is true.
#
# By default a trainer draws every step, and skrl's wrapper asks a vector environment for it by `call("render")`. Only
# SyncVectorEnv and AsyncVectorEnv have `call`: gymnasium's base class VectorEnv does not, nor do the native environments
# that come with gymnasium itself, though they have `render`.
#
# Seen (gymnasium 1.4.0, torch 2.13.0, Python 3.11, Linux), CartPole-v1 for three steps:
#   SyncVectorEnv, default              trained
#   CartPoleVectorEnv, default          AttributeError: 'CartPoleVectorEnv' object has no attribute 'call'
#   CartPoleVectorEnv, headless=True    trained
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'skrl==2.1.1' 'gymnasium==1.4.0' 'torch==2.13.0'

cat > train.py <<'PY'
import sys
import warnings

warnings.simplefilter("ignore")

import gymnasium
from skrl.agents.torch.ppo import PPO
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.trainers.torch import SequentialTrainer
from skrl.utils.model_instantiators.torch import categorical_model, deterministic_model

mode, headless = sys.argv[1], sys.argv[2] == "headless"
envs = gymnasium.make_vec("CartPole-v1", num_envs=2, vectorization_mode=mode)
env = wrap_env(envs)
spaces = {"observation_space": env.observation_space, "action_space": env.action_space}
layers = [{"name": "net", "input": "OBSERVATIONS", "layers": [8], "activations": "elu"}]
models = {
    "policy": categorical_model(**spaces, network=layers, output="ACTIONS"),
    "value": deterministic_model(**spaces, network=layers, output="ONE"),
}
logs = {"write_interval": 0, "checkpoint_interval": 0}
memory = RandomMemory(memory_size=16, num_envs=2)
agent = PPO(models=models, memory=memory, cfg={"experiment": logs}, **spaces)
cfg = {"timesteps": 3, "disable_progressbar": True, "close_environment_at_exit": False}
if headless:
    cfg["headless"] = True
name = f"{type(envs.unwrapped).__name__}, {sys.argv[2]}"
try:
    SequentialTrainer(env=env, agents=agent, cfg=cfg).train()
except AttributeError as error:
    print(f"{name}: {type(error).__name__}: {error}")
else:
    print(f"{name}: trained")
PY

train() {
    env/bin/python train.py "$@" 2> errors
}

train sync default | tee seen
train vector_entry_point default | tee -a seen
train vector_entry_point headless | tee -a seen
diff seen - <<'EXPECTED'
SyncVectorEnv, default: trained
CartPoleVectorEnv, default: AttributeError: 'CartPoleVectorEnv' object has no attribute 'call'
CartPoleVectorEnv, headless: trained
EXPECTED
