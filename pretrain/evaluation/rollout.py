"""Trials of a policy in simulation, and what each says of a skill library.

A policy is anything that turns states and latents into joint targets: the published graph, or in the tests one whose answer
is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Generator, Tensor

from pretrain.ase.latents import LatentSchedule, sphere
from pretrain.characters.kinematics import forward
from pretrain.characters.rotations import facing, into_heading, up_axis
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState
from pretrain.evaluation.measures import aligned_error, mean, pair_distances, pairs
from pretrain.motion.clip import CONTROL_RATE
from pretrain.sim.env import CharacterEnv, Outcome
from pretrain.sim.falls import lying
from pretrain.sim.features import style_frame
from pretrain.training_data import control_steps

Act = Callable[[np.ndarray, np.ndarray], np.ndarray]  # states (N, S), latents (N, D) -> targets (N, J)
Like = Callable[[Tensor], Tensor | None]  # latents (N, D) -> the clips (N,) they belong to, which say what a fall is
MakeEnv = Callable[[int], CharacterEnv]
Samples = dict[str, Tensor]  # by measure, one number per world that got so far as to be measured

DISTURBANCE = 0.02  # rad on each joint: what makes a deterministic policy's repetitions differ
REPEATS = 16  # worlds per latent
MOMENTS = 4  # of each clip, evenly spaced
LATENTS = 8  # from each
SAME = 4  # repetitions of one latent from one moment
PUSH = 500.0  # N at the torso
PUSH_STEPS = control_steps(0.2)
PATIENCE = control_steps(3.0)  # steps that a character has to stand again
UPRIGHT = 0.7  # cosine between the root's z axis and the vertical, at least
HIGH = 0.75  # root height over that of the clips, at least


@dataclass(frozen=True)
class Played:
    """T control steps of N worlds; nothing is reset."""

    frames: Tensor  # (T, N, F) style frames
    bodies: Tensor  # (T, N, B, 3) m, from the root, in the heading frame
    standing: Tensor  # (T, N) no fall so far


@dataclass(frozen=True)
class Apart:
    """How far rollouts of two seconds from one state are apart, best aligned in time; those that fall are left out."""

    different: Tensor  # (G,) under different z: the mean over the pairs of each state
    same: Tensor  # (H,) under the same z: the mean over the pairs of each state and z
    clips: float | None  # between the clips, None of one alone

    def card(self) -> dict[str, float | None]:
        """Of different z (`ratio`) and of the same (`repeat`), both over the clips'; and one over the other."""
        different, same = mean(self.different), mean(self.same)
        over = {"ratio": (different, self.clips), "repeat": (same, self.clips), "over_repeat": (different, same)}
        return {name: a / b if a is not None and b else None for name, (a, b) in over.items()}


def anyone(z: Tensor) -> None:
    """Latents of no clip: only the feet may be on the ground."""


def advance(act: Act, env: CharacterEnv, z: Tensor, like: Tensor | None = None) -> Outcome:
    """A control step under `z` (N, D)."""
    return env.step(torch.from_numpy(act(env.state().flat().numpy(), z.numpy())), like)


def play(act: Act, env: CharacterEnv, z: Tensor, steps: int, like: Tensor | None = None) -> Played:
    """Hold `z` (N, D) for `steps` from where the worlds are."""
    frames, bodies, standing = [], [], []
    upright = torch.ones(env.num_envs, dtype=torch.bool)
    for _ in range(steps):
        outcome = advance(act, env, z, like)
        upright = upright & ~(outcome.fell | outcome.broken)
        frames.append(env.frames[:, -1].clone())
        bodies.append(body_positions(env.skeleton, env.state()))
        standing.append(upright)
    return Played(torch.stack(frames), torch.stack(bodies), torch.stack(standing))


