"""The style prior: a discriminator between the clips' windows and the character's. (AMP, Peng et
al. 2021, section 5.)

It is conditional, as in CALM (Tessler et al. 2023): a latent is assigned to the clip whose latent
is nearest, and its windows are compared with that clip's alone. An unconditional discriminator
rewards any clip: one of two walks was performed twice, hard clips not at all. A reward for the
nearest window of the clip does not help, as a few frames satisfy it (docs/training.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import embedding, one_hot, softplus

from pretrain.ase.reference_windows import ReferenceWindows, window_normalizer
from pretrain.ase_config import DiscConfig
from pretrain.rl.adam import Adam
from pretrain.rl.iteration import Reward
from pretrain.rl.learner import Learner
from pretrain.rl.mirror import Reflection
from pretrain.rl.mirror_net import MirrorLinear, linear_layers
from pretrain.rl.nets import mlp
from pretrain.rl.ppo import Loss, Metrics
from pretrain.rl.replay import Replay
from pretrain.rl.rollout import Batch, Rollout

MAX_REWARD = 9.21  # -log(1e-4), before scaling


class Discriminator(nn.Module):
    """Logit of a style window being from a given clip, (..., W * F), (...) -> (...)."""

    CODE = 3.0  # value in the clip's one-hot code: as large as a window feature far from the mean
    BOUND = 8.0  # of a normalized feature

    centre: Tensor
    std: Tensor

    def __init__(
        self,
        demos: ReferenceWindows,
        hidden: tuple[int, ...],
        rng: Generator,
        *,
        mirrored: Reflection | None = None,
        conditional: bool = True,
    ):
        super().__init__()
        groups = demos.windows.split(demos.counts.tolist()) if conditional else (demos.windows,)
        centre = torch.stack([part.mean(0) for part in groups])
        self.conditional = conditional
        # (C, W * F) each clip's mean window; (1, W * F) without a condition
        self.register_buffer("centre", centre)
        self.register_buffer("std", window_normalizer(demos).std)  # (W * F) over all clips
        code = len(centre) if conditional else 0
        self.body = mlp([centre.shape[1] + code, *hidden, 1], rng=rng, mirrored=mirrored)

    def forward(self, window: Tensor, clip: Tensor) -> Tensor:
        return self.logit(self.norm(window, clip), clip)

    def norm(self, window: Tensor, clip: Tensor) -> Tensor:
        """The window's difference from the clip's mean, in units of the std over all clips.

        With the std within clips, which is smaller, balance is learned late."""
        group = clip if self.conditional else torch.zeros_like(clip)
        deviation = (window - embedding(group, self.centre)) / self.std
        return deviation.clamp(-self.BOUND, self.BOUND)

    def logit(self, normalized: Tensor, clip: Tensor) -> Tensor:
        """From windows normalized by `norm`, (..., W * F), (...) -> (...)."""
        if not self.conditional:
            return self.body(normalized).squeeze(-1)
        code = self.CODE * one_hot(clip, len(self.centre)).to(normalized)
        return self.body(torch.cat([normalized, code], -1)).squeeze(-1)

    def best_logit(self, window: Tensor) -> Tensor:
        """The largest logit over all clips, (B, W * F) -> (B)."""
        clips = torch.arange(len(self.centre)).expand(window.shape[0], -1)
        return self(window[:, None].expand(-1, len(self.centre), -1), clips).amax(-1)


def style_reward(net: Discriminator, scale: float) -> Reward:
    """`adversarial_reward` of the style window. (ASE eq. 13 as published in code.)"""

    def reward(rollout: Rollout) -> Tensor:
        with torch.no_grad():
            return adversarial_reward(
                net(rollout.extras["window"], rollout.extras["z_clip"]), scale
            )

    return reward


def adversarial_reward(logit: Tensor, scale: float) -> Tensor:
    """-log(1 - sigmoid(logit)) * scale, at most MAX_REWARD * scale, (...)."""
    return scale * softplus(logit).clamp_max(MAX_REWARD)


def make_replay(size: int, demos: ReferenceWindows) -> Replay:
    """An empty replay of the character's windows and their clips."""
    return Replay(size, windows=demos.windows[0], clips=demos.clip[0])


def make_disc_learner(
    disc: DiscConfig, net: Discriminator, demos: ReferenceWindows, replay: Replay
) -> Learner:
    return Learner(
        "disc",
        ("window", "z_clip"),
        disc_loss(net, demos, replay, disc),
        Adam(net.parameters(), disc.lr),
        epochs=1,
        minibatch=disc.minibatch,
        max_rows=disc.rows,
        observe=keep_windows(replay, disc),
    )


def keep_windows(replay: Replay, disc: DiscConfig) -> Callable[[Batch], None]:
    """Adds `disc_replay_samples` windows of each rollout to `replay`, spread over the
    minibatches."""

    def keep(batch: Batch) -> None:
        windows = batch["window"]
        num_kept = max(1, len(windows) * disc.disc_replay_samples // disc.rows)
        replay.add(windows=windows[:num_kept], clips=batch["z_clip"][:num_kept])

    return keep


def disc_loss(
    net: Discriminator, demos: ReferenceWindows, replay: Replay, disc: DiscConfig
) -> Loss:
    """Binary cross-entropy, the clips' windows against the character's new and replayed ones, with
    a gradient penalty at the clips' windows.

    (AMP eq. 8.) Gradients are taken at normalized inputs. Without a condition, the clips' windows
    are drawn by their durations."""

    def loss(batch: Batch, rng: Generator) -> tuple[Tensor, Metrics]:
        agent_windows = batch["window"]
        clips = batch["z_clip"]
        n = len(agent_windows)
        replayed = replay.sample(int(n * disc.replay_share), rng)
        agent = torch.cat([agent_windows, replayed["windows"]])
        agent_logit = net(agent, torch.cat([clips, replayed["clips"]]))
        # each clip as often as in the batch
        reference = demos.sample(clips, rng) if net.conditional else demos.sample_any(n, rng)
        demo_logit, penalty = logit_and_slope(
            lambda normalized: net.logit(normalized, clips), net.norm(reference, clips)
        )
        cross_entropy = 0.5 * (softplus(agent_logit).mean() + softplus(-demo_logit).mean())
        last = cast(nn.Linear | MirrorLinear, net.body[-1]).weight.square().sum()
        total = cross_entropy + disc.disc_grad_penalty * penalty + disc.disc_logit_reg * last
        if disc.disc_weight_decay:
            squares = [layer.weight.square().sum() for layer in linear_layers(net.body)]
            total = total + disc.disc_weight_decay * torch.stack(squares).sum()
        return disc.disc_loss_weight * total, {
            "disc_accuracy": measure_accuracy(agent_logit, demo_logit),
            "disc_agent_logit": agent_logit.mean(),
            "disc_demo_logit": demo_logit.mean(),
            "disc_grad_penalty": penalty,
        }

    return loss


def logit_and_slope(
    logit_of: Callable[[Tensor], Tensor], normalized: Tensor
) -> tuple[Tensor, Tensor]:
    """Logits (n,) of normalized inputs (n, K), and the mean square of their gradient there."""
    normalized = normalized.detach().requires_grad_()
    logit = logit_of(normalized)
    (slope,) = torch.autograd.grad(logit.sum(), normalized, create_graph=True)
    return logit, slope.square().sum(-1).mean()


def measure_accuracy(agent_logit: Tensor, demo_logit: Tensor) -> Tensor:
    """Share of logits with the right sign, mean of both classes."""
    return 0.5 * ((agent_logit < 0).float().mean() + (demo_logit > 0).float().mean())
