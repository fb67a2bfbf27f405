"""Held skills: 10 s of a library under one z, for several z at once."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from pretrain.ase.latents import sample_on_sphere
from pretrain.characters.state import unflatten
from pretrain.evaluation.foot_slide import foot_slide, read_feet
from pretrain.evaluation.intervals import Interval, mean
from pretrain.evaluation.on_clip import on_clip
from pretrain.evaluation.recording import Recording, record
from pretrain.evaluation.rollout import start_anywhere
from pretrain.evaluation.setup import Setup
from pretrain.sim.features import style_frame
from pretrain.sim.row_blocks import row_blocks


@dataclass(frozen=True)
class HeldSkills:
    """K skills, each held in R worlds; the worlds of one skill are next to each other."""

    z: Tensor  # (K, D)
    clips: Tensor  # (K,) clips with the nearest z
    repeats: int
    recording: Recording

    def worlds(self, skill: int) -> slice:
        return slice(skill * self.repeats, (skill + 1) * self.repeats)


def own_skills(setup: Setup, rng: Generator) -> HeldSkills:
    """The own z of every clip that is no mirror image, begun anywhere in that clip."""
    return _hold(setup, _own(setup), rng)[0]


def own_and_random_skills(
    setup: Setup, count: int, repeats: int, rng: Generator
) -> tuple[HeldSkills, HeldSkills]:
    """`own_skills`, and `count` random z, each begun anywhere in `repeats` clips drawn by weight.

    All worlds are of one batch.
    """
    z = sample_on_sphere(count, setup.skills.latent_dim, rng)
    start, _ = setup.library.sample(count * repeats, rng)
    random_request = _Request(z, setup.nearest_clip(z), start)
    clip_skills, random_skills = _hold(setup, _own(setup), rng, random_request)
    return clip_skills, random_skills


@dataclass(frozen=True)
class _Request:
    z: Tensor  # (K, D)
    clips: Tensor  # (K,) clips with the nearest z
    start: Tensor  # (K * R,) clips that the worlds begin in

    @property
    def repeats(self) -> int:
        return len(self.start) // len(self.z)


def _own(setup: Setup) -> _Request:
    clips = setup.originals
    start = clips.repeat_interleave(setup.conditions.repeats)
    return _Request(setup.own_z[clips], clips, start)


def _hold(setup: Setup, first: _Request, rng: Generator, *others: _Request) -> list[HeldSkills]:
    requests = [first, *others]
    start = torch.cat([request.start for request in requests])
    env = setup.make_env(len(start), setup.conditions.seconds, rng)
    start_anywhere(env, start, rng)
    z = torch.cat([request.z.repeat_interleave(request.repeats, 0) for request in requests])
    clips = torch.cat([request.clips.repeat_interleave(request.repeats) for request in requests])
    recording = record(setup.skills.act, env, z, clips, env.episode_length)
    parts = recording.split([len(request.start) for request in requests])
    return [
        HeldSkills(request.z, request.clips, request.repeats, part)
        for request, part in zip(requests, parts, strict=True)
    ]


def time_on_clip(setup: Setup, held: HeldSkills) -> dict[str, Tensor]:
    """Of each clip's own z (`own_skills`): the share of 10 s that each of its worlds is on the
    clip (`on_clip`), (R,)."""
    shares = {}
    for i, target in enumerate(setup.targets):
        worlds = held.worlds(i)
        windows = held.recording.windows(worlds)
        near = on_clip(setup, i, windows, held.recording.velocity[:, worlds])
        shares[target.name] = near.float().mean(0)
    return shares


def slide_speeds(setup: Setup, held: HeldSkills) -> dict[str, Tensor]:
    """Of each clip's own z (`own_skills`): how fast standing feet move, m/s, mean over 10 s of each
    world in which a foot stands, (at most R,)."""
    speeds = {}
    recording = held.recording
    for i, target in enumerate(setup.targets):
        worlds = held.worlds(i)
        feet = recording.feet[:, worlds]
        speed = foot_slide(feet, ~recording.down[:, worlds])
        speeds[target.name] = speed[~speed.isnan()]
    return speeds


def clip_slide_speeds(setup: Setup) -> dict[str, float | None]:
    """How fast standing feet move in each clip itself, m/s; None where none stands for long
    enough."""
    parts = setup.library.clip_frames
    speeds = {}
    for clip, target in zip(setup.originals.tolist(), setup.targets, strict=True):
        states = unflatten(parts[clip][:, None])
        feet = read_feet(setup.data.character.skeleton, states)
        speed = foot_slide(feet, torch.ones(len(parts[clip]), 1, dtype=torch.bool))
        speeds[target.name] = mean(speed[~speed.isnan()])
    return speeds


def pose_error(setup: Setup, held: HeldSkills) -> dict[str, Tensor]:
    """Of each clip's own z (`own_skills`): distance of head, hands and feet, relative to the root,
    from the clip's nearest pose, m, mean over 10 s of each world, (R,)."""
    skeleton = setup.data.character.skeleton
    keys = 3 * len(skeleton.key_bodies)
    parts = setup.library.clip_frames
    errors = {}
    for i, target in enumerate(setup.targets):
        poses = style_frame(skeleton, unflatten(parts[int(setup.originals[i])]))[:, -keys:]
        key_pos = held.recording.frames[-held.recording.steps :, held.worlds(i), -keys:]
        blocks = row_blocks(key_pos.flatten(0, 1), poses.numel())
        nearest = torch.cat([_key_distance(block, poses).amin(-1) for block in blocks])
        errors[target.name] = nearest.view(key_pos.shape[:2]).mean(0)
    return errors


def _key_distance(key_pos: Tensor, poses: Tensor) -> Tensor:
    """Mean distance of the key bodies' places (n, 3 K) from those of poses (T, 3 K), (n, T) m."""
    return (key_pos[:, None] - poses).unflatten(-1, (-1, 3)).norm(dim=-1).mean(-1)


def upright_worlds(setup: Setup, held: HeldSkills) -> Tensor:
    """The worlds whose skill belongs to a clip that stays on its feet throughout, (N,) bool."""
    return setup.ground.upright[held.clips].repeat_interleave(held.repeats)


def falls_per_minute(setup: Setup, held: HeldSkills) -> tuple[Interval, dict[str, Interval]]:
    """Of the own z (`own_skills`) of upright clips: over all of them, and clip by clip."""
    falls = held.recording.falls
    upright = setup.ground.upright[setup.originals].tolist()
    per_clip = {
        target.name: falls.per_minute(held.worlds(i))
        for i, target in enumerate(setup.targets)
        if upright[i]
    }
    return falls.per_minute(upright_worlds(setup, held)), per_clip
