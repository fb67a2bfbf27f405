"""The learners of a policy and of its value net, from the group `ppo` of a configuration."""

from __future__ import annotations

from pretrain.rl.adam import Adam
from pretrain.rl.learner import Learner
from pretrain.rl.nets import GaussianPolicy, Value
from pretrain.rl.ppo import FOR_POLICY, FOR_VALUE, Loss, value_loss
from pretrain.rl.ppo_config import PPOConfig


def make_policy_learner(
    ppo: PPOConfig, policy: GaussianPolicy, loss: Loss, keys: tuple[str, ...] = ()
) -> Learner:
    """Of `policy` under `loss`, which reads `keys` of the batch besides those of a policy."""
    return Learner(
        "policy",
        (*policy.inputs.names, *FOR_POLICY, *keys),
        loss,
        Adam(policy.parameters(), ppo.lr),
        ppo.epochs,
        ppo.minibatch,
        target_kl=ppo.target_kl,
    )


def make_value_learner(ppo: PPOConfig, value: Value) -> Learner:
    return Learner(
        "value",
        (*value.inputs.names, *FOR_VALUE),
        value_loss(value),
        Adam(value.parameters(), ppo.value_lr),
        ppo.value_epochs,
        ppo.value_minibatch,
    )
