"""Trials of policies whose answer is known: one that ignores z, one that obeys it, one that plays clips back, a limp one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from pretrain.ase.latents import LatentSchedule
from pretrain.ase.style import ReferenceWindows, make_reference_windows
from pretrain.assist.forces import forward_force, mean_velocities, upright_torque
from pretrain.evaluate import clip_jerk, fidelity
from pretrain.evaluation.coverage import Coverage, coverage_targets
from pretrain.evaluation.episodes import Conditions, Episodes, nearest_clip, random_skill_episodes, world
from pretrain.evaluation.trials import REPEATS, among, diversity, performance, recovery
from pretrain.motion.library import MotionLibrary
from pretrain.sim.backend import make_backend
from pretrain.sim.env import CharacterEnv, EpisodeConfig, Outcome
from pretrain.sim.mujoco_cpu import MujocoBackend
from pretrain.training_data import TrainingData
from skills_store.runtime.library import SkillLibrary
from skills_store.store import BUNDLED, Store

DIM = 4
WALK, RUN, FORWARD = 0, 2, 4


@pytest.fixture
def frame_scale(material, skeleton):
    return make_reference_windows(material.library, skeleton, 1).windows.std(0).clamp_min(0.03)


class UprightEnv(CharacterEnv):
    """A character that forces of `strength` keep up while it is not down."""

    strength = 0.0

    def step(self, targets: torch.Tensor, clips: torch.Tensor | None = None) -> Outcome:
        if self.strength:
            followed = self.clip if clips is None else clips
            state = self.state()
            force = forward_force(state, mean_velocities(self.library)[followed])
            wrench = self.strength * torch.cat([force, upright_torque(state)], -1)
            up = self.falls.down == 0
            self.backend.push(torch.arange(self.num_envs), self.skeleton.bodies[0], wrench * up[:, None])
        return super().step(targets, clips)


def maker(humanoid, library, strength: float):
    """Environments in which forces of `strength` keep the character up."""

    def make(n: int) -> CharacterEnv:
        env = UprightEnv(
            make_backend("mujoco", humanoid, n, 1),
            humanoid.skeleton,
            library,
            EpisodeConfig(window=3, length=90),
            rng=torch.Generator().manual_seed(0),
        )
        env.strength = strength
        return env

    return make


def standing(state: np.ndarray, z: np.ndarray) -> np.ndarray:
    return np.zeros((len(state), 28), np.float32)


def obeying(state: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The arms go where z says."""
    targets = np.zeros((len(state), 28), np.float32)
    targets[:, 6 : 6 + DIM] = 2 * z
    return targets


def limp(state: np.ndarray, z: np.ndarray) -> np.ndarray:
    return state[:, 13:41]


def test_a_policy_that_ignores_z_shows_collapse_and_one_that_obeys_does_not(humanoid, library, frame_scale, rng):
    make = maker(humanoid, library, 1.0)
    deaf = diversity(standing, make, [WALK, 6], frame_scale, DIM, rng)
    assert deaf.card()["over_repeat"] == pytest.approx(1, abs=0.3)
    obedient = diversity(obeying, make, [WALK, 6], frame_scale, DIM, rng)
    assert obedient.different.mean() > 3 * obedient.same.mean()
    assert obedient.different.mean() > 2 * deaf.different.mean()


def test_who_fell_is_no_part_of_a_distance():
    frames = torch.tensor([0.0, 3.0, 100.0])[None, :, None, None].expand(2, 3, 5, 1)
    stood = torch.tensor([[True, True, False], [True, False, False]])
    assert among(frames, stood).tolist() == pytest.approx([3.0])  # of the second group one alone is left


def test_diversity_begins_at_four_moments_of_each_clip(humanoid, library, frame_scale, rng):
    begun = []

    def make(n: int) -> CharacterEnv:
        env = maker(humanoid, library, 1.0)(n)
        begin = env.begin
        env.begin = lambda ids, clips, times: (begun.append(times / library.durations[clips]), begin(ids, clips, times))
        return env

    diversity(standing, make, [WALK, 6], frame_scale, DIM, rng)
    assert torch.cat(begun).unique().tolist() == pytest.approx([0.125, 0.375, 0.625, 0.875])


