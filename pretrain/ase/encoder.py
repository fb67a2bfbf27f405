"""The skill objective: the motion identifies its skill, and different skills move differently.

(ASE, Peng et al. 2022: encoder eq. 11, its reward eq. 13, diversity eq. 15.)
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import normalize

from pretrain.ase.latents import sample_on_sphere
from pretrain.ase.reference_windows import ReferenceWindows
from pretrain.rl.adam import Adam
from pretrain.rl.gradient_steps import GradientSteps
from pretrain.rl.iteration import Reward
from pretrain.rl.learner import check_finite
from pretrain.rl.mirror import Reflection
from pretrain.rl.nets import GaussianPolicy, Normalizer, mlp
from pretrain.rl.ppo import Loss, Metrics, Surrogate
from pretrain.rl.rollout import Batch, Rollout

WINDOWS_PER_SIDE = 4  # windows of each clip on either side of the contrastive loss
JITTER = 0.1  # of the std of each feature
TEMPERATURE = 0.2
MAX_ENCODED = 65_536  # windows per pass; an hour of clips would need gigabytes


class Encoder(nn.Module):
    """Style window -> point on the unit sphere, (..., W * F) -> (..., D)."""

    clip_latents: Tensor

    def __init__(
        self,
        norm: Normalizer,
        hidden: tuple[int, ...],
        latent_dim: int,
        num_clips: int,
        *,
        rng: Generator,
        mirrored: Reflection | None = None,
    ):
        super().__init__()
        self.norm = norm
        self.latent_dim = latent_dim
        self.body = mlp([len(norm.mean), *hidden, latent_dim], rng=rng, mirrored=mirrored)
        # (C, D) the latent of each clip: random, set by the warm start, then fixed
        self.register_buffer("clip_latents", sample_on_sphere(num_clips, latent_dim, rng))

    def forward(self, window: Tensor) -> Tensor:
        return normalize(self.body(self.norm(window)), dim=-1)


def skill_reward(net: Encoder, least: float) -> Reward:
    """<z, enc(window)>, in [`least`, 1]: the log-likelihood of z under a von Mises-Fisher
    distribution around the encoding."""

    def reward(rollout: Rollout) -> Tensor:
        with torch.no_grad():
            cosine = (net(rollout.extras["window"]) * rollout.obs["z"]).sum(-1)
        return cosine.clamp_min(least) if least > -1 else cosine

    return reward


def encoder_loss(
    net: Encoder,
    demos: ReferenceWindows,
    *,
    weight: float,
    anchor_weight: float,
    uniformity_weight: float = 0.0,
) -> Loss:
    """Predict z from the character's windows; with `anchor_weight`, keep each clip's windows at its
    latent; with `uniformity_weight`, spread the embeddings of both.

    Trained on the character's windows alone, the encoder no longer embeds the clips apart
    (docs/training.md)."""

    def loss(batch: Batch, rng: Generator) -> tuple[Tensor, Metrics]:
        codes = net(batch["window"])
        agreement = (codes * batch["z"]).sum(-1).mean()
        if anchor_weight == 0 and uniformity_weight == 0:
            return -weight * agreement, {"enc_agreement": agreement}
        rows = torch.randint(len(demos.windows), (len(batch["z"]),), generator=rng)
        clip_codes = net(demos.windows.index_select(0, rows))
        anchoring = (clip_codes * net.clip_latents[demos.clip[rows]]).sum(-1).mean()
        total = -weight * (agreement + anchor_weight * anchoring)
        metrics = {"enc_agreement": agreement, "enc_anchoring": anchoring}
        if uniformity_weight:
            uniformity = measure_uniformity(torch.cat([codes, clip_codes]))
            total = total + weight * uniformity_weight * uniformity
            metrics["enc_uniformity"] = uniformity
        return total, metrics

    return loss


def measure_uniformity(codes: Tensor) -> Tensor:
    """log mean exp(-|a - b|^2) over all pairs of unit vectors (n, D), pairs of the same included: 0
    where all are the same, lower the more evenly they cover the sphere. (Wang and Isola 2020, with
    t = 1 as in ProtoMotions.)"""
    squared_distances = 2 - 2 * codes @ codes.T
    return (-squared_distances).exp().mean().log()


def with_diversity_loss(
    policy: GaussianPolicy, surrogate: Surrogate, *, weight: float, target: float, share: float
) -> Loss:
    """`surrogate` and, on a `share` of the rows, the diversity loss: the difference of mean actions
    under two latents should be proportional to the latents' distance."""

    def loss(batch: Batch, rng: Generator) -> tuple[Tensor, Metrics]:
        obs = batch["obs"]
        z = batch["z"]
        num_rows = max(1, int(len(z) * share))
        other_z = sample_on_sphere(num_rows, z.shape[-1], rng)
        # both in one pass through the layers
        means = policy({"obs": torch.cat([obs, obs[:num_rows]]), "z": torch.cat([z, other_z])})
        mean, other_mean = means.split([len(z), num_rows])
        total, metrics = surrogate(mean, batch)
        difference = (mean[:num_rows] - other_mean).square().mean(-1)
        distance = 0.5 * (1 - (z[:num_rows] * other_z).sum(-1))
        diversity = (target - difference / (distance + 1e-5)).square().mean()
        return total + weight * diversity, {**metrics, "diversity": diversity}

    return loss


