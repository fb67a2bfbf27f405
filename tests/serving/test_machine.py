"""A published state machine: its reply carries the memory that the next decision needs."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import numpy as np
import pytest
from websockets.sync.client import connect

from serving.client import Client, HeldMachine
from skills_store.runtime.library import Controller
from skills_store.store import Store
from tests.serving.local import goal_rows, state_rows, write_store
from tests.serving.process import Running, running
from tests.tiny import GOAL, publish_tiny_machine

STATES = state_rows(4)
BEGIN = np.zeros(GOAL, np.float32)
MEMORIES = np.concatenate([[[1], [2], [1], [0]], goal_rows(4)[:, 1:]], 1).astype(np.float32)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = write_store(tmp_path_factory.mktemp("machines"))
    publish_tiny_machine(store, store.resolve("humanoid@1"))
    return store


@pytest.fixture(scope="module")
def live(store: Store) -> Iterator[Running]:
    with running(store.root) as service:
        yield service


@pytest.fixture(scope="module")
def client(live: Running) -> Iterator[Client]:
    with Client(live.url) as client:
        yield client


@pytest.fixture(scope="module")
def machine(store: Store) -> Controller:
    return Controller.open(store, "errand")


def test_decision_uses_and_returns_the_next_memory(client: Client, machine: Controller) -> None:
    expected = machine.next_goal(STATES[:1], BEGIN[None])
    decision = client.decide("errand", STATES[0], BEGIN)
    assert decision.goal is not None
    assert np.allclose(decision.goal, expected[0], atol=1e-6)
    assert not np.allclose(decision.goal, BEGIN)
    assert np.allclose(decision.z, machine.decide(STATES[:1], expected)[0], atol=1e-6)


def test_each_row_of_a_batch_has_its_own_memory(client: Client, machine: Controller) -> None:
    decision = client.decide("errand", STATES, MEMORIES)
    assert decision.goal is not None
    assert np.allclose(decision.goal, machine.next_goal(STATES, MEMORIES), atol=1e-6)


def test_task_controller_returns_no_memory(client: Client) -> None:
    assert client.decide("reach", STATES[0], goal_rows(1)[0]).goal is None


def test_held_machine_keeps_the_memory_between_decisions(
    client: Client, machine: Controller
) -> None:
    held = HeldMachine(client, "errand")
    memory = BEGIN[None]
    for row in STATES[:2]:
        for _ in range(held.llc_steps):
            held.step(row, ())
        memory = machine.next_goal(row[None], memory)
        assert held.memory is not None
        assert np.allclose(held.memory, memory[0], atol=1e-6)
    held.begin()
    held.step(STATES[0], ())
    assert held.memory is not None
    assert np.allclose(held.memory, machine.next_goal(STATES[:1], BEGIN[None])[0], atol=1e-6)


def test_a_session_begins_without_a_goal_and_keeps_the_memory(
    live: Running, machine: Controller
) -> None:
    memory = BEGIN[None]
    with connect(f"{live.url.replace('http', 'ws')}/session") as socket:

        def send(**fields: object) -> dict[str, list[float]]:
            socket.send(json.dumps(fields))
            return json.loads(socket.recv(timeout=10))

        send(controller="errand", hold=1)
        for row in STATES[:3]:
            memory = machine.next_goal(row[None], memory)
            reply = send(state=row.tolist())
            assert np.allclose(reply["goal"], memory[0], atol=1e-5)


@pytest.mark.parametrize(("model", "output"), [("errand.memory", "next_goal"), ("errand", "z")])
def test_each_graph_is_a_model_of_the_inference_protocol(
    live: Running, machine: Controller, model: str, output: str
) -> None:
    rows = {"state": STATES[:1], "goal": MEMORIES[:1]}
    inputs = [
        {"name": name, "shape": list(x.shape), "datatype": "FP32", "data": x.ravel().tolist()}
        for name, x in rows.items()
    ]
    reply = httpx.post(f"{live.url}/v2/models/{model}/infer", json={"inputs": inputs})
    (found,) = reply.json()["outputs"]
    run = machine.next_goal if output == "next_goal" else machine.decide
    assert found["name"] == output
    assert np.allclose(found["data"], run(**rows)[0], atol=1e-6)


def test_held_machine_refuses_a_task_controller_and_extra_goal(client: Client) -> None:
    with pytest.raises(ValueError, match="reach is no state machine, expected HeldController"):
        HeldMachine(client, "reach")
    with pytest.raises(ValueError, match="the goal has 13 numbers, expected none"):
        HeldMachine(client, "errand").step(STATES[0], np.zeros(13))
