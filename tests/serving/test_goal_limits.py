"""Goals outside a task's limits: refused with their value and the range, or clipped."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from serving.api.control_session import Step, open_session
from serving.models.goal_limits import apply_limits
from serving.models.resting_pose import example_goal
from serving.models.service import make_service
from serving.settings import Settings
from serving.wire.problems import Refusal
from serving.wire.rows import InputSpec, read
from skills_store.graph import Graph, Slice, Tensor
from skills_store.manifest import GoalLimit
from tests.serving.local import goal_rows, problem, state_rows
from tests.tiny import CONTROLLER, controller, controller_manifest

TARGET = Slice(name="target", start=0, stop=3, unit="m", frame="world")
SPEED = Slice(name="speed", start=3, stop=4, unit="m/s", frame="scalar")
HEADING = Slice(name="direction", start=4, stop=6, unit="unit vector", frame="world")
GOAL = Tensor(name="goal", shape=("B", 6), slices=(TARGET, SPEED, HEADING))
ROOT = np.array([[1.0, 2.0, 0.9]], np.float32)


def limit(part: str, quantity: str, least: float, most: float, beyond: str) -> GoalLimit:
    fields = {"part": part, "quantity": quantity, "least": least, "most": most}
    return GoalLimit.model_validate(fields | {"beyond": beyond, "unit": "m"})


def goal(x: float, y: float, height: float, speed: float = 1.0, length: float = 1.0) -> np.ndarray:
    return np.array([[x, y, height, speed, length, 0.0]], np.float32)


@pytest.mark.parametrize(
    ("bound", "goals", "field", "value"),
    [
        (limit("speed", "value", 0.0, 2.0, "refuse"), goal(1, 2, 1, 2.5), "goal.speed", "2.5"),
        (limit("target", "height", 0.7, 1.2, "refuse"), goal(1, 2, 1.9), "goal.target", "1.9"),
        (limit("target", "distance", 0.0, 3.0, "refuse"), goal(5, 2, 1), "goal.target", "4"),
        (
            limit("direction", "length", 0.99, 1.01, "refuse"),
            goal(1, 2, 1, length=0.5),
            "goal.direction",
            "0.5",
        ),
    ],
)
def test_refusal_names_the_part_its_value_and_the_range(
    bound: GoalLimit, goals: np.ndarray, field: str, value: str
) -> None:
    with pytest.raises(Refusal) as refused:
        apply_limits([bound], GOAL, goals, ROOT)
    found = refused.value.problem
    assert found.field == field
    assert value in found.message
    assert found.expected == f"{bound.least:g} to {bound.most:g} m"


def test_a_limit_whose_least_is_above_its_most_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the least speed is 2\.0, above the most 1\.0"):
        limit("speed", "value", 2, 1, "clip")


def test_a_goal_within_its_limits_stays_the_same_array() -> None:
    goals = goal(1.5, 2, 1)
    limits = [limit("target", "distance", 0, 3, "clip"), limit("speed", "value", 0, 2, "clip")]
    assert apply_limits(limits, GOAL, goals, ROOT) is goals


def test_clipped_distance_keeps_direction_and_height() -> None:
    goals = goal(1 + 6, 2 + 8, 1.1)
    clipped = apply_limits([limit("target", "distance", 0, 5, "clip")], GOAL, goals, ROOT)
    np.testing.assert_allclose(clipped, goal(1 + 3, 2 + 4, 1.1), rtol=1e-6)
    np.testing.assert_array_equal(goals, goal(7, 10, 1.1))


def test_goal_value_height_and_length_clip_to_limits() -> None:
    limits = [
        limit("speed", "value", 0.5, 2, "clip"),
        limit("target", "height", 0.7, 1.2, "clip"),
        limit("direction", "length", 1, 1, "clip"),
    ]
    goals = np.concatenate([goal(1, 2, 0.1, 0.2, 3.0), goal(1, 2, 9, 9, 0.2)])
    clipped = apply_limits(limits, GOAL, goals, ROOT.repeat(2, 0))
    expected = np.concatenate([goal(1, 2, 0.7, 0.5), goal(1, 2, 1.2, 2.0)])
    np.testing.assert_allclose(clipped, expected, rtol=1e-6)


def test_target_near_the_float32_maximum_clips_without_overflow() -> None:
    goals = goal(3e38, 2, 1)
    clipped = apply_limits([limit("target", "distance", 0, 5, "clip")], GOAL, goals, ROOT)
    np.testing.assert_allclose(clipped, goal(6, 2, 1), rtol=1e-5)


def test_refusal_names_the_first_row_out_of_range() -> None:
    goals = np.concatenate([goal(1, 2, 1, 1), goal(1, 2, 1, 7), goal(1, 2, 1, 8)])
    with pytest.raises(Refusal, match=r"goal\[1\]\.speed is 7 m"):
        apply_limits([limit("speed", "value", 0, 2, "refuse")], GOAL, goals, ROOT.repeat(3, 0))


def with_parts() -> Graph:
    """The tiny controller, with a name for the parts of its goal."""
    state, whole = CONTROLLER.inputs
    goal = whole.model_copy(update={"slices": (TARGET,)})
    return CONTROLLER.model_copy(update={"inputs": (state, goal)})


def test_controller_lists_goal_limits_and_refuses_goals_beyond(store, serve) -> None:
    manifest = controller_manifest(store.resolve("humanoid"), name="walker")
    bound = limit("target", "height", -0.5, 0.5, "refuse")
    assert manifest.task is not None
    task = manifest.task.model_copy(update={"goal_limits": (bound,)})
    limited = manifest.model_copy(update={"task": task, "graphs": {"controller": with_parts()}})
    store.publish(limited, {"controller.onnx": controller(0)})
    service = serve(store.root)
    listed = service.get("/controllers/walker").json()["goal_limits"]
    assert listed == [bound.model_dump()]
    body = {"state": state_rows(1)[0].tolist(), "goal": (goal_rows(1)[0] * 0).tolist()}
    assert service.post("/controllers/walker/act", json=body).status_code == 200
    body["goal"][2] = 3.0
    response = service.post("/controllers/walker/act", json=body)
    problem(response, 422, "goal_out_of_range", "goal.target")


def test_an_example_is_within_the_limits() -> None:
    limits = [
        limit("speed", "value", 0.7, 1.1, "refuse"),
        limit("target", "height", 0.7, 1.2, "refuse"),
        limit("target", "distance", 1.0, 3.0, "refuse"),
        limit("direction", "length", 0.99, 1.01, "refuse"),
    ]
    example = example_goal(GOAL, limits)
    assert apply_limits(limits, GOAL, example, ROOT * 0) is example


def test_goal_is_accepted_by_the_name_of_its_part() -> None:
    spec = InputSpec("goal", with_parts().input("goal"), 8)
    named = read({"target": [1.0, 2.0, 0.5]}, spec)
    np.testing.assert_array_equal(named.array, read([1.0, 2.0, 0.5], spec).array)
    with pytest.raises(Refusal, match="there are: target"):
        read({"place": [1.0, 2.0, 0.5]}, spec)


def test_a_session_keeps_the_goal_before_a_refused_one(store) -> None:
    manifest = controller_manifest(store.resolve("humanoid"), name="walker")
    assert manifest.task is not None
    bound = limit("target", "height", -0.5, 0.5, "refuse")
    task = manifest.task.model_copy(update={"goal_limits": (bound,)})
    limited = manifest.model_copy(update={"task": task, "graphs": {"controller": with_parts()}})
    store.publish(limited, {"controller.onnx": controller(0)})
    state = state_rows(1)[0].tolist()

    async def run_session() -> None:
        service = make_service(Settings(store=store.root))
        session = await open_session(service, {"controller": "walker", "hold": 2})
        first = await session.step(Step(state=state, goal=[0.1, 0.2, 0.3]))
        for wrong in (Step(state=state, goal=[0.0, 0.0, 3.0]), Step(goal=[0.0, 0.0, 3.0])):
            with pytest.raises(Refusal, match="out of range"):
                await session.step(wrong)
        await session.step(Step(state=state))
        again = await session.step(Step(state=state))
        np.testing.assert_array_equal(again["z"], first["z"])

    asyncio.run(run_session())


def test_a_manifest_with_a_limit_on_no_part_of_the_goal_is_refused(store) -> None:
    manifest = controller_manifest(store.resolve("humanoid"), name="walker").model_dump()
    manifest["task"]["goal_limits"] = [limit("nowhere", "value", 0, 1, "refuse").model_dump()]
    with pytest.raises(ValueError, match="no part 'nowhere' of the goal"):
        type(controller_manifest(store.resolve("humanoid"))).model_validate(manifest)
