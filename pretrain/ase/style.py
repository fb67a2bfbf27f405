"""The style prior: a discriminator between the clips' windows and the character's. (AMP, Peng et al. 2021, section 5.)"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import softplus

from pretrain.characters.skeleton import Skeleton
from pretrain.motion.library import MotionLibrary
from pretrain.rl.loop import Reward
from pretrain.rl.nets import Normalizer, mlp
from pretrain.rl.ppo import Loss, Metrics
from pretrain.rl.rollout import Batch, Rollout
from pretrain.sim.features import style_frame


@dataclass(frozen=True)
class Demos:
    """Style windows of every clip, read densely in time, with sampling weights."""

    windows: Tensor  # (M, W * F)
    clip: Tensor  # (M,) clip index of each
    weights: Tensor  # (M,) sum 1

    def sample(self, n: int, rng: Generator) -> Tensor:
        return self.windows[torch.multinomial(self.weights, n, replacement=True, generator=rng)]


def demonstrations(library: MotionLibrary, skeleton: Skeleton, steps: int, rate: float = 120.0) -> Demos:
    """Every window of `steps` frames that ends on a grid of 1/rate s and lies wholly inside its clip."""
    clips, ends, weights = [], [], []
    for c, duration in enumerate(library.durations.tolist()):
        # a clip shorter than one window still gives one, its first frame standing still before it
        first = min((steps - 1) / 30, duration)
        times = torch.arange(first, duration + 1e-6, 1 / rate)
        clips.append(torch.full((len(times),), c))
        ends.append(times)
        weights.append(library.weights[c].expand(len(times)) / len(times))
    clip = torch.cat(clips)
    frames = style_frame(skeleton, library.windows(clip, torch.cat(ends), steps))
    return Demos(frames.flatten(1), clip, torch.cat(weights))


def window_normalizer(demos: Demos) -> Normalizer:
    """Fixed by the clips: a running one would move under the discriminator's feet as the character learns."""
    return Normalizer(demos.windows.mean(0), demos.windows.std(0).clamp_min(0.03), clip=8.0)


class Discriminator(nn.Module):
    """Logit of a style window being from a clip, (..., W * F) -> (...)."""

    def __init__(self, norm: Normalizer, hidden: tuple[int, ...], rng: Generator):
        super().__init__()
        self.norm = norm
        self.body = mlp([len(norm.mean), *hidden, 1], rng=rng)

    def forward(self, window: Tensor) -> Tensor:
        return self.logit(self.norm(window))

    def logit(self, normalised: Tensor) -> Tensor:
        return self.body(normalised).squeeze(-1)


def style_reward(net: Discriminator, scale: float) -> Reward:
    """-log(1 - sigmoid(D)) * scale, at most 9.2 * scale. (ASE eq. 13 as published in code.)"""

    def reward(rollout: Rollout) -> Tensor:
        with torch.no_grad():
            return scale * softplus(net(rollout.extras["window"])).clamp_max(9.21)

    return reward


class Replay:
    """The last `size` windows the character went through, so that the discriminator does not forget old mistakes."""

    def __init__(self, size: int, width: int):
        self.rows = torch.zeros(size, width)
        self.filled = self.next = 0

    def add(self, windows: Tensor) -> None:
        n = min(len(windows), len(self.rows))
        where = (self.next + torch.arange(n)) % len(self.rows)
        self.rows[where] = windows[:n]
        self.next = (self.next + n) % len(self.rows)
        self.filled = min(self.filled + n, len(self.rows))

    def sample(self, n: int, rng: Generator) -> Tensor:
        return self.rows[torch.randint(self.filled, (n,), generator=rng)]

    def snapshot(self) -> dict[str, Tensor]:
        return {"rows": self.rows[: self.filled].clone(), "next": torch.tensor(self.next)}

    def restore(self, snapshot: dict[str, Tensor]) -> None:
        self.filled, self.next = len(snapshot["rows"]), int(snapshot["next"])
        self.rows[: self.filled] = snapshot["rows"]


def style_loss(
    net: Discriminator, demos: Demos, replay: Replay, *, grad_penalty: float, logit_reg: float, replay_share: float
) -> Loss:
    """Binary cross-entropy, clips against the character's new and remembered windows, with a gradient penalty on the clips.

    (AMP eq. 8.) Gradients are taken at normalised inputs.
    """

    def loss(batch: Batch, rng: Generator) -> tuple[Tensor, Metrics]:
        fresh = batch["window"]
        n = len(fresh)
        old = replay.sample(int(n * replay_share), rng) if replay.filled else fresh[:0]
        agent = net.norm(torch.cat([fresh, old]))
        demo = net.norm(demos.sample(n, rng)).requires_grad_()
        agent_logit, demo_logit = net.logit(agent), net.logit(demo)
        (slope,) = torch.autograd.grad(demo_logit.sum(), demo, create_graph=True)
        penalty = slope.square().sum(-1).mean()
        cross_entropy = 0.5 * (softplus(agent_logit).mean() + softplus(-demo_logit).mean())
        *_, last, _bias = net.body.parameters()
        total = cross_entropy + grad_penalty * penalty + logit_reg * last.square().sum()
        replay.add(fresh[: max(1, n // 16)])
        accuracy = 0.5 * ((agent_logit < 0).float().mean() + (demo_logit > 0).float().mean())
        return total, {
            "disc_accuracy": accuracy,
            "disc_agent_logit": agent_logit.mean(),
            "disc_demo_logit": demo_logit.mean(),
            "disc_grad_penalty": penalty,
        }

    return loss
