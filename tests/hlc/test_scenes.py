"""What a task's scene puts into the worlds that it is played in."""

from __future__ import annotations

import torch

from hlc.config import CONFIG_MODEL, PlanConfig
from hlc.parent import Parent
from hlc.planner import Planner
from hlc.tasks.getup import Getup
from hlc.tasks.stand import Stand
from hlc.worlds import make_worlds
from pretrain.sim.backend import make_backend
from tests.hlc.bodies import clip_states


def worlds(parent: Parent, task: str, n: int = 8):
    cfg = CONFIG_MODEL(task=task, threads=1, episode_length=1.0)
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


def test_lying_costs_a_planner_nothing_in_getup_and_a_fall_elsewhere(parent: Parent) -> None:
    cfg = PlanConfig(candidates=4, horizon=30, fall_cost=1000.0)
    backend = make_backend("mujoco", parent.character, cfg.candidates, 1)
    lying = worlds(parent, "getup", 1).env.state().flatten().numpy()
    values = []
    for task in (Getup(), Stand()):
        planner = Planner(parent, task, backend, cfg, rng=torch.Generator().manual_seed(0))
        goal = task.draw(clip_states(parent, 1), torch.Generator().manual_seed(0))
        planner(lying, goal.numpy())
        values.append(float(planner.value[0]))
    assert values[0] > -100 > values[1]
