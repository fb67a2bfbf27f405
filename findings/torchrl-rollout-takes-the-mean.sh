#!/usr/bin/env bash
# torchrl 0.14.1: env.rollout takes the mean of a ProbabilisticActor's distribution, a Collector samples from it.
#
# A ProbabilisticActor has a distribution, so one would guess that a call samples. Outside of set_exploration_type it
# takes the mean, and so does env.rollout; a Collector, given the same actor and environment, sets the type to RANDOM and
# samples. A loop that gathers its experience with env.rollout explores nothing, and the score of a policy measured by
# env.rollout is that of another policy than the Collector ran. default_interaction_type=RANDOM of the actor makes both
# sample.
#
# Seen (Python 3.11, Linux), of two episodes from the same state, whether their actions are the same, and the mean's:
#   env.rollout                                    same        the mean's
#   env.rollout in set_exploration_type(RANDOM)    different   not the mean's
#   Collector                                      different   not the mean's
#   env.rollout, default_interaction_type=RANDOM   different   not the mean's
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'torchrl==0.14.1' 'tensordict==0.14.3' 'torch==2.13.0' 'numpy==2.4.6'

cat > actions.py <<'PY'
import torch
from tensordict import TensorDict
from tensordict.nn import NormalParamExtractor, TensorDictModule
from torchrl.collectors import Collector
from torchrl.data import Composite, Unbounded
from torchrl.envs import EnvBase
from torchrl.envs.utils import ExplorationType, set_exploration_type
from torchrl.modules import ProbabilisticActor

STEPS = 5


class Joint(EnvBase):
    """A joint whose angle grows by the action, always at 0 at first."""

    def __init__(self):
        super().__init__()
        self.observation_spec = Composite(angle=Unbounded(1))
        self.action_spec = Unbounded(1)
        self.reward_spec = Unbounded(1)

    def _reset(self, tensordict):
        return TensorDict({"angle": torch.zeros(1)})

    def _step(self, tensordict):
        angle = tensordict["angle"] + tensordict["action"]
        done = torch.zeros(1, dtype=torch.bool)
        return TensorDict({"angle": angle, "reward": -angle.abs(), "done": done})

    def _set_seed(self, seed):
        pass


def actor(**arguments):
    """An actor with a normal distribution whose mean and deviation a linear layer gives."""
    torch.manual_seed(0)
    layers = torch.nn.Sequential(torch.nn.Linear(1, 2), NormalParamExtractor())
    parameters = TensorDictModule(layers, ["angle"], ["loc", "scale"])
    return ProbabilisticActor(
        parameters, ["loc", "scale"], distribution_class=torch.distributions.Normal, **arguments
    )


def rollouts(policy):
    """Two episodes by env.rollout."""
    return [Joint().rollout(STEPS, policy) for _ in range(2)]


def collected(policy):
    """Two episodes by a Collector."""
    collector = Collector(
        Joint,
        policy,
        frames_per_batch=STEPS,
        total_frames=2 * STEPS,
        max_frames_per_traj=STEPS,
        auto_register_policy_transforms=False,
    )
    episodes = [batch.clone() for batch in collector]
    collector.shutdown()
    return episodes


def show(name, episodes):
    """Print whether two episodes have the same actions, and whether these are the means."""
    first, second = episodes
    assert first["angle"][0] == second["angle"][0] == 0
    same = torch.equal(first["action"], second["action"])
    means = torch.equal(first["action"], first["loc"])
    print(f"{name}: {'same' if same else 'different'}, {'' if means else 'not '}the mean's")


show("env.rollout", rollouts(actor()))
with set_exploration_type(ExplorationType.RANDOM):
    show("set_exploration_type", rollouts(actor()))
show("Collector", collected(actor()))
show("default_interaction_type", rollouts(actor(default_interaction_type=ExplorationType.RANDOM)))
PY
env/bin/python actions.py | tee seen
diff seen - <<'EXPECTED'
env.rollout: same, the mean's
set_exploration_type: different, not the mean's
Collector: different, not the mean's
default_interaction_type: different, not the mean's
EXPECTED