class Player:
    """Aims along each world's clip. It keeps time itself, which no skill can."""

    def __init__(self, library: MotionLibrary, clips: torch.Tensor):
        self.library, self.clips, self.steps = library, clips, 0

    def __call__(self, state: np.ndarray, z: np.ndarray) -> np.ndarray:
        self.steps += 1
        ahead = self.library.at(self.clips, torch.full(self.clips.shape, (self.steps + 2) / 30))
        return ahead.joint_pos.numpy()


def test_playing_a_clip_back_performs_it_and_standing_does_not(humanoid, library, rng):
    make, latents = maker(humanoid, library, 1.0), {WALK: torch.ones(DIM), 6: torch.ones(DIM)}
    played = performance(Player(library, torch.tensor([WALK, 6]).repeat_interleave(REPEATS)), make, latents, rng)
    stood = performance(standing, make, latents, rng)
    assert set(played) == {library.names[WALK], library.names[6]}
    for clip, result in played.items():
        assert result["pose_error_m"].mean() < 0.06
        assert result["pose_error_m"].mean() < 0.6 * stood[clip]["pose_error_m"].mean()
        assert 0 < result["survival"].mean() <= 1
    fallen = performance(limp, maker(humanoid, library, 0.0), latents, rng)
    assert max(result["survival"].mean() for result in fallen.values()) < 0.7


def test_a_limp_body_never_stands_again_and_a_library_that_learned_to_does(humanoid, library, every_clip, rng):
    free = recovery(limp, maker(humanoid, library, 0.0), DIM, 32, rng)
    assert free["fall"].mean() == 0
    skills = SkillLibrary.open(Store(BUNDLED), "humanoid-all@1")

    def make(n: int) -> CharacterEnv:
        return world(skills, every_clip, n, Conditions(threads=1), rng)

    learned = recovery(skills.act, make, skills.latent_dim, 64, rng, nearest_clip(skills, make(1)))
    assert learned["fall"].mean() > 0.8
    assert learned["push"].mean() > 0.3  # of some 20 worlds; of 162 on its card 0.59


def test_a_world_that_breaks_and_begins_anew_does_not_stand(humanoid, library, rng):
    class Breaking(MujocoBackend):
        """Every world is broken once, in its last seconds."""

        steps = 0

        def advance(self, targets: torch.Tensor) -> torch.Tensor:
            self.steps += 1
            broken = super().advance(targets)
            return torch.ones_like(broken) if self.steps == 100 else broken

    def make(n: int) -> CharacterEnv:
        env = maker(humanoid, library, 1.0)(n)
        env.backend = Breaking(humanoid, n, 1)
        return env

    assert recovery(standing, make, DIM, 32, rng)["push"].mean() == 0


def test_only_skills_that_are_performed_on_the_feet_are_asked_to_stand_up(humanoid, every_clip, rng):
    library = every_clip.library
    clips = {name: library.names.index(name) for name in ("crawl", "walk")}
    make = maker(humanoid, library, 1.0)

    def all_like(clip: str):
        return lambda z: torch.full((len(z),), clips[clip])

    crawling, walking = (recovery(standing, make, DIM, 32, rng, all_like(clip)) for clip in clips)
    assert (len(crawling["fall"]), len(crawling["push"])) == (0, 0)
    assert len(walking["push"]) > 0


def test_what_nobody_got_to_is_not_a_number_but_nothing(humanoid, library, frame_scale, material, rng):
    make = maker(humanoid, library, 0.0)
    nobody = diversity(limp, make, [RUN], frame_scale, DIM, rng)
    assert nobody.card() == {"ratio": None, "repeat": None, "over_repeat": None}
    alone = diversity(standing, maker(humanoid, library, 1.0), [WALK], frame_scale, DIM, rng).card()
    assert alone["ratio"] is None  # one clip has no other to be apart from
    assert alone["over_repeat"] is not None
    assert fidelity(material.demos.windows[:0], material.demos, torch.ones(240)) is None


