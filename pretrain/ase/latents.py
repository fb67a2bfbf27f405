"""Skill latents: points on the unit sphere, and an environment that hands each world one and changes it now and then."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor
from torch.nn.functional import normalize

from pretrain.assist.reference_tracker import ALL, NONE, Rows
from pretrain.assist.tracking_termination import TrackingTermination
from pretrain.rl.rollout import Batch, Step
from pretrain.sim.env import ActionScale, CharacterEnv

LOOK = 3  # steps
PRIVILEGED_SCALARS = 4  # numbers of what the value net is told beside the moment
TRIES = 128  # directions, to find one that a clip is the nearest to


def sphere(n: int, dim: int, rng: Generator) -> Tensor:
    """n directions, uniform on the unit sphere, (n, dim)."""
    return normalize(torch.randn(n, dim, generator=rng), dim=-1)


def nearest_to(clips: Tensor, latents: Tensor, rng: Generator) -> Tensor:
    """Directions that the latents of `clips` (n,) are nearest to of `latents` (C, dim), any of them as likely as another,
    (n, dim); or that latent itself, where none is found."""
    drawn = sphere(len(clips) * TRIES, latents.shape[1], rng).view(len(clips), TRIES, latents.shape[1])
    near = (drawn @ latents.T).argmax(-1) == clips[:, None]
    first = drawn[torch.arange(len(clips)), near.byte().argmax(1)]
    return torch.where(near.any(1)[:, None], first, latents[clips])


@dataclass(frozen=True)
class LatentSchedule:
    """How long a world keeps its latent, uniform in control steps, and how often it gets a clip's own."""

    dim: int
    shortest: int  # control steps
    longest: int
    clip_prob: float  # share of latents that are a clip's own; when an episode begins, those of the clip it begins in
    near_prob: float = 0.0  # then, of the others, share that are nearest to that clip's, not anywhere
    near_steps: float = math.inf  # while the hand holds that clip, or so few steps lie between losses
    near_after: float = 0.0  # and this share of near_prob from then on
    own_return: bool = False  # a latent's return ends with it, in what its state is worth under it

    def lifetimes(self, n: int, rng: Generator) -> Tensor:
        return torch.randint(self.shortest, self.longest + 1, (n,), generator=rng)


