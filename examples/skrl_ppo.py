"""Reach with skrl: python examples/skrl_ppo.py"""

import gymnasium
from skrl.agents.torch.ppo import PPO
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.trainers.torch import SequentialTrainer
from skrl.utils.model_instantiators.torch import deterministic_model, gaussian_model

HORIZON = 8  # decisions of each world per update


def train(envs: gymnasium.vector.VectorEnv, decisions: int) -> PPO:
    env = wrap_env(envs)
    spaces = {"observation_space": env.observation_space, "action_space": env.action_space}
    layers = {"name": "net", "input": "OBSERVATIONS", "layers": [256, 256], "activations": "elu"}
    models = {
        "policy": gaussian_model(**spaces, network=[layers], output="ACTIONS"),
        "value": deterministic_model(**spaces, network=[layers], output="ONE"),
    }
    cfg = {"rollouts": HORIZON, "discount_factor": 0.95, "time_limit_bootstrap": True}
    memory = RandomMemory(memory_size=HORIZON, num_envs=env.num_envs)
    agent = PPO(models=models, memory=memory, cfg=cfg, **spaces)
    trainer = {"timesteps": decisions // env.num_envs, "headless": True}
    trainer["close_environment_at_exit"] = False
    SequentialTrainer(env=env, agents=agent, cfg=trainer).train()
    return agent


if __name__ == "__main__":
    train(gymnasium.make_vec("hlc.gym:repertoire/Reach-v0", 256, skill="humanoid@1"), 200_000)
