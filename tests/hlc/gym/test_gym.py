"""The tasks as gymnasium environments: the checker, autoreset modes, seeds and errors."""

from __future__ import annotations

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium", reason="needs the extra rl")

from gymnasium.utils.env_checker import check_env  # noqa: E402
from gymnasium.vector import AutoresetMode  # noqa: E402

import hlc.gym  # noqa: E402
from hlc.parent import Parent  # noqa: E402
from hlc.tasks import TASKS  # noqa: E402
from skills_store.store import Store  # noqa: E402

N = 3
LENGTH = 4  # decisions in an episode
SETTINGS = {"engine": "puppet", "threads": 1, "episode_length": LENGTH / 6}


@pytest.fixture
def where(puppet_skills: Parent, store: Store) -> dict[str, object]:
    return {"skill": puppet_skills.version.ref, "store": str(store.root), **SETTINGS}


def make_vec(where: dict[str, object], **settings: object) -> hlc.gym.SkillVectorEnv:
    made = gymnasium.make_vec("repertoire/Speed-v0", num_envs=N, **where, **settings)
    assert isinstance(made, hlc.gym.SkillVectorEnv)
    return made


@pytest.mark.filterwarnings("ignore:.*(minimum|maximum) value is (-)?infinity")
@pytest.mark.parametrize("task", TASKS)
def test_every_task_passes_gymnasiums_checker(task: str, where: dict[str, object]) -> None:
    env = gymnasium.make(f"repertoire/{task.capitalize()}-v0", **where)
    check_env(env.unwrapped, skip_render_check=True)


def test_action_is_a_z_and_reward_is_within_0_and_1(
    where: dict[str, object], puppet_skills: Parent
) -> None:
    env = gymnasium.make("repertoire/Reach-v0", **where, reach={"body": "head"})
    assert env.action_space.shape == (puppet_skills.skills.latent_dim,)
    obs, _ = env.reset(seed=1)
    assert obs.shape == env.observation_space.shape
    for decision in range(LENGTH):
        _, reward, terminated, truncated, info = env.step(env.action_space.sample())
        assert 0 <= reward <= 1
        assert isinstance(info["success"], bool)
        assert not terminated
        assert truncated == (decision == LENGTH - 1)


def test_next_step_autoreset_returns_zero_reward_on_reset(
    where: dict[str, object],
) -> None:
    envs = make_vec(where)
    assert envs.autoreset_mode is AutoresetMode.NEXT_STEP
    rewards, truncated, _ = play(envs, 2 * LENGTH + 1)
    assert truncated[:, 0].tolist() == [i in (LENGTH - 1, 2 * LENGTH) for i in range(9)]
    assert (rewards[LENGTH] == 0).all()
    assert (np.delete(rewards, LENGTH, 0) > 0).all()


def test_next_step_autoreset_ignores_the_actions_of_ended_worlds(
    where: dict[str, object],
) -> None:
    envs = make_vec(where)
    _, truncated, _ = play(envs, LENGTH)
    assert truncated[-1].all()
    nothing = np.full_like(envs.action_space.sample(), np.nan)
    obs, reward, _, truncated, _ = envs.step(nothing)
    assert np.isfinite(obs).all()
    assert not reward.any()
    assert not truncated.any()
    with pytest.raises(ValueError, match="expected finite numbers"):
        envs.step(nothing)


def test_same_step_autoreset_returns_final_and_first_observation(
    where: dict[str, object],
) -> None:
    envs = make_vec(where, autoreset_mode="SameStep")
    assert envs.metadata["autoreset_mode"] is envs.autoreset_mode is AutoresetMode.SAME_STEP
    rewards, truncated, infos = play(envs, 2 * LENGTH)
    assert truncated[:, 0].tolist() == [i % LENGTH == LENGTH - 1 for i in range(2 * LENGTH)]
    assert (rewards > 0).all()
    last = infos[LENGTH - 1]
    width = envs.observation_space.shape
    assert width is not None
    assert last["_final_obs"].all()
    assert last["final_obs"].shape == width
    assert last["final_info"]["success"].shape == (N,)
    assert "final_obs" not in infos[0]