def wander(
    act: Act, env: CharacterEnv, schedule: LatentSchedule, rng: Generator, like: Like = anyone
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """One episode per world, from where the worlds are, under random skills redrawn by `schedule`.

    After each step: the states before it (N, S), the z that they were under (N, D), and who has not fallen yet (N,).
    """
    n = env.num_envs
    z, left = sphere(n, schedule.dim, rng), schedule.lifetimes(n, rng)
    standing = torch.ones(n, dtype=torch.bool)
    for _ in range(env.episode_length):
        state = env.state().flat()
        outcome = advance(act, env, z, like(z))
        standing = standing & ~(outcome.fell | outcome.broken)
        yield state, z, standing
        left -= 1
        expired = (left <= 0).nonzero()[:, 0]
        z = z.clone()
        z[expired], left[expired] = sphere(len(expired), schedule.dim, rng), schedule.lifetimes(len(expired), rng)


def body_positions(skeleton: Skeleton, state: CharacterState) -> Tensor:
    """Every body from the root, in the heading frame, (..., B, 3) m."""
    positions, _ = forward(skeleton, torch.zeros_like(state.root_pos), state.root_rot, state.joint_pos)
    return into_heading(facing(state.root_rot)[..., None, :], positions)


def begin(env: CharacterEnv, clips: Tensor, times: Tensor, rng: Generator) -> None:
    """Every world in a clip's state, each joint disturbed a little."""
    everyone = torch.arange(env.num_envs)
    env.begin(everyone, clips, times)
    state = env.library.at(clips, times)
    noise = DISTURBANCE * torch.randn(state.joint_pos.shape, generator=rng)
    env.backend.place(everyone, replace(state, joint_pos=state.joint_pos + noise))


def diversity(
    act: Act,
    make_env: MakeEnv,
    clips: list[int],
    scale: Tensor,
    dim: int,
    rng: Generator,
    like: Like = anyone,
) -> Apart:
    """Rollouts of two seconds from MOMENTS of each of `clips`, under LATENTS different z, each of them SAME times.

    One moment would not do: the middle of the default run is where its halves meet, a metre a second apart, and whoever
    begins there falls.
    """
    start = torch.tensor(clips).repeat_interleave(MOMENTS * LATENTS * SAME)
    env = make_env(len(start))
    share = ((torch.arange(MOMENTS) + 0.5) / MOMENTS).repeat_interleave(LATENTS * SAME).repeat(len(clips))
    begin(env, start, share * env.library.durations[start], rng)
    z = sphere(len(start) // SAME, dim, rng).repeat_interleave(SAME, 0)
    played = play(act, env, z, control_steps(2.0), like(z))
    frames = (played.frames / scale).transpose(0, 1).unflatten(0, (-1, LATENTS, SAME))
    stood = played.standing[-1].view(frames.shape[:3])
    different = among(frames[:, :, 0], stood[:, :, 0])
    own = _clip_frames(env, clips, len(played.frames)) / scale
    same = among(frames.flatten(0, 1), stood.flatten(0, 1))
    return Apart(different, same, mean(pair_distances(own)))


def among(frames: Tensor, stood: Tensor) -> Tensor:
    """Mean distance between those of rollouts (G, K, T, F) that stood (G, K), of each group with two of them or more, (H,)."""
    one, other = pairs(stood.shape[1])
    both = stood[:, one] & stood[:, other]
    some, apart = both.any(1), pair_distances(frames).where(both, 0.0)
    return apart.sum(1)[some] / both.sum(1)[some]


def _clip_frames(env: CharacterEnv, clips: list[int], count: int) -> Tensor:
    """`count` frames of each clip, evenly spaced from its first to its last, (C, count, F)."""
    ids = torch.tensor(clips)[:, None].expand(-1, count)
    times = torch.linspace(0, 1, count) * env.library.durations[ids]
    return style_frame(env.skeleton, env.library.at(ids, times))


def performance(act: Act, make_env: MakeEnv, latents: dict[int, Tensor], rng: Generator) -> dict[str, Samples]:
    """Each clip's own latent held from the clip's first state: share of 10 s that each world stands, and pose error in m.

    The error is the mean distance of the bodies, best aligned in time over the clip's duration, or its first 10 s.
    """
    env = make_env(REPEATS * len(latents))
    start = torch.tensor(list(latents)).repeat_interleave(REPEATS)
    begin(env, start, torch.zeros(env.num_envs), rng)
    z = torch.stack(list(latents.values())).repeat_interleave(REPEATS, 0)
    played = play(act, env, z, env.episode_length, start)
    results = {}
    for i, clip in enumerate(latents):
        worlds = slice(i * REPEATS, (i + 1) * REPEATS)
        times = torch.arange(min(int(env.library.lengths[clip]), env.episode_length)) / CONTROL_RATE
        reference = body_positions(env.skeleton, env.library.at(torch.full(times.shape, clip), times))
        bodies = played.bodies[: len(times), worlds].transpose(0, 1)
        error = aligned_error((bodies[:, :, None] - reference).norm(dim=-1).mean(-1))
        results[env.library.names[clip]] = {
            "survival": played.standing[:, worlds].float().mean(0),
            "pose_error_m": error,
        }
    return results


def recovery(act: Act, make_env: MakeEnv, dim: int, n: int, rng: Generator, like: Like = anyone) -> Samples:
    """Who stands within three seconds after lying on the ground (`fall`), and three seconds after a push (`push`).

    Asked only of skills whose clip is performed on the feet.
    """
    env, z = make_env(n), sphere(n, dim, rng)
    clip = like(z)
    on_feet = torch.ones(n, dtype=torch.bool) if clip is None else env.falls.ground.upright[clip]
    pushed, lying = after_push(act, env, z, rng), after_lying(act, env, z, rng)
    return {
        "fall": lying[0][lying[1] & on_feet].float(),
        "push": pushed[0][pushed[1] & on_feet].float(),
    }


def after_push(act: Act, env: CharacterEnv, z: Tensor, rng: Generator) -> tuple[Tensor, Tensor]:
    """Who stands three seconds after a push at the torso in some direction (N,), and who stood before it (N,)."""
    n = env.num_envs
    everyone = torch.arange(n)
    env.reset(everyone)
    broken = _run(act, env, z, control_steps(1.0))
    before = stands(env) & ~broken
    angle = 2 * torch.pi * torch.rand(n, generator=rng)
    force = torch.stack([PUSH * angle.cos(), PUSH * angle.sin(), *[torch.zeros(n)] * 4], -1)
    env.backend.push(everyone, "torso", force)
    broken = _run(act, env, z, PUSH_STEPS)
    env.backend.push(everyone, "torso", torch.zeros(n, 6))
    broken |= _run(act, env, z, PATIENCE)
    return stands(env) & ~broken, before


def after_lying(act: Act, env: CharacterEnv, z: Tensor, rng: Generator) -> tuple[Tensor, Tensor]:
    """Who has stood within three seconds of lying (N,), and who lay (N,)."""
    lying(env.backend, env.skeleton, env.library, rng)
    lay, nobody = ~stands(env), torch.zeros(env.num_envs, dtype=torch.bool)
    risen, broken = nobody, nobody
    for _ in range(PATIENCE):
        broken = broken | advance(act, env, z).broken
        risen = risen | stands(env) & ~broken
    return risen, lay


def _run(act: Act, env: CharacterEnv, z: Tensor, steps: int) -> Tensor:
    """Hold `z` (N, D) for `steps`. Whose world broke, and began anew in a clip, (N,)."""
    broken = torch.zeros(env.num_envs, dtype=torch.bool)
    for _ in range(steps):
        broken = broken | advance(act, env, z).broken
    return broken


def stands(env: CharacterEnv) -> Tensor:
    """Root up and high enough, nothing but the feet on the ground: (N,) bool."""
    state = env.state()
    up = up_axis(state.root_rot)[:, 2]
    return (up > UPRIGHT) & (state.root_pos[:, 2] > HIGH * env.falls.ground.standing) & ~env.touches()
