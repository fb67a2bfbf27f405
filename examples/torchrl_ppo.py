"""Reach with torchrl: python examples/torchrl_ppo.py"""

import gymnasium
import torch
from tensordict.nn import NormalParamExtractor, TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.envs import GymWrapper
from torchrl.modules import MLP, ProbabilisticActor, TanhNormal, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE


def train(envs: gymnasium.vector.VectorEnv, decisions: int) -> nn.Module:
    env = GymWrapper(envs)
    dim = env.action_spec.shape[-1]
    net = nn.Sequential(MLP(out_features=2 * dim, num_cells=[256, 256]), NormalParamExtractor())
    params = TensorDictModule(net, in_keys=["observation"], out_keys=["loc", "scale"])
    keys = ["loc", "scale"]
    actor = ProbabilisticActor(
        params, in_keys=keys, distribution_class=TanhNormal, return_log_prob=True
    )
    value = ValueOperator(MLP(out_features=1, num_cells=[256, 256]), in_keys=["observation"])
    actor(value(env.reset()))  # sizes the layers
    loss = ClipPPOLoss(actor, value)
    advantage = GAE(gamma=0.95, lmbda=0.95, value_network=value)
    optimizer = torch.optim.Adam(loss.parameters(), 3e-4)
    frames = 8 * env.batch_size[0]
    for batch in Collector(env, actor, frames_per_batch=frames, total_frames=decisions):
        for _ in range(5):
            advantage(batch)
            for rows in batch.flatten().split(512):
                losses = loss(rows)
                optimizer.zero_grad()
                sum(x for name, x in losses.items() if name.startswith("loss_")).backward()
                optimizer.step()
        print(f"mean reward {batch['next', 'reward'].mean():.3f}")
    return actor


if __name__ == "__main__":
    settings = {"skill": "humanoid@1", "autoreset_mode": "SameStep"}
    train(gymnasium.make_vec("hlc.gym:repertoire/Reach-v0", 256, **settings), 200_000)
