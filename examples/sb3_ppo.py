"""Reach with Stable-Baselines3: python examples/sb3_ppo.py"""

import gymnasium
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecMonitor

from hlc.gym import SkillVectorEnv
from hlc.gym.sb3_env import Sb3VecEnv


def train(envs: SkillVectorEnv, decisions: int) -> PPO:
    worlds = VecMonitor(Sb3VecEnv(envs))  # reports returns and successes
    model = PPO("MlpPolicy", worlds, n_steps=8, batch_size=512, gamma=0.95, verbose=1)
    return model.learn(decisions)


if __name__ == "__main__":
    worlds = gymnasium.make_vec(
        "repertoire/Reach-v0", num_envs=256, skill="humanoid@1", autoreset_mode="SameStep"
    )
    assert isinstance(worlds, SkillVectorEnv)
    train(worlds, 200_000)
