"""POST /plan: the planner's own result, refusals that name the field, 501 without the extra."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from serving.client import Client
from serving.models import planning
from serving.settings import Settings
from serving.wire.plan_schemas import PlanResponse
from skills_store.runtime.library import SkillLibrary
from skills_store.store import BUNDLED, Store
from tests.serving.local import Local, floats, goal_rows, problem, state_rows
from tests.serving.process import running

SKILL = "humanoid@1"


@pytest.fixture(scope="module")
def bundled() -> Iterator[Local]:
    pytest.importorskip("torch", reason="needs the extra plan")
    local = Local(Settings(store=BUNDLED, skill=SKILL, refresh=3600.0))
    yield local
    local.close()


@pytest.fixture(scope="module")
def start() -> np.ndarray:
    """A state of the library's own clips, (S,)."""
    from hlc.parent import open_parent

    return open_parent(Store(BUNDLED), SKILL).clips.frames[30].numpy()


@pytest.fixture
def request_body(start: np.ndarray) -> dict:
    ahead = [float(start[0]) + 0.5, float(start[1]), 1.0]
    return {"task": "reach", "state": start.tolist(), "goal": ahead, "seed": 1}


def test_plan_route_matches_the_planner_with_the_same_seed(bundled, request_body, start):
    from hlc.config import HlcConfig
    from hlc.parent import open_parent
    from hlc.single_planner import SinglePlanner

    found = bundled.post("/plan", json=request_body).json()
    PlanResponse.model_validate(found, strict=True)
    planner = SinglePlanner(open_parent(Store(BUNDLED), SKILL), HlcConfig(threads=1))
    goal = np.array(request_body["goal"], np.float32)
    own = planner.plan(planner.make_task("reach", {}), start, goal, seed=1)
    np.testing.assert_array_equal(floats(found["z"]), own.z)
    assert found["predicted_return"] == pytest.approx(own.predicted_return)
    targets = SkillLibrary.open(Store(BUNDLED), SKILL).act(start[None], own.z[None])[0]
    np.testing.assert_array_equal(floats(found["targets"]), targets)
    assert (found["horizon"], found["llc_steps"]) == (30, 5)
    assert found["skill"]["name"] == "humanoid"


def test_plan_with_last_z_never_lowers_predicted_return(bundled, request_body):
    first = bundled.post("/plan", json=request_body).json()
    again = bundled.post("/plan", json=request_body | {"seed": 2, "last_z": first["z"]}).json()
    assert again["predicted_return"] >= first["predicted_return"] - 1e-3


def test_plan_says_that_last_z_was_normalised(bundled, request_body):
    for length in (1, 2):
        last_z = [length, 0.0, 0.0, 0.0, 0.0, 0.0]
        reply = bundled.post("/plan", json=request_body | {"last_z": last_z}).json()
        assert reply["z_normalised"] is (length == 2)


def test_expected_of_a_plan_is_one_row(bundled, request_body):
    for field in ("state", "goal", "last_z"):
        body = request_body | {"last_z": [1.0] + [0.0] * 5}
        found = bundled.post("/plan", json=body | {field: [body[field]] * 2}).json()
        assert (found["code"], found["field"]) == ("wrong_shape", field)
        assert "[B" not in found["expected"]
        assert "clip's name" not in found["expected"]


def test_task_parameters_change_the_predicted_return(bundled, request_body):
    head = bundled.post("/plan", json=request_body | {"parameters": {"body": "head"}}).json()
    hand = bundled.post("/plan", json=request_body | {"parameters": {"body": "right_hand"}}).json()
    assert head["predicted_return"] != hand["predicted_return"]
    assert hand == bundled.post("/plan", json=request_body).json()


def test_plan_accepts_named_state_parts_with_equal_result(bundled, request_body):
    from tests.tiny import SLICES

    expected = bundled.post("/plan", json=request_body).json()
    parts = {part.name: request_body["state"][part.start : part.stop] for part in SLICES}
    assert bundled.post("/plan", json=request_body | {"state": parts}).json() == expected


def test_goal_includes_the_state_of_the_box(bundled, request_body):
    """A box that falls by itself has a higher return than one that stands."""
    place = [request_body["state"][0] + 2.5, request_body["state"][1], 0.9, 1.0, *[0.0] * 7]
    strike = request_body | {"task": "strike"}
    returns = [
        bundled.post("/plan", json=strike | {"goal": [*place, spin, 0.0]}).json()[
            "predicted_return"
        ]
        for spin in (0.0, 6.0)
    ]
    assert returns[1] > returns[0] + 3
    invalid = strike | {"goal": [*place[:3], 2.0, *place[4:], 0.0, 0.0]}
    problem(bundled.post("/plan", json=invalid), 422, "not_a_rotation", "goal.box_rot")