def frechet_ratio(windows: torch.Tensor, demos: ReferenceWindows, scale: torch.Tensor) -> float:
    found = fidelity(windows, demos, scale)
    assert found is not None
    return found


def test_clips_are_as_faithful_as_it_gets_and_noise_is_not(material, skeleton, rng):
    demos = make_reference_windows(material.library, skeleton, 3)
    scale = demos.windows.std(0).clamp_min(0.03)
    assert frechet_ratio(demos.windows, demos, scale) < 0.01
    noisy = demos.windows + scale * torch.randn(demos.windows.shape, generator=rng)
    assert frechet_ratio(noisy, demos, scale) > 1
    assert frechet_ratio(demos.windows[demos.clip == WALK], demos, scale) > 0.5


def under_random_skills(make, material: TrainingData, act, encode) -> Episodes:
    """16 worlds from the first frame of the forward walk to its last, of a library of `act` and `encode`."""
    library, env, rng = material.library, make(16), torch.Generator().manual_seed(0)
    env.episode_length = int(library.lengths[FORWARD])
    env.reset = lambda ids: env.begin(ids, torch.full_like(ids, FORWARD), torch.zeros(len(ids)))
    pooled = np.eye(DIM, dtype=np.float32)[0]
    skills: Any = SimpleNamespace(
        act=act, encode=encode, embed=lambda states: SimpleNamespace(pooled=pooled), discriminator=None
    )
    coverage = Coverage(*coverage_targets(material.dataset.clips, library, 3))
    return random_skill_episodes(skills, env, LatentSchedule(DIM, 5, 30, 0.0), coverage, rng)


class Asked:
    """A policy that keeps what it was asked for, and an encoder that answers with it, or at a right angle to it."""

    z = np.zeros((0, DIM), np.float32)

    def act(self, state: np.ndarray, z: np.ndarray) -> np.ndarray:
        self.z = z
        return standing(state, z)

    def same(self, states: np.ndarray) -> np.ndarray:
        return self.z

    def orthogonal(self, states: np.ndarray) -> np.ndarray:
        return self.z[:, [1, 0, 3, 2]] * np.array([1, -1, 1, -1], np.float32)


def test_skill_recovery_is_one_where_the_encoder_tells_z_and_none_where_it_tells_another(humanoid, material):
    make, asked = maker(humanoid, material.library, 1.0), Asked()
    told = under_random_skills(make, material, asked.act, asked.same)
    torch.testing.assert_close(told.agreement, torch.ones(16))
    astray = under_random_skills(make, material, asked.act, asked.orthogonal)
    torch.testing.assert_close(astray.agreement, torch.zeros(16))


def test_a_clip_played_back_is_about_as_smooth_as_it_is_and_noise_is_far_rougher(humanoid, material):
    make, library = maker(humanoid, material.library, 1.0), material.library
    noise = np.random.default_rng(0)

    def jitter(state: np.ndarray, z: np.ndarray) -> np.ndarray:
        return noise.normal(size=(len(state), 28)).astype(np.float32)

    def smoothness(act) -> float:
        episodes = under_random_skills(make, material, act, lambda states: np.zeros((16, DIM), np.float32))
        return float(episodes.jerk.mean()) / clip_jerk(library, [FORWARD])

    played = smoothness(Player(library, torch.full((16,), FORWARD)))
    assert played == pytest.approx(1, abs=0.25)  # the other walk jerks 1.7 times as much as this one
    assert smoothness(jitter) > 20 * played


def test_the_run_is_the_jerkiest(library):
    assert clip_jerk(library, [RUN]) > 2 * clip_jerk(library, [WALK])
