"""PPO learners of a policy and of its value net, for controllers and AMP."""

from __future__ import annotations

from hlc.config import ControllerPPOConfig
from pretrain.rl.adam import Adam
from pretrain.rl.learner import Learner
from pretrain.rl.nets import GaussianPolicy, Value
from pretrain.rl.ppo import FOR_POLICY, FOR_VALUE, clipped_surrogate, policy_loss, value_loss


def make_policy_learner(ppo: ControllerPPOConfig, policy: GaussianPolicy) -> Learner:
    surrogate = clipped_surrogate(policy, ppo.clip, ppo.action_bound, ppo.action_bound_weight)
    return Learner(
        "policy",
        (*policy.inputs.names, *FOR_POLICY),
        policy_loss(policy, surrogate),
        Adam(policy.parameters(), ppo.lr),
        ppo.epochs,
        ppo.minibatch,
        target_kl=ppo.target_kl,
    )


def make_value_learner(ppo: ControllerPPOConfig, value: Value) -> Learner:
    names = (*value.inputs.names, *FOR_VALUE)
    optimizer = Adam(value.parameters(), ppo.value_lr)
    return Learner("value", names, value_loss(value), optimizer, ppo.epochs, ppo.minibatch)
