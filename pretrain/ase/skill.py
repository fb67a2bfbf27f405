"""The skill objective: motion should tell which skill it is, and different skills should move differently.

(ASE, Peng et al. 2022: encoder eq. 11, its reward eq. 13, diversity eq. 15.)
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import normalize

from pretrain.ase.latents import sphere
from pretrain.ase.style import Demos
from pretrain.rl.learner import finite
from pretrain.rl.loop import Reward
from pretrain.rl.mirror import Reflection
from pretrain.rl.nets import GaussianPolicy, Normalizer, mlp
from pretrain.rl.ppo import Loss, Metrics, Surrogate
from pretrain.rl.rollout import Batch, Rollout

DIVERSE = 8  # one row in so many is looked at under another latent, too
VIEWS = 4  # windows of each clip on either side of the contrast
JITTER = 0.1  # of the spread of each feature
TEMPERATURE = 0.2


class Encoder(nn.Module):
    """Style window -> point on the unit sphere, (..., W * F) -> (..., D)."""

    clip_latents: Tensor

    def __init__(
        self,
        norm: Normalizer,
        hidden: tuple[int, ...],
        latent_dim: int,
        clips: int,
        rng: Generator,
        mirrored: Reflection | None = None,
    ):
        super().__init__()
        self.norm, self.latent_dim = norm, latent_dim
        self.body = mlp([len(norm.mean), *hidden, latent_dim], rng=rng, mirrored=mirrored)
        # (C, D) where each clip lies: drawn anywhere, placed by the warm start, and held to from then on
        self.register_buffer("clip_latents", sphere(clips, latent_dim, rng))

    def forward(self, window: Tensor) -> Tensor:
        return normalize(self.body(self.norm(window)), dim=-1)


def skill_reward(net: Encoder) -> Reward:
    """<z, enc(window)>: the log-likelihood of z under a von Mises-Fisher distribution around the encoding, in [-1, 1]."""

    def reward(rollout: Rollout) -> Tensor:
        with torch.no_grad():
            return (net(rollout.extras["window"]) * rollout.obs["z"]).sum(-1)

    return reward


def encoder_loss(net: Encoder, demos: Demos) -> Loss:
    """Tell z from what the character did, and keep the clips where they lie.

    Learning from the character alone, the encoder forgets the clips, and their embeddings run together (docs/training.md).
    """

    def loss(batch: Batch, rng: Generator) -> tuple[Tensor, Metrics]:
        agreement = (net(batch["window"]) * batch["z"]).sum(-1).mean()
        rows = torch.randint(len(demos.windows), (len(batch["z"]),), generator=rng)
        anchored = (net(demos.windows.index_select(0, rows)) * net.clip_latents[demos.clip[rows]]).sum(-1).mean()
        return -agreement - anchored, {"enc_agreement": agreement, "enc_anchored": anchored}

    return loss


def diverse_loss(policy: GaussianPolicy, surrogate: Surrogate, weight: float, target: float) -> Loss:
    """`surrogate`, and the diversity term: mean actions move apart in proportion to how far apart the skills are."""

    def loss(batch: Batch, rng: Generator) -> tuple[Tensor, Metrics]:
        obs, z = batch["obs"], batch["z"]
        some = max(1, len(z) // DIVERSE)
        other = sphere(some, z.shape[-1], rng)
        means = policy({"obs": torch.cat([obs, obs[:some]]), "z": torch.cat([z, other])})  # once through the layers
        mean, elsewhere = means.split([len(z), some])
        total, metrics = surrogate(mean, batch)
        apart = (mean[:some] - elsewhere).square().mean(-1)
        distance = 0.5 * (1 - (z[:some] * other).sum(-1))
        diversity = (target - apart / (distance + 1e-5)).square().mean()
        return total + weight * diversity, {**metrics, "diversity": diversity}

    return loss


def warm_encoder(net: Encoder, demos: Demos, steps: int, lr: float, rng: Generator) -> float:
    """Spread the clips over the sphere before any simulation: windows of one clip together, of others apart.

    Contrastive: two windows of a clip are each other's answer among those of a batch (InfoNCE, van den Oord et al. 2018),
    so clips that look alike stay neighbours. Where they have come to lie is noted in `clip_latents`. Returns the last loss;
    Diverged if it is not finite.
    """
    optimizer = torch.optim.Adam(net.parameters(), lr)
    clips = len(demos.counts)
    members = [(demos.clip == c).nonzero()[:, 0] for c in range(clips)]
    loss = torch.zeros(())
    for _ in range(steps):
        pairs = torch.stack([m[torch.randint(len(m), (2 * VIEWS,), generator=rng)] for m in members])  # (C, 2 VIEWS)
        windows = demos.windows[pairs.flatten()]
        noise = JITTER * net.norm.std * torch.randn(windows.shape, generator=rng)
        code = net(windows + noise).view(clips, 2, VIEWS, -1)
        first, second = code[:, 0].flatten(0, 1), code[:, 1].flatten(0, 1)
        loss = nn.functional.cross_entropy(
            first @ second.T / TEMPERATURE,
            torch.arange(len(first)) // VIEWS * VIEWS + torch.randint(VIEWS, (len(first),), generator=rng),
        )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    warmed = finite("the encoder's warm start", loss.detach())
    net.clip_latents.copy_(embed_clips(net, demos))
    return warmed


@torch.no_grad()
def embed_clips(net: Encoder, demos: Demos) -> Tensor:
    """Each clip's pooled embedding: the direction of its windows' mean encoding, (C, D)."""
    codes = net(demos.windows)
    return normalize(torch.zeros(len(demos.counts), codes.shape[-1]).index_add(0, demos.clip, codes), dim=-1)
