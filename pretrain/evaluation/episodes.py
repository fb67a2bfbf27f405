"""Random-skill episodes of a published library, and the conditions that all cards share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Generator, Tensor

from pretrain.ase.latents import LatentSchedule
from pretrain.evaluation.card import Card
from pretrain.evaluation.coverage import Coverage
from pretrain.evaluation.measures import interval, jerk
from pretrain.evaluation.trials import PATIENCE, Like, anyone, wander
from pretrain.motion.clip import CONTROL_RATE
from pretrain.motion.library import MotionLibrary
from pretrain.sim.backend import make_backend
from pretrain.sim.env import CharacterEnv, EpisodeConfig
from pretrain.sim.falls import NO_PROTECTION, Protection
from pretrain.sim.ground import read_ground
from pretrain.training_data import TrainingData, control_steps
from skills_store.runtime.library import SkillLibrary

# A rollout begins in a clip's state: its first second would cover that clip for nothing.
BURN_IN = control_steps(1.0)
SAMPLED = 10  # every so many steps, windows are kept for fidelity


@dataclass(frozen=True)
class Conditions:
    """What a card is measured under. All cards share the defaults, or they could not be compared."""

    episodes: int = 1024
    seed: int = 1234
    seconds: float = 10.0  # of an episode
    longest_skill: float = 5.0  # s between two random skills, at most
    engine: str = "mujoco"
    threads: int = 0


COMMON = Conditions()


@dataclass(frozen=True)
class Episodes:
    """Random-skill rollouts of E worlds over T steps; rows after a fall are not counted."""

    clip: Tensor  # (E,) index of the clip each began in
    lengths: Tensor  # (E,) steps before a fall
    falls: Tensor  # (E,) times that one began to fall, got up from or not
    rose: Tensor  # (F,) of those who fell and lay: whether they were up again in time
    agreement: Tensor  # (E,) mean <z, enc(window)> while standing
    style: Tensor | None  # (E,) mean likeness to the clips while standing, where the library can tell
    speed: Tensor  # (E,) mean horizontal speed while standing, m/s
    coverage: dict[str, float]
    jerk: Tensor  # (E,) mean absolute jerk of the joints while standing, rad/s^3
    windows: Tensor  # (M, W * F) a sample of the style windows while standing


def world(skills: SkillLibrary, material: TrainingData, n: int, under: Conditions, rng: Generator) -> CharacterEnv:
    """`n` characters that begin in the clips; where some of these rise, they all have time to."""
    rising = read_ground(material.library, material.character.skeleton).rising.any()
    return CharacterEnv(
        make_backend(under.engine, material.character, n, under.threads),
        material.character.skeleton,
        material.library,
        EpisodeConfig(
            window=skills.window_length,
            length=control_steps(under.seconds),
            protection=Protection(PATIENCE, share=1.0) if rising else NO_PROTECTION,
        ),
        rng=rng,
    )


def redrawn(skills: SkillLibrary, under: Conditions) -> LatentSchedule:
    """Random skills, each for a random while."""
    return LatentSchedule(skills.latent_dim, 1, control_steps(under.longest_skill), 0.0)


def random_skill_episodes(
    skills: SkillLibrary, env: CharacterEnv, schedule: LatentSchedule, coverage: Coverage, rng: Generator
) -> Episodes:
    """What `wander` shows of the policy, which is deterministic."""
    n, like = env.num_envs, nearest_clip(skills, env)
    counted, agreement, likeness = torch.zeros(n), torch.zeros(n), torch.zeros(n)
    speed, jolts, falls = torch.zeros(n), torch.zeros(n), torch.zeros(n)
    up_before, fallen, asked = torch.ones(n, dtype=torch.bool), torch.zeros(n, dtype=torch.bool), None
    angles: list[Tensor] = []
    sample: list[Tensor] = []
    rose: list[Tensor] = []
    env.reset(torch.arange(n))
    begun = env.clip.clone()  # a world that breaks begins anew, in another
    for step, (_, z, standing) in enumerate(wander(skills.act, env, schedule, rng, like)):
        states = env.states.numpy()
        before, asked = asked, like(z)
        # who crawls and is asked to walk is on the ground, but has not fallen
        same = torch.ones(n, dtype=torch.bool) if before is None or asked is None else before == asked
        began = up_before & same & (env.falls.down == 1)
        falls, fallen = falls + began, fallen | began
        lay = up_before & fallen & (env.falls.recovered | env.falls.timed_out_on_ground)
        rose.append(env.falls.recovered[lay].float())
        fallen &= env.falls.down > 0
        up_before = standing
        agreement += standing * (torch.from_numpy(skills.encode(states)) * z).sum(-1)
        if skills.discriminator is not None:
            likeness += standing * torch.from_numpy(skills.style(states))
        speed += standing * env.state().root_vel[:, :2].norm(dim=-1)
        counted += standing
        angles = [*angles[-3:], env.state().joint_pos.clone()]
        if len(angles) == 4:
            jolts += standing * jerk(torch.stack(angles), CONTROL_RATE)
        if step >= BURN_IN:
            coverage.see(env.windows()[standing])
            if step % SAMPLED == 0:
                sample.append(env.windows()[standing])
    steps_up = counted.clamp_min(1)
    smooth = jolts / (counted - 3).clamp_min(1)
    return Episodes(
        clip=begun,
        lengths=counted,
        falls=falls,
        rose=torch.cat(rose),
        agreement=agreement / steps_up,
        style=likeness / steps_up if skills.discriminator is not None else None,
        speed=speed / steps_up,
        coverage=coverage.per_clip(),
        jerk=smooth,
        windows=torch.cat([*sample, env.windows()[:0]]),
    )


def nearest_clip(skills: SkillLibrary, env: CharacterEnv) -> Like:
    """The clip whose own latent is nearest, as in training, where it matters for what a fall is."""
    library = env.library
    if not env.falls.ground.rising.any():
        return anyone
    clips = library.frames.numpy()
    spans = zip(library.starts.tolist(), library.lengths.tolist(), strict=True)
    own = torch.from_numpy(np.stack([skills.embed(clips[start : start + length]).pooled for start, length in spans]))
    return lambda z: (z @ own.T).argmax(-1)


def of_episodes(episodes: Episodes, under: Conditions) -> Card:
    """n and a 95 % interval of each mean over random-skill episodes, and how many fell in each second."""
    steps = control_steps(under.seconds)
    fell = episodes.lengths[episodes.lengths < steps] / CONTROL_RATE
    return {
        "survival": interval(episodes.lengths / steps),
        "skill_recovery": interval(episodes.agreement),
        **({} if episodes.style is None else {"style": interval(episodes.style)}),
        "speed": interval(episodes.speed),
        "jerk": interval(episodes.jerk),
        "falls_per_second": torch.histc(fell, bins=round(under.seconds), max=under.seconds).tolist(),
        "episode_steps": steps,
    }


def begun_in(clip: Tensor, survival: Tensor, library: MotionLibrary) -> dict[str, Tensor]:
    """Survival of the episodes (E,) that began in each clip or its mirror image, by the name of the original.

    Clips in which no episode began are left out.
    """
    groups: dict[str, list[int]] = {}
    for index, original in enumerate(library.originals):
        groups.setdefault(library.names[original], []).append(index)
    members = {name: torch.isin(clip, torch.tensor(indices)) for name, indices in groups.items()}
    return {name: survival[those] for name, those in members.items() if those.any()}
