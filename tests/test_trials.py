"""Trials of policies whose answer is known: one that ignores z, one that obeys it, one that plays clips back, a limp one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pretrain.ase.style import Demos, demonstrations
from pretrain.evaluate import Conditions, clip_jerk, fidelity, nearest_clip, world
from pretrain.sim.backend import make_backend
from pretrain.sim.curriculum import Curriculum, LettingGo
from pretrain.sim.env import CharacterEnv
from pretrain.sim.mujoco_cpu import MujocoBackend
from pretrain.trials import REPEATS, among, diversity, performance, recovery
from skills_store.library import SkillLibrary
from skills_store.store import BUNDLED, Store

DIM = 4
WALK, RUN = 0, 2


@pytest.fixture
def frame_scale(material, skeleton):
    return demonstrations(material.library, skeleton, 1).windows.std(0).clamp_min(0.03)


def maker(humanoid, library, held: float):
    """Environments in which a hand of strength `held` keeps the character up."""

    def make(n: int) -> CharacterEnv:
        return CharacterEnv(
            make_backend("mujoco", humanoid, n, 1),
            humanoid.skeleton,
            library,
            window=3,
            episode_length=90,
            rng=torch.Generator().manual_seed(0),
            curriculum=Curriculum(library.weights, episode_length=90, hand=LettingGo(held, 1.0, 0.0)),
        )

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


def test_playing_a_clip_back_performs_it_and_standing_does_not(humanoid, library, rng):
    class Player:
        """Aims along each world's clip. It keeps time itself, which no skill can."""

        def __init__(self, clips: list[int]):
            self.clips, self.steps = torch.tensor(clips).repeat_interleave(REPEATS), 0

        def __call__(self, state: np.ndarray, z: np.ndarray) -> np.ndarray:
            self.steps += 1
            ahead = library.at(self.clips, torch.full(self.clips.shape, (self.steps + 2) / 30))
            return ahead.joint_pos.numpy()

    make, latents = maker(humanoid, library, 1.0), {WALK: torch.ones(DIM), 6: torch.ones(DIM)}
    played = performance(Player([WALK, 6]), make, latents, rng)
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
    assert learned["push"].mean() > 0.5


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


def frechet_ratio(windows: torch.Tensor, demos: Demos, scale: torch.Tensor) -> float:
    found = fidelity(windows, demos, scale)
    assert found is not None
    return found


def test_clips_are_as_faithful_as_it_gets_and_noise_is_not(material, skeleton, rng):
    demos = demonstrations(material.library, skeleton, 3)
    scale = demos.windows.std(0).clamp_min(0.03)
    assert frechet_ratio(demos.windows, demos, scale) < 0.01
    noisy = demos.windows + scale * torch.randn(demos.windows.shape, generator=rng)
    assert frechet_ratio(noisy, demos, scale) > 1
    assert frechet_ratio(demos.windows[demos.clip == WALK], demos, scale) > 0.5


def test_the_run_is_the_jerkiest(library):
    assert clip_jerk(library, [RUN]) > 2 * clip_jerk(library, [WALK])
