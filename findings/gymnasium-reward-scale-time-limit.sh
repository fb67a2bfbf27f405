#!/usr/bin/env bash
# gymnasium 1.4.0: NormalizeReward adds up the rewards of episodes that a time limit ends, over all of them.
#
# It divides a reward by the deviation of a discounted sum that begins anew where an episode terminates, but not where it
# is truncated, nor at reset(). So the same rewards come out far smaller where episodes end by a time limit, and their
# scale moves with the share of those that do. The wrapper for vector environments does so in the autoreset mode
# NEXT_STEP, its default, but not in SAME_STEP: the choice of the mode alone changes the rewards.
#
# Seen (Python 3.11, Linux), of the reward 1 in episodes of 5 steps, gamma 0.99, after 300 episodes:
#   one environment, terminated        0.725
#   one environment, truncated         0.059
#   vector, NEXT_STEP, terminated      0.725
#   vector, NEXT_STEP, truncated       0.059
#   vector, SAME_STEP, terminated      0.874
#   vector, SAME_STEP, truncated       0.725
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'gymnasium==1.4.0' 'numpy==2.4.6'

cat > scale.py <<'PY'
import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import NormalizeReward
from gymnasium.wrappers.vector import NormalizeReward as NormalizeRewards


class FiveSteps(gymnasium.Env):
    """Five steps of reward 1, at whose end the episode is `terminated` or else truncated."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, terminated):
        self.terminated = terminated

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.steps += 1
        over = self.steps == 5
        return np.zeros(1, np.float32), 1.0, over and self.terminated, over and not self.terminated, {}


def scale(terminated):
    env = NormalizeReward(FiveSteps(terminated), gamma=0.99)
    for _ in range(300):
        env.reset()
        rewards = [env.step(0)[1] for _ in range(5)]
    return rewards[-1]


def scale_vector(terminated, mode):
    envs = NormalizeRewards(SyncVectorEnv([lambda: FiveSteps(terminated)], autoreset_mode=mode), gamma=0.99)
    envs.reset()
    episodes = 0
    while episodes < 300:
        _, rewards, *ends, _ = envs.step(np.zeros(1, int))
        episodes += int(np.any(ends))
    return rewards[0]


ends = {"terminated": True, "truncated": False}
for end, terminated in ends.items():
    print(f"one environment, {end}: {scale(terminated):.3f}")
for mode in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
    for end, terminated in ends.items():
        print(f"vector, {mode.name}, {end}: {scale_vector(terminated, mode):.3f}")
PY
env/bin/python scale.py | tee seen
diff seen - <<'EXPECTED'
one environment, terminated: 0.725
one environment, truncated: 0.059
vector, NEXT_STEP, terminated: 0.725
vector, NEXT_STEP, truncated: 0.059
vector, SAME_STEP, terminated: 0.874
vector, SAME_STEP, truncated: 0.725
EXPECTED