def test_disabled_autoreset_requires_a_reset_mask(where: dict[str, object]) -> None:
    envs = make_vec(where, autoreset_mode=AutoresetMode.DISABLED)
    _, truncated, _ = play(envs, LENGTH)
    assert truncated[-1].all()
    with pytest.raises(ValueError, match="world 0 has ended"):
        envs.step(envs.action_space.sample())
    some = np.array([True, False, True])
    before = envs.reset(options={"reset_mask": some})[0]
    with pytest.raises(ValueError, match="world 1 has ended"):
        envs.step(envs.action_space.sample())
    after = envs.reset(options={"reset_mask": ~some})[0]
    np.testing.assert_array_equal(after[some], before[some])
    envs.step(envs.action_space.sample())
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        envs.reset(options={"reset_mask": np.ones(2, np.bool_)})


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_gymnasium_episode_statistics_count_whole_episodes(
    where: dict[str, object], mode: str
) -> None:
    envs = gymnasium.wrappers.vector.RecordEpisodeStatistics(make_vec(where, autoreset_mode=mode))
    envs.reset(seed=0)
    for _ in range(3 * LENGTH + 2):
        envs.step(envs.action_space.sample())
    assert list(envs.length_queue) == [LENGTH] * 3 * N


def test_the_same_seed_gives_the_same_episodes(where: dict[str, object]) -> None:
    envs = make_vec(where)
    first, _, _ = play(envs, 6)
    again, _, _ = play(envs, 6)
    np.testing.assert_array_equal(first, again)


def test_a_seed_among_the_keys_gives_the_same_episodes(where: dict[str, object]) -> None:
    first, again, other = (
        gymnasium.make("repertoire/Reach-v0", **where, seed=seed).reset()[0] for seed in (5, 5, 6)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_single_env_refuses_num_envs(where: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="num_envs=7: this is one world; make_vec makes several"):
        gymnasium.make("repertoire/Reach-v0", **where, num_envs=7)


def test_a_key_that_does_not_exist_is_refused(where: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="learning_rate is no key of this environment: llc_steps"):
        gymnasium.make("repertoire/Reach-v0", **where, learning_rate=1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reach": {"bdy": "head"}}, "bdy: .*; parameters of reach: .*body"),
        ({"episode_length": -1}, "^episode_length: Input should be greater .*, got -1$"),
        ({"speed": {}}, "speed is no key"),
    ],
)
def test_invalid_value_error_names_it_and_what_exists(
    where: dict[str, object], settings: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        gymnasium.make("repertoire/Reach-v0", **where | settings)


def test_a_key_of_training_alone_is_refused(where: dict[str, object]) -> None:
    """The environments would ignore it."""
    with pytest.raises(ValueError, match="fall_penalty is no key"):
        gymnasium.make("repertoire/Reach-v0", **where, fall_penalty=10)


def test_nan_or_misshapen_action_is_refused(where: dict[str, object]) -> None:
    envs = make_vec(where)
    envs.reset(seed=0)
    action = np.ones(envs.action_space.shape or (), np.float32)
    with pytest.raises(ValueError, match=r"action has the shape \(2, 8\), expected \(3, 8\)"):
        envs.step(action[:2])
    action[1, 0] = np.nan
    with pytest.raises(ValueError, match="action of world 1 is"):
        envs.step(action)
    action[1] = 0
    with pytest.raises(ValueError, match="action of world 1 is 0"):
        envs.step(action)


def play(envs: hlc.gym.SkillVectorEnv, steps: int) -> tuple[np.ndarray, np.ndarray, list[dict]]:
    """Rewards and truncations, (steps, N) each, and the infos, under the same actions."""
    envs.reset(seed=0)
    rng = np.random.default_rng(0)
    found = [
        envs.step(rng.uniform(-1, 1, envs.action_space.shape).astype(np.float32))
        for _ in range(steps)
    ]
    rewards, truncated = (np.array([step[i] for step in found]) for i in (1, 3))
    return rewards, truncated, [step[4] for step in found]