def warm_encoder(
    net: Encoder, demos: ReferenceWindows, steps: int, lr: float, rng: Generator
) -> float:
    """Spread the clips over the sphere before any simulation: windows of one clip together, of
    others apart.

    The loss is contrastive: each window is matched with another one of its clip in the batch
    (InfoNCE, van den Oord et al. 2018), so that similar clips stay close. The clips' mean
    embeddings are written to `clip_latents`. Returns the last loss; raises Diverged if it is not
    finite."""
    optimizer = Adam(net.parameters(), lr)
    num_clips = len(demos.counts)
    members = [(demos.clip == clip).nonzero()[:, 0] for clip in range(num_clips)]
    loss = torch.zeros(())
    for _ in range(steps):
        indices = [
            rows[torch.randint(len(rows), (2 * WINDOWS_PER_SIDE,), generator=rng)]
            for rows in members
        ]
        pairs = torch.stack(indices)  # (C, 2 WINDOWS_PER_SIDE)
        windows = demos.windows[pairs.flatten()]
        noise = JITTER * net.norm.std * torch.randn(windows.shape, generator=rng)
        code = net(windows + noise).view(num_clips, 2, WINDOWS_PER_SIDE, -1)
        first = code[:, 0].flatten(0, 1)
        second = code[:, 1].flatten(0, 1)
        of_clip = torch.arange(len(first)) // WINDOWS_PER_SIDE * WINDOWS_PER_SIDE
        match = of_clip + torch.randint(WINDOWS_PER_SIDE, (len(first),), generator=rng)
        loss = nn.functional.cross_entropy(first @ second.T / TEMPERATURE, match)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    last = check_finite("the encoder's warm start", loss.detach())
    net.clip_latents.copy_(embed_clips(net, demos))
    return last


def fit_encoder(
    net: Encoder, demos: ReferenceWindows, config: GradientSteps, rng: Generator
) -> float:
    """Fit the embeddings of each clip's windows to its latent in `clip_latents`. Returns the last
    loss; raises Diverged if it is not finite."""
    optimizer = Adam(net.parameters(), config.lr)
    loss = torch.zeros(())
    for _ in range(config.steps):
        clips = torch.randint(len(demos.counts), (config.batch,), generator=rng)
        windows = demos.sample(clips, rng)
        noise = JITTER * net.norm.std * torch.randn(windows.shape, generator=rng)
        loss = -(net(windows + noise) * net.clip_latents[clips]).sum(-1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return check_finite("the encoder's fit to the latents", loss.detach())


@torch.no_grad()
def embed_clips(net: Encoder, demos: ReferenceWindows) -> Tensor:
    """Each clip's pooled embedding: the direction of its windows' mean encoding, (C, D)."""
    codes = torch.cat([net(block) for block in demos.windows.split(MAX_ENCODED)])
    totals = torch.zeros(len(demos.counts), codes.shape[-1]).index_add(0, demos.clip, codes)
    return normalize(totals, dim=-1)