@pytest.mark.parametrize(
    ("changed", "refusal"),
    [
        ({"task": "fly"}, (404, "unknown_task", "task")),
        ({"parameters": {"depth": 1}}, (422, "wrong_parameter", "parameters.depth")),
        ({"parameters": {"height_min": -1}}, (422, "wrong_parameter", "parameters.height_min")),
        ({"parameters": {"height_min": 9}}, (422, "wrong_parameter", "parameters")),
        ({"goal": [1.0, 0.0, 50.0]}, (422, "goal_out_of_range", "goal.target")),
        (
            {"task": "heading", "goal": [5.0, 0.0, 1.0, 1.0, 0.0]},
            (422, "goal_out_of_range", "goal.direction"),
        ),
        ({"parameters": {"body": "tail"}}, (422, "wrong_parameter", "parameters")),
        ({"goal": [1.0, 2.0]}, (422, "wrong_shape", "goal")),
        ({"goal": [[1.0, 2.0, 1.0]]}, (422, "wrong_shape", "goal")),
        ({"state": [1.0, 2.0]}, (422, "wrong_shape", "state")),
        ({"last_z": [1.0]}, (422, "wrong_shape", "last_z")),
        ({"last_z": [0.0] * 6}, (422, "not_a_direction", "last_z")),
        ({"seed": -1}, (422, "wrong_type", "seed")),
        ({"skill": "biped"}, (404, "unknown_skill", "skill")),
        ({"worlds": 1}, (422, "unknown_field", "worlds")),
    ],
)
def test_invalid_plan_request_is_refused(bundled, request_body, changed, refusal):
    problem(bundled.post("/plan", json=request_body | changed), *refusal)


def test_wrong_parameter_error_has_the_value_or_the_names_that_exist(bundled, request_body):
    unknown = bundled.post("/plan", json=request_body | {"parameters": {"bdy": "head"}}).json()
    assert unknown["expected"].startswith("one of: goal_time_min, ")
    assert "body" in unknown["expected"].split(", ")
    wrong = request_body | {"parameters": {"success_distance": -1}}
    found = bundled.post("/plan", json=wrong).json()
    assert found["field"] == "parameters.success_distance"
    assert "is -1" in found["message"]
    assert found["expected"] == "greater than 0"


def test_plan_accepts_a_place_that_controllers_clip(bundled, request_body):
    far = request_body | {"goal": [100.0, 0.0, 1.0]}
    assert bundled.post("/plan", json=far).status_code == 200


def test_plan_refuses_a_library_without_start_states(service):
    body = {"task": "speed", "state": state_rows(1)[0].tolist(), "goal": [1.0]}
    found = problem(service.post("/plan", json=body), 422, "not_simulated")
    assert "start states" in found["message"]


def test_plan_refuses_unreachable_position_and_serves_the_next(bundled, request_body):
    far = [3e38] * 3 + request_body["state"][3:]
    problem(bundled.post("/plan", json=request_body | {"state": far}), 422, "not_simulated")
    assert bundled.post("/plan", json=request_body).status_code == 200


def test_plan_from_unsurvivable_state_returns_the_fall_cost(bundled, request_body):
    thrown = request_body["state"][:41] + [3e37] * 28
    found = bundled.post("/plan", json=request_body | {"state": thrown}).json()
    assert found["predicted_return"] == -30.0
    assert np.isfinite(found["targets"]).all()


def test_error_message_truncates_client_input(bundled, request_body):
    body = "tail" * 10_000
    found = bundled.post("/plan", json=request_body | {"parameters": {"body": body}}).json()
    assert found["code"] == "wrong_parameter"
    assert found["field"] == "parameters"
    assert found["message"].startswith("humanoid has no body 'tail")
    assert len(found["message"]) < 500


def test_plan_returns_501_without_extra_and_act_still_works(service, monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    body = {"task": "speed", "state": state_rows(1)[0].tolist(), "goal": [1.0]}
    found = problem(service.post("/plan", json=body), 501, "extra_missing")
    assert "without mujoco" in found["message"]
    assert "repertoire[plan]" in found["message"]
    act = {"state": body["state"], "goal": goal_rows(1)[0].tolist()}
    assert service.post("/controllers/reach/act", json=act).status_code == 200


def test_plans_over_the_queue_limit_get_503_with_retry_after(bundled, request_body, monkeypatch):
    monkeypatch.setattr(planning, "MAX_WAITING", 2)
    responses = bundled.together([("/plan", request_body)] * 4)
    assert sorted(response.status_code for response in responses) == [200, 200, 503, 503]
    refused = next(response for response in responses if response.status_code == 503)
    assert refused.headers["retry-after"] == "1"


def test_torch_and_mujoco_load_lazily_at_the_first_plan():
    code = """
import sys
import numpy as np
from serving.settings import Settings
from skills_store.store import BUNDLED
from tests.serving.local import Local, state_rows

local = Local(Settings(store=BUNDLED, skill="humanoid@1"))
state = state_rows(1)[0].tolist()
assert local.post("/act", json={"state": state, "z": [1.0] + [0.0] * 5}).status_code == 200
assert not {"torch", "mujoco", "hlc"} & set(sys.modules)
body = {"task": "speed", "state": state, "goal": [1.0]}
assert local.post("/plan", json=body).status_code == 200
assert {"torch", "mujoco"} <= set(sys.modules)
local.close()
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_sync_and_async_clients_request_plans(request_body, start):
    from serving.client import AsyncClient

    goal = np.array(request_body["goal"], np.float32)

    async def plan_async(url: str, z: np.ndarray) -> float:
        async with AsyncClient(url) as client:
            found = await client.plan("reach", start, goal, last_z=z, seed=1)
            return found.predicted_return

    with running(BUNDLED, skill=SKILL) as service, Client(service.url) as client:
        found = client.plan("reach", start, goal, seed=1)
        assert found.llc_steps == 5
        np.testing.assert_array_equal(found.targets, client.act(start, found.z, SKILL))
        assert asyncio.run(plan_async(service.url, found.z)) >= found.predicted_return - 1e-3
