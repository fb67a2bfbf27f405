"""The four networks of ASE, built from what the clips say of their inputs."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Generator, Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from pretrain.ase.skill import Encoder
from pretrain.ase.style import Demos, Discriminator, window_normalizer
from pretrain.ase.symmetry import Symmetry
from pretrain.characters.state import unflat
from pretrain.motion.library import MotionLibrary
from pretrain.rl.nets import GaussianPolicy, Inputs, Normalizer, Value, mlp
from pretrain.sim.env import ActionScale
from pretrain.sim.features import proprioception


@dataclass(frozen=True)
class SkillNets:
    """pi(a|s,z), V(s,z), the discriminator, q(z|window), and what an action means.

    What is published is not the policy of the last iteration but the running average of its weights: from one iteration to
    the next, clips come and go (docs/training.md).
    """

    policy: GaussianPolicy
    average: AveragedModel
    value: Value
    discriminator: Discriminator
    encoder: Encoder
    action_scale: ActionScale

    def modules(self) -> dict[str, nn.Module]:
        learning = {"policy": self.policy, "value": self.value, "disc": self.discriminator, "enc": self.encoder}
        return {**learning, "average": self.average}

    def state(self) -> dict[str, dict[str, Tensor]]:
        """All weights and buffers, by network."""
        return {name: net.state_dict() for name, net in self.modules().items()}


@dataclass(frozen=True)
class Sizes:
    latent_dim: int
    policy: tuple[int, ...]
    value: tuple[int, ...]
    disc: tuple[int, ...]
    enc: tuple[int, ...]
    action_std: float
    average_decay: float  # of the average of the policy's weights, an iteration
    privileged: int = 0  # numbers of the privileged observation, which only the value net has


def make_nets(
    sizes: Sizes, library: MotionLibrary, demos: Demos, num_hinges: int, symmetry: Symmetry, rng: Generator
) -> SkillNets:
    """Fresh networks. Normalisers are fixed by the clips, so that nothing shifts while the networks learn.

    The value net may be told more than the policy, which has to do without it once it is published. (Pinto et al. 2017,
    "Asymmetric actor critic for image-based robot learning".)
    """
    seen = proprioception(unflat(library.frames))
    inputs_size = seen.shape[-1] + sizes.latent_dim
    # 0.1: what hardly varies in the clips (a wrist at rest) must not turn into a huge input when it does in simulation
    obs = Normalizer(seen.mean(0), seen.std(0).clamp_min(0.1))

    def inputs(**more: nn.Module) -> Inputs:
        return Inputs({"obs": obs, "z": nn.Identity(), **more})

    window, clips = window_normalizer(demos), len(library.names)
    body = mlp([inputs_size, *sizes.policy, num_hinges], last_scale=0.1, rng=rng, mirrored=symmetry.policy)
    policy = GaussianPolicy(inputs(), body, sizes.action_std)
    told = {"privileged": nn.Identity()} if sizes.privileged else {}
    judge = mlp([inputs_size + sizes.privileged, *sizes.value, 1], rng=rng, mirrored=symmetry.value)
    return SkillNets(
        policy=policy,
        average=AveragedModel(policy, multi_avg_fn=get_ema_multi_avg_fn(sizes.average_decay)),
        value=Value(inputs(**told), judge),
        discriminator=Discriminator(demos, sizes.disc, rng, symmetry.discriminator),
        encoder=Encoder(window, sizes.enc, sizes.latent_dim, clips, rng, symmetry.encoder),
        action_scale=ActionScale.of(library),
    )