class SkillEnv:
    """CharacterEnv with a latent per world: the ASE training environment. (Peng et al. 2022, section 5.)

    Rewards are terms of the rollout: the environment itself pays nothing and only records the style window.
    """

    def __init__(
        self,
        env: CharacterEnv,
        action_scale: ActionScale,
        schedule: LatentSchedule,
        clip_latents: Tensor,
        leash: TrackingTermination,
        rng: Generator,
        clocks: bool = True,  # without, nothing may ask how far a world is from its clip's moment
    ):
        self.env, self.action_scale, self.schedule, self._rng = env, action_scale, schedule, rng
        self.leash, self.clocks = leash, clocks
        self.num_envs = env.num_envs
        self.clip_latents = clip_latents  # (C, dim), the encoder's own: the warm start writes to it
        self.z = torch.zeros(self.num_envs, schedule.dim)
        self.z_clip = torch.zeros(self.num_envs, dtype=torch.long)  # the clip whose own latent is nearest to z
        self.left = torch.zeros(self.num_envs, dtype=torch.long)  # steps until the next change
        self.grace = torch.zeros(self.num_envs, dtype=torch.long)  # steps that it may still be far from its clip
        self.reset(torch.arange(self.num_envs))

    def reset(self, ids: Tensor) -> None:
        if not len(ids):
            return
        self.env.reset(ids)
        self.grace[ids] = 0
        clips = self.env.clip[ids]
        firm = self.env.curriculum.firm(self.schedule.near_steps)
        near = self.schedule.near_prob * torch.where(firm, self.schedule.near_after, 1.0)
        self._draw(ids, clips, clips, near[clips])

    def _draw(self, ids: Tensor, clips: Tensor, moving: Tensor, near: Tensor | None = None) -> None:
        """New latents for worlds `ids` (n,) that move as in clips `moving` (n,).

        A share of them are those of `clips` (n,), of the others shares `near` (n,) nearest to those, the rest lie anywhere on
        the sphere.
        """
        own = torch.rand(len(ids), generator=self._rng) < self.schedule.clip_prob
        z = sphere(len(ids), self.schedule.dim, self._rng)
        if near is not None:
            close = (torch.rand(len(ids), generator=self._rng) < near).nonzero()[:, 0]
            z[close] = nearest_to(clips[close], self.clip_latents, self._rng)
        self.z[ids] = torch.where(own[:, None], self.clip_latents[clips], z)
        self.z_clip[ids] = torch.where(own, clips, (z @ self.clip_latents.T).argmax(-1))
        self.left[ids] = self.schedule.lifetimes(len(ids), self._rng)
        self.grace[ids] = torch.where(self.z_clip[ids] == moving, self.grace[ids], self.leash.grace)
        self.env.falls.protect(ids, moving, self.z_clip[ids])

    def observe(self, ids: Tensor | None = None) -> Batch:
        rows = ALL if ids is None else ids
        seen = {"obs": self.env.obs(rows), "z": self.z[rows].clone()}
        return {**seen, "privileged": self._privileged(rows)} if self.clocks else seen

    def _privileged(self, ids: Rows) -> Tensor:
        """What decides how the episodes of worlds `ids` (n,) go on and the policy is not told, (n, F + PRIVILEGED_SCALARS).

        The moment that the clock points at, how far that is, how long the world may still be too far, whether it is down,
        and for how long it may be. Of a skill that has just been asked for no clock is set yet: nothing is told.
        """
        guide, falls = self.env.guide, self.env.falls
        down, clock = falls.down[ids], guide.clip[ids]
        slack = self.grace[ids] / max(self.leash.grace, self.leash.lag, 1)
        patience = (down > 0) * (falls.patience[ids] - down) / max(falls.protection.patience, 1)
        told = torch.stack([guide.apart(self.env.windows(ids), ids), slack, (down > 0).float(), patience], -1)
        is_set = (clock == self.z_clip[ids]) | (down > 0) & (clock != NONE)
        return is_set[:, None] * torch.cat([guide.moment(ids), told], -1)

    def step(self, action: Tensor) -> Step:
        """Actions (N, J), in units of the action scale, held for one control step.

        `terminated` fell for good, broke, strayed from its clip, or has just gone down; the last of these is not reset, for
        getting up is to be learned. `truncated` is out of time, or under another skill now, with `own_return`.

        `extras`: `window` (N, W * F); `z_clip` (N,), the clip that it is judged by; `nearer` (N,), leash units that it came
        nearer to that; with clocks, `aim` and `pose_error` (N, J), in units of actions, `led` (N,) and `apart` (N,).
        """
        held, before = self.z_clip.clone(), self.env.windows()
        timed = self._led(held) if self.clocks else {}
        outcome = self.env.step(self.action_scale.target(action), held)
        if self.clocks:
            timed |= self._missed()
        strayed = self._late(timed["tracking_error"], held) if self.leash.timed else self._strayed()
        over = outcome.fell | outcome.broken | strayed
        # also where it has time to get up: a fall that costs nothing is not learned to be avoided
        failed = over | (self.env.falls.down == 1)
        self._report(held, outcome.fell, strayed)
        own = self.observe() if self.schedule.own_return else None
        changed = self._renew(held)
        after, judged = self.env.windows().clone(), self._judged(held)  # a reset writes into the env's own
        nearer = self.leash.from_mean(before, judged) - self.leash.from_mean(after, judged)
        return Step(
            next_obs=own or self.observe(),
            reward=torch.zeros(self.num_envs),
            terminated=failed,
            truncated=outcome.timed_out if own is None else outcome.timed_out | changed & ~failed,
            extras={"window": after, "z_clip": judged, "nearer": nearer * ~outcome.broken, **timed},
            goes_on=~(over | outcome.timed_out),
        )

    def _led(self, clips: Tensor) -> Batch:
        """The clocks go on along clips (N,): the actions that aim where they point, and how firmly the worlds are led there."""
        self.env.follow(clips)
        return {
            "reference_action": self.action_scale.action(self.env.guide.aim()),
            "assist_strength": self.env.firmness(clips),
        }

    def _missed(self) -> Batch:
        """How far the worlds are from where the clocks point, and how far each joint is from there, in units of actions; who
        is down has other things to mind."""
        guide, up = self.env.guide, self.env.falls.down == 0
        off = (guide.pose() - self.env.state().joint_pos) / self.action_scale.scale
        return {"tracking_error": guide.apart(self.env.windows()), "pose_error": off * up[:, None]}

    def _report(self, clips: Tensor, fell: Tensor, strayed: Tensor) -> None:
        """To the curriculum: who was lost in this step, moving as in clips (N,)."""
        env, down, own = self.env, self.env.falls.down, clips == self.env.clip
        lost = (down == 1) | fell | (strayed & own)
        # time on the ground is no success; and from a clip that lies, whoever is asked for another is down at first
        counts = ((down <= 1) | fell) & (own | env.falls.ground.upright[env.clip])
        env.curriculum.saw(env.clip[counts], lost[counts])

    def _renew(self, clips: Tensor) -> Tensor:
        """A step less for every latent, and another where none is left, of worlds that move as in clips (N,): where, (N,)."""
        self.left -= 1
        over = self.left <= 0
        expired = over.nonzero()[:, 0]
        if len(expired):
            asked, _ = self.env.library.sample(len(expired), self._rng)
            self._draw(expired, asked, clips[expired])
        return over

    def _judged(self, clips: Tensor) -> Tensor:
        """The clips (N,) that the worlds' motion is compared with: who is down should move like the one that its clock is
        in, which rises."""
        clock = self.env.guide.clip
        led = (self.env.falls.down > 0) & (clock != NONE) & self.env.falls.ground.rising[clock]
        return torch.where(led, clock, clips)

    def _late(self, apart: Tensor, clips: Tensor) -> Tensor:
        """Worlds that have been too far (N,) from their moment of clips (N,) for too long, (N,).

        A landing jolts, the end of a kick is not its beginning, and who has lost its balance needs some steps to find it.
        """
        holds = (apart <= self.leash.lengths[clips]) | (self.env.falls.down > 0)
        self.grace = torch.where(holds, (self.grace - 1).clamp_min(self.leash.lag), self.grace - 1)
        return self.grace < 0

    def _strayed(self) -> Tensor:
        """Worlds that are too far from their clip, (N,). Each is looked at in every LOOK-th step of its skill: the distance
        to all windows costs as much as a tenth of a step."""
        self.grace = (self.grace - 1).clamp_min(0)
        due = ((self.left % LOOK == 0) & (self.grace == 0) & (self.env.falls.down == 0)).nonzero()[:, 0]
        strayed = torch.zeros(self.num_envs, dtype=torch.bool)
        strayed[due] = self.leash.strayed(self.env.windows()[due], self.z_clip[due])
        return strayed

    def snapshot(self) -> dict[str, Tensor]:
        own = {name: getattr(self, name).clone() for name in ("z", "z_clip", "left", "grace")}
        return {**self.env.snapshot(), **own, "skill_rng": self._rng.get_state()}

    def restore(self, snapshot: dict[str, Tensor]) -> None:
        self.env.restore(snapshot)
        for name in ("z", "z_clip", "left", "grace"):
            setattr(self, name, snapshot[name].clone())
        self._rng.set_state(snapshot["skill_rng"])
