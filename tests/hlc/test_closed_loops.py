"""A client that simulates and requests each control step over HTTP reaches the states of the
controller in this process, for each task."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from hlc.box_goals import BoxGoals
from hlc.config import CONFIG_MODEL
from hlc.export import FILE, build_manifest, declare_graph
from hlc.parent import Parent, SimulationConfig
from hlc.tasks import TASKS
from hlc.tasks.task import Task, goal_width
from pretrain.sim.backend import Backend
from serving.client import Client, HeldController, HeldPlan
from skills_store.runtime.library import Controller
from skills_store.store import Store
from tests import tiny
from tests.hlc.bodies import clip_states, publish_skills
from tests.serving.process import running

STEPS = 13  # control steps: three decisions
NONE = torch.tensor([False])  # no env is broken


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Parent]:
    """A controller of random weights for each task, on a library of random weights."""
    store = Store(tmp_path_factory.mktemp("controllers"))
    parent = publish_skills(store)
    for name in TASKS:
        cfg = CONFIG_MODEL(task=name)
        data = tiny.controller(goal=goal_width(cfg.chosen_task()))
        graph = declare_graph(cfg.chosen_task(), parent, tiny.CONTROLLER.parity)
        store.publish(build_manifest(cfg, parent, graph, {}), {FILE: data})
    return store, parent


@pytest.fixture(scope="module")
def client(published: tuple[Store, Parent]) -> Iterator[Client]:
    with running(published[0].root) as service, Client(service.url) as client:
        yield client


class World:
    """One character, with the goal that its task draws for it."""

    def __init__(self, parent: Parent, task: Task):
        rng = torch.Generator().manual_seed(0)
        env = parent.simulation(1, task.scene(), SimulationConfig(1000, threads=1), rng)
        env.reset(torch.tensor([0]))
        self.backend: Backend = env.backend
        self._boxes = BoxGoals(task, env.skeleton, env.backend)
        self._goal = task.draw(env.state(), rng)
        self._boxes.place(torch.tensor([0]), self._goal)

    def state(self) -> np.ndarray:
        return self.backend.state().flatten()[0].numpy()

    def goal(self) -> np.ndarray:
        """(G,), with the current state of a box."""
        self._goal = self._boxes.update(self._goal, NONE)
        return self._goal[0].numpy()

    def advance(self, targets: np.ndarray) -> None:
        self.backend.advance(torch.from_numpy(targets.copy())[None])


@pytest.mark.parametrize("name", TASKS)
def test_closed_loop_over_http_matches_local_controller(
    name: str, published: tuple[Store, Parent], client: Client
) -> None:
    store, parent = published
    task = CONFIG_MODEL(task=name).chosen_task()
    held = HeldController(client, name)
    there = World(parent, task)
    for _ in range(STEPS):
        there.advance(held.step(there.state(), there.goal()))
    controller = Controller.open(store, name)
    here = World(parent, task)
    for step in range(STEPS):
        if step % controller.llc_steps == 0:
            z = controller.decide(here.state()[None], here.goal()[None])
        here.advance(controller.library.act(here.state()[None], z)[0])
    np.testing.assert_array_equal(there.state(), here.state())


def test_client_requests_a_decision_every_hold_and_after_restart(
    published: tuple[Store, Parent], client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[str] = []
    for name in ("act", "decide"):
        own = getattr(Client, name)

        def note(*given, name=name, own=own):
            requests.append(name)
            return own(*given)

        monkeypatch.setattr(Client, name, note)
    held = HeldController(client, "speed")
    states = clip_states(published[1], 3).flatten().numpy()
    goals = np.ones((3, 1), np.float32)
    for step in range(8):
        if step == 7:
            held.restart()
        assert held.step(states, goals).shape == (3, 28)
    assert requests == ["decide", *["act"] * 4, "decide", "act", "decide"]


def test_held_controller_pins_its_version_digest_at_start(
    published: tuple[Store, Parent], client: Client
) -> None:
    digest = published[0].resolve("reach").digest
    held = HeldController(client, "reach@latest")
    assert held.version == f"reach@{digest}"
    assert held.llc_steps == 5


def test_plan_is_held_and_its_z_passed_to_the_next_plan(
    published: tuple[Store, Parent], client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[object] = []
    own = Client.plan

    def note(*given, **others):
        tried.append(others["last_z"])
        return own(*given, **others)

    monkeypatch.setattr(Client, "plan", note)
    parent = published[1]
    world = World(parent, CONFIG_MODEL(task="speed").chosen_task())
    held = HeldPlan(client, "speed", "humanoid@1", seed=1)
    decided = []
    for _ in range(6):
        world.advance(held.step(world.state(), world.goal()))
        decided.append(held.z)
    assert len(tried) == 2
    assert tried[0] is None
    assert tried[1] is decided[0]
    assert all(z is decided[0] for z in decided[:5])
