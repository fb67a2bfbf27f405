"""Scenes of the tasks: lying starts, and boxes with their contacts."""

from __future__ import annotations

import pytest
import torch

from hlc.config import CONFIG_MODEL, PlanConfig
from hlc.parent import Parent
from hlc.planner import Planner
from hlc.task_env import TaskEnv
from hlc.tasks.frames import place_from_heading
from hlc.tasks.getup import Getup
from hlc.tasks.stand import Stand
from hlc.tasks.strike import Strike
from hlc.worlds import make_worlds
from pretrain.sim.backend import FreeBox, make_backend
from tests.hlc.bodies import clip_states


def worlds(parent: Parent, task: str, n: int = 8, **parameters: object) -> TaskEnv:
    settings = {"task": task, "threads": 1, "episode_length": 1.0, task: parameters}
    cfg = CONFIG_MODEL.model_validate(settings)
    rngs = [torch.Generator().manual_seed(i) for i in range(2)]
    return make_worlds(cfg, parent, n, starts=rngs[0], goals=rngs[1])


def test_episodes_of_getup_begin_lying_and_end_by_time_alone(parent: Parent) -> None:
    """Also on a library without a clip that rises."""
    env = worlds(parent, "getup")
    assert not env.env.falls.ground.rising.any()
    heights = env.env.state().root_pos[:, 2]
    assert (heights < 0.6).all()
    assert heights.median() < 0.4
    ends = []
    for _ in range(6):
        step = env.step(torch.ones(8, parent.skills.latent_dim))
        assert not step.terminated.any()
        ends.append(step.truncated)
    assert torch.stack(ends).all(1).tolist() == [False] * 5 + [True]


def test_episodes_of_other_tasks_begin_upright(parent: Parent) -> None:
    assert (worlds(parent, "stand").env.state().root_pos[:, 2] > 0.6).all()


def test_planner_fall_cost_applies_when_lying_except_in_getup(parent: Parent) -> None:
    cfg = PlanConfig(candidates=4, horizon=30, fall_cost=1000.0)
    backend = make_backend("mujoco", parent.character, cfg.candidates, 1)
    lying = worlds(parent, "getup", 1).env.state().flatten().numpy()
    values = []
    for task in (Getup(), Stand()):
        planner = Planner(parent, task, backend, cfg, rng=torch.Generator().manual_seed(0))
        goal = task.draw(clip_states(parent, 1), torch.Generator().manual_seed(0))
        values.append(float(planner.plan(lying, goal.numpy())[1][0]))
    assert values[0] > -100 > values[1]


def box_of(env: TaskEnv) -> FreeBox:
    assert env.env.backend.box is not None
    return env.env.backend.box


def put(env: TaskEnv, place: tuple[float, float], spin: float = 0.0) -> None:
    """The boxes of all worlds, standing `place` m ahead and to the left of the root, turning by
    `spin` rad/s about the world's y axis."""
    state = env.env.state()
    n = env.num_envs
    level = place_from_heading(state, torch.full((n,), place[0]), torch.full((n,), place[1]))
    rest = torch.tensor([0.9, 1.0, *[0.0] * 7, spin, 0.0]).expand(n, -1)
    env.goals.goal = torch.cat([level, rest], -1)
    box_of(env).place(torch.arange(n), env.goals.goal)


def test_box_is_placed_at_its_goal_and_the_goal_tracks_it(parent: Parent) -> None:
    env = worlds(parent, "strike")
    torch.testing.assert_close(box_of(env).state(), env.goals.goal, atol=1e-5, rtol=1e-5)
    put(env, (2.5, 0.0), spin=3.0)
    before = env.goals.goal.clone()
    env.step(torch.ones(8, parent.skills.latent_dim))
    assert torch.equal(box_of(env).state(), env.goals.goal)
    assert (env.goals.goal - before).abs().amax(-1).min() > 0.1


def test_overturned_box_is_a_success_with_full_reward(parent: Parent) -> None:
    env = worlds(parent, "strike", bodies=parent.character.skeleton.bodies)
    put(env, (2.5, 0.0), spin=6.0)
    for _ in range(5):
        step = env.step(torch.ones(8, parent.skills.latent_dim))
    assert step.extras["success"][~step.terminated].all()
    torch.testing.assert_close(step.reward[~step.terminated], torch.ones(8)[~step.terminated])


def test_box_contact_of_a_disallowed_body_ends_the_episode(parent: Parent) -> None:
    """The box stands where the character does: everything touches it."""
    ended = []
    for bodies in (("right_hand",), parent.character.skeleton.bodies):
        env = worlds(parent, "strike", bodies=bodies)
        put(env, (0.25, 0.0))
        ended.append(env.step(torch.ones(8, parent.skills.latent_dim)).terminated)
    assert ended[0].all()
    assert ended[1].sum() < 8


def test_new_goal_places_a_new_box(parent: Parent) -> None:
    env = worlds(parent, "strike", goal_time_min=0.5, goal_time_max=0.5)
    put(env, (2.5, 0.0), spin=6.0)
    for _ in range(3):
        env.step(torch.ones(8, parent.skills.latent_dim))
    torch.testing.assert_close(box_of(env).state(), env.goals.goal, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(env.goals.goal[:, 2], torch.full((8,), 0.9))


def test_env_with_nan_state_terminates_and_goals_stay_finite(parent: Parent) -> None:
    env = worlds(parent, "strike")
    one = torch.tensor([3])
    broken = env.env.state()[one].map(torch.clone)
    broken.joint_vel[:] = torch.nan
    env.env.backend.place(one, broken)
    step = env.step(torch.ones(8, parent.skills.latent_dim))
    assert step.terminated[3]
    assert torch.isfinite(step.reward).all()
    assert torch.isfinite(env.goals.goal).all()


def test_planner_value_includes_the_fall_of_the_box(parent: Parent) -> None:
    env = worlds(parent, "strike", 1, bodies=parent.character.skeleton.bodies)
    cfg = PlanConfig(candidates=2, horizon=20, fall_cost=0.0, progress_weight=0.0)
    task = env.task
    backend = parent.backend(cfg.candidates, task.scene(), "mujoco", 1)
    planner = Planner(parent, task, backend, cfg, rng=torch.Generator().manual_seed(0))
    values = []
    for spin in (0.0, 10.0):
        put(env, (2.5, 0.0), spin)
        _, value = planner.plan(env.env.state().flatten().numpy(), env.goals.goal.numpy())
        values.append(float(value[0]))
    # a library of random weights stays up for half of the horizon, and its reward is 0 afterwards
    assert values[1] > 1.5 * values[0]


def test_worlds_without_the_box_that_a_task_needs_are_refused(parent: Parent) -> None:
    backend = make_backend("mujoco", parent.character, 2, 1)
    with pytest.raises(ValueError, match="Strike needs a box"):
        Planner(parent, Strike(), backend, PlanConfig(candidates=2), rng=torch.Generator())


def test_task_with_unknown_bodies_is_refused_before_training(parent: Parent) -> None:
    with pytest.raises(ValueError, match="humanoid has no body 'sword'; there are: pelvis"):
        worlds(parent, "strike", bodies=("sword",))
