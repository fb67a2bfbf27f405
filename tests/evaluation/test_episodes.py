"""Random-skill episodes of policies with known measures."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from pretrain.ase.latents import LatentSampling
from pretrain.assist.forces import drive_force, mean_velocities, upright_torque
from pretrain.evaluation.episodes import (
    Episodes,
    by_start_clip,
    observe_episodes,
    random_skill_episodes,
)
from pretrain.evaluation.jerk import clip_jerk
from pretrain.evaluation.rollout import start_in_clips
from pretrain.evaluation.setup import RECOVERY_STEPS
from pretrain.motion.library import MotionLibrary
from pretrain.sim.backend import make_backend
from pretrain.sim.env import CharacterEnv, EpisodeConfig, Outcome
from pretrain.sim.falls import Recovery
from tests.evaluation import playback

FORWARD = 4
WORLDS = 16


class UprightEnv(CharacterEnv):
    """A character that forces keep up while it is not down."""

    def step(self, targets: torch.Tensor, clips: torch.Tensor | None = None) -> Outcome:
        driven = self.clip if clips is None else clips
        state = self.state()
        force = drive_force(state, mean_velocities(self.library)[driven])
        wrench = torch.cat([force, upright_torque(state)], -1)
        up = ~self.falls.is_down
        ids = torch.arange(self.num_envs)
        self.backend.push(ids, self.skeleton.bodies[0], wrench * up[:, None])
        return super().step(targets, clips)


def zeros(state: np.ndarray, z: np.ndarray) -> np.ndarray:
    return np.zeros((len(state), 28), np.float32)


def limp(state: np.ndarray, z: np.ndarray) -> np.ndarray:
    return state[:, 13:41]


class ClipPlayer:
    """A policy that plays the forward walk, with a clock of its own."""

    def __init__(self, library: MotionLibrary):
        self.library = library
        self.steps = 0

    def __call__(self, state: np.ndarray, z: np.ndarray) -> np.ndarray:
        self.steps += 1
        clips = torch.full((len(state),), FORWARD)
        times = torch.full((len(state),), (self.steps + 2) / 30)
        return self.library.at(clips, times).joint_pos.numpy()


class Echo:
    """A policy that stores z, and an encoder that returns it or a vector orthogonal to it."""

    dim = 4

    def __init__(self) -> None:
        self.z = np.zeros((0, self.dim), np.float32)

    def act(self, state: np.ndarray, z: np.ndarray) -> np.ndarray:
        self.z = z
        return zeros(state, z)

    def same(self, states: np.ndarray) -> np.ndarray:
        return self.z

    def orthogonal(self, states: np.ndarray) -> np.ndarray:
        return self.z[:, [1, 0, 3, 2]] * np.array([1, -1, 1, -1], np.float32)


def library_of(data, act, encode) -> Any:
    clips = {name: [1.0, 0.0, 0.0, 0.0] for name in data.library.names}
    manifest = SimpleNamespace(latent=SimpleNamespace(clips=clips))
    return SimpleNamespace(
        act=act,
        encode=encode,
        discriminator=None,
        window_length=3,
        latent_dim=4,
        version=SimpleNamespace(manifest=manifest),
    )


def held_up_episodes(data, act, encode) -> Episodes:
    """From the first frame of the forward walk to its last, held up by forces."""
    setup = playback.setup_of(library_of(data, act, encode), data, engine="mujoco")
    env = UprightEnv(
        make_backend("mujoco", data.character, WORLDS, 1),
        data.character.skeleton,
        data.library,
        EpisodeConfig(window=3, length=int(data.library.lengths[FORWARD])),
        rng=torch.Generator().manual_seed(0),
    )
    rng = torch.Generator().manual_seed(0)
    start_in_clips(env, torch.full((WORLDS,), FORWARD), torch.zeros(WORLDS), rng)
    return observe_episodes(setup, env, LatentSampling(4, 5, 30, 0.0), rng)


def test_agreement_is_1_for_matching_z_and_0_for_orthogonal_z(training_data):
    echo = Echo()
    right = held_up_episodes(training_data, echo.act, echo.same)
    torch.testing.assert_close(right.agreement, torch.ones(WORLDS))
    wrong = held_up_episodes(training_data, echo.act, echo.orthogonal)
    torch.testing.assert_close(wrong.agreement, torch.zeros(WORLDS))


def no_code(states: np.ndarray) -> np.ndarray:
    return np.zeros((len(states), 4), np.float32)


def test_jerk_of_playback_matches_clip_and_noise_is_20x_higher(training_data):
    noise = np.random.default_rng(0)

    def jitter(state: np.ndarray, z: np.ndarray) -> np.ndarray:
        return noise.normal(size=(len(state), 28)).astype(np.float32)

    def jerk_of(act) -> float:
        episodes = held_up_episodes(training_data, act, no_code)
        return float(episodes.jerk.mean()) / clip_jerk(training_data.library, [FORWARD])

    played = jerk_of(ClipPlayer(training_data.library))
    assert played == pytest.approx(1, abs=0.25)  # the other walk's is 1.7
    assert jerk_of(jitter) > 20 * played


@pytest.fixture(scope="module")
def limp_episodes(every_clip) -> Episodes:
    """64 limp characters that begin upright, for five seconds; all have 3 s to get up."""
    torch.set_num_threads(1)
    setup = playback.setup_of(library_of(every_clip, limp, no_code), every_clip, engine="mujoco")
    walk = every_clip.library.names.index("walk")
    rng = torch.Generator().manual_seed(0)
    env = setup.make_env(64, 5.0, rng)
    # the clip of every z is the walk, so that nothing but the feet may touch the ground
    object.__setattr__(setup, "nearest_clip", lambda z: torch.full((len(z),), walk))
    start_in_clips(env, torch.full((64,), walk), torch.zeros(64), rng)
    return observe_episodes(setup, env, LatentSampling(4, 200, 200, 0.0), rng)


def test_limp_body_falls_and_its_episode_ends_after_recovery_time(limp_episodes):
    falls = limp_episodes.falls
    assert (falls.falls == 1).float().mean() > 0.8
    assert (falls.falls <= 2).all()  # it may bounce
    assert (falls.steps < 150).float().mean() > 0.8
    assert (falls.steps > RECOVERY_STEPS).all()


def test_a_limp_body_never_recovers(limp_episodes):
    assert 0.8 * 64 < len(limp_episodes.recovered) <= 64
    assert not limp_episodes.recovered.any()


def test_first_fall_ends_survival_without_a_getup_clip(training_data):
    skills = library_of(training_data, limp, no_code)
    setup = playback.setup_of(skills, training_data, engine="mujoco", seconds=3.0)
    assert setup.make_env(1, 1.0, torch.Generator()).falls.recovery == Recovery()
    episodes = random_skill_episodes(setup, torch.Generator().manual_seed(0))
    assert float(episodes.lengths.mean()) < 45


def test_survival_is_grouped_by_start_clip_with_mirrors_merged(training_data):
    library = training_data.library
    walk = library.names.index("walk")
    run = library.names.index("run")
    images = library.images
    assert images
    clip = torch.tensor([walk, images[walk], walk, run])
    survival = torch.tensor([1.0, 0.4, 0.4, 0.25])
    found = by_start_clip(clip, survival, library)
    means = {name: float(shares.mean()) for name, shares in found.items()}
    assert means == pytest.approx({"walk": 0.6, "run": 0.25})
    assert "run" not in by_start_clip(clip[:3], survival[:3], library)


def test_broken_env_counts_as_fallen_and_its_episode_ends(training_data, monkeypatch):
    playback_data = playback.training_data()
    playback.playback(monkeypatch, playback_data)
    setup = playback.setup_of(playback.conditioned(playback_data), playback_data, seconds=2.0)
    env = setup.make_env(4, 2.0, torch.Generator().manual_seed(0))
    env.reset(torch.arange(4))
    advance = env.backend.advance
    count = iter(range(100))

    def breaking(targets: torch.Tensor) -> torch.Tensor:
        return torch.full_like(advance(targets), next(count) == 30)

    env.backend.advance = breaking
    sampling = LatentSampling(setup.skills.latent_dim, 100, 100, 0.0)
    episodes = observe_episodes(setup, env, sampling, torch.Generator().manual_seed(0))
    assert episodes.falls.falls.tolist() == [1.0] * 4
    assert episodes.falls.steps.tolist() == [31.0] * 4
    assert episodes.broken == 4
