"""What /plan computes: request fields in, reply fields out. Independent of the encoding."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import ValidationError

from serving.models.goal_limits import apply_limits, find_root
from serving.models.planning import require_extra
from serving.models.service import Service
from serving.models.skills import ServedSkill
from serving.wire import rows
from serving.wire.plan_schemas import PlanRequest
from serving.wire.problems import Refusal, describe_value, from_store, invalid, quoted
from serving.wire.schemas import validate
from skills_store.errors import StoreError
from skills_store.graph import Slice, Tensor
from skills_store.manifest import GoalLimit

if TYPE_CHECKING:
    from serving.models.planning import SinglePlanner


@dataclass(frozen=True)
class CheckedRequest:
    """A request that was checked against the skill, not yet against its task."""

    fields: PlanRequest
    state: np.ndarray  # (1, S)
    root: np.ndarray  # (1, 3) m
    last_z: np.ndarray | None  # (D,)


async def plan(service: Service, fields: object) -> dict[str, Any]:
    """Simulate skills from a state for a task. The reply has the one with the highest return, its
    joint targets and that return. Raises Refusal."""
    require_extra()
    request = validate(PlanRequest, fields)
    skill = await service.get_skill(request.skill)
    state = rows.read(request.state, skill.specs["state"].row).array
    root = state[:, find_root(skill.specs["state"].tensor)]
    last_z, moved = _read_z(request, skill)
    checked = CheckedRequest(request, state, root, last_z)
    try:
        answer = await service.planners.run(
            skill.version.pinned, lambda planner: plan_task(planner, checked)
        )
    except (StoreError, OSError) as error:
        raise from_store(error, "skill") from error
    except ValueError as error:  # the version or the state cannot be simulated
        raise _not_simulated(quoted(str(error), 400)[1:-1]) from error
    if not isfinite(answer["predicted_return"]):
        raise _not_simulated("no return can be predicted: some number is far out of reach")
    targets = await skill.policy_batcher.submit(checked.state, answer["z"][None])
    return {**answer, "targets": targets[0], "z_normalised": moved, "skill": skill.stamp}


def plan_task(planner: SinglePlanner, checked: CheckedRequest) -> dict[str, Any]:
    """Runs on the planner's thread. Raises Refusal, and ValueError as `SinglePlanner.plan`."""
    fields = checked.fields
    try:
        task = planner.make_task(fields.task, fields.parameters or {})
    except KeyError as error:
        message = f"no task {quoted(fields.task)}; there are: {error.args[0]}"
        raise Refusal(404, "unknown_task", message, "task", "one of those") from error
    except ValidationError as error:
        names = planner.list_parameters(fields.task)
        raise _wrong_parameter(error, names) from error
    except ValueError as error:
        message = quoted(str(error), 400)[1:-1]
        raise invalid(
            "wrong_parameter", message, "parameters", "a body of the character"
        ) from error
    parts = task.goal_layout()
    slices = tuple(Slice(**asdict(part)) for part in parts)
    tensor = Tensor(name="goal", shape=("B", parts[-1].stop), slices=slices)
    goal = _read_goal(checked, tensor, task.goal_limits())
    seed = secrets.randbits(63) if fields.seed is None else fields.seed
    skill_plan = planner.plan(task, checked.state[0], goal[0], seed=seed, last_z=checked.last_z)
    return {
        "z": skill_plan.z,
        "predicted_return": skill_plan.predicted_return,
        "horizon": planner.horizon,
        "llc_steps": planner.llc_steps,
    }


def _read_goal(checked: CheckedRequest, tensor: Tensor, limits: Sequence[GoalLimit]) -> np.ndarray:
    """A goal (1, G). Raises Refusal, also for one that the task's controllers refuse. A place that
    they clip is left: what is simulated need not have been trained."""
    goal = rows.read(checked.fields.goal, rows.InputSpec("goal", tensor, 1, "row")).array
    refusing = [limit for limit in limits if limit.beyond == "refuse"]
    return apply_limits(refusing, tensor, goal, checked.root)


def _not_simulated(message: str) -> Refusal:
    expected = "a state and a skill library that can be simulated"
    return invalid("not_simulated", message, None, expected)


def _read_z(request: PlanRequest, skill: ServedSkill) -> tuple[np.ndarray | None, bool]:
    """`last_z` (D,) on the sphere, and whether it was normalised."""
    if request.last_z is None:
        return None, False
    spec = replace(skill.specs["z"], field="last_z", form="row", named=False)
    parsed = rows.read(request.last_z, spec)
    on_sphere, moved = rows.project_to_sphere(parsed, "last_z", strict=False)
    return on_sphere[0], moved


def _wrong_parameter(error: ValidationError, names: Sequence[str]) -> Refusal:
    """The Refusal of the first wrong one of a task's parameters, which are `names`."""
    first = error.errors(include_url=False)[0]
    field = quoted(".".join(["parameters", *map(str, first["loc"])]))[1:-1]
    existing = f"one of: {', '.join(names)}"
    if first["type"] == "extra_forbidden":
        return invalid("wrong_parameter", f"no parameter {field}", field, existing)
    reason = first["msg"].removeprefix("Value error, ")
    if not first["loc"]:  # a rule over several parameters names their values itself
        return invalid("wrong_parameter", f"{field}: {reason}", field, existing)
    message = f"{field} is {describe_value(first['input'])}: {reason}"
    return invalid("wrong_parameter", message, field, reason.removeprefix("Input should be "))
