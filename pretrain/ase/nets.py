"""The four networks of ASE, with inputs normalized by statistics of the clips."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Generator, Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from pretrain.ase.discriminator import Discriminator
from pretrain.ase.encoder import Encoder
from pretrain.ase.reference_windows import ReferenceWindows, window_normalizer
from pretrain.ase.symmetry import Symmetry
from pretrain.characters.state import unflatten
from pretrain.motion.library import MotionLibrary
from pretrain.rl.mirror import make_identity_mirror
from pretrain.rl.nets import GaussianPolicy, Inputs, Value, make_fixed_normalizer, mlp
from pretrain.sim.env import ActionScale
from pretrain.sim.features import proprioception


@dataclass(frozen=True)
class SkillNets:
    """pi(a|s,z), V(s,z), the discriminator, q(z|window), and the action scale.

    The running average of the policy's weights is published, not the last iteration's: from one
    iteration to the next, the policy loses and regains single clips."""

    policy: GaussianPolicy
    average: AveragedModel
    value: Value
    discriminator: Discriminator
    encoder: Encoder
    action_scale: ActionScale

    def modules(self) -> dict[str, nn.Module]:
        learning = {
            "policy": self.policy,
            "value": self.value,
            "disc": self.discriminator,
            "enc": self.encoder,
        }
        return {**learning, "average": self.average}

    def state(self) -> dict[str, dict[str, Tensor]]:
        """All weights and buffers, by network."""
        return {name: net.state_dict() for name, net in self.modules().items()}


@dataclass(frozen=True)
class Sizes:
    """Units of the networks' hidden layers, and sizes of their inputs."""

    latent_dim: int
    policy: tuple[int, ...]
    value: tuple[int, ...]
    disc: tuple[int, ...]
    enc: tuple[int, ...]
    action_std: float
    average_decay: float  # per iteration, of the averaged policy weights
    privileged: int = 0  # size of the privileged observation, an input of the value net alone
    conditional: bool = True  # the discriminator has the clip's code
    num_values: int = 1  # outputs of the value net


def make_nets(
    sizes: Sizes,
    library: MotionLibrary,
    demos: ReferenceWindows,
    num_hinges: int,
    *,
    symmetry: Symmetry,
    rng: Generator,
) -> SkillNets:
    """Fresh networks. Normalizers are fixed by the clips, so inputs do not shift in training.

    The value net may have privileged inputs, which the policy lacks. (Pinto et al. 2017,
    "Asymmetric actor critic for image-based robot learning".)"""
    clip_obs = proprioception(unflatten(library.frames))
    inputs_size = clip_obs.shape[-1] + sizes.latent_dim
    obs = make_fixed_normalizer(clip_obs)

    def inputs(**more: nn.Module) -> Inputs:
        return Inputs({"obs": obs, "z": nn.Identity(), **more})

    policy_sizes = [inputs_size, *sizes.policy, num_hinges]
    body = mlp(policy_sizes, last_scale=0.1, rng=rng, mirrored=symmetry.policy)
    policy = GaussianPolicy(inputs(), body, sizes.action_std)
    privileged = {"privileged": nn.Identity()} if sizes.privileged else {}
    value_sizes = [inputs_size + sizes.privileged, *sizes.value, sizes.num_values]
    reflected = None
    if symmetry.value is not None:
        reflected = symmetry.value, make_identity_mirror(sizes.num_values)
    value_body = mlp(value_sizes, rng=rng, mirrored=reflected)
    return SkillNets(
        policy=policy,
        average=AveragedModel(policy, multi_avg_fn=get_ema_multi_avg_fn(sizes.average_decay)),
        value=Value(inputs(**privileged), value_body, sizes.num_values),
        discriminator=_make_discriminator(sizes, demos, symmetry, rng),
        encoder=_make_encoder(sizes, demos, symmetry, rng),
        action_scale=ActionScale.from_library(library),
    )


def _make_discriminator(
    sizes: Sizes, demos: ReferenceWindows, symmetry: Symmetry, rng: Generator
) -> Discriminator:
    mirrored = symmetry.discriminator
    return Discriminator(demos, sizes.disc, rng, mirrored=mirrored, conditional=sizes.conditional)


def _make_encoder(
    sizes: Sizes, demos: ReferenceWindows, symmetry: Symmetry, rng: Generator
) -> Encoder:
    norm = window_normalizer(demos)
    clips = len(demos.counts)
    return Encoder(norm, sizes.enc, sizes.latent_dim, clips, rng=rng, mirrored=symmetry.encoder)
