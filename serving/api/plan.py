"""What /plan computes: request fields in, reply fields out. Independent of the encoding."""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import ValidationError

from serving.models.planning import require_extra
from serving.models.service import Service
from serving.models.skills import ServedSkill
from serving.wire import rows
from serving.wire.plan_schemas import PlanRequest
from serving.wire.problems import Refusal, from_store, invalid, quoted
from serving.wire.schemas import validate
from skills_store.errors import StoreError
from skills_store.graph import Slice, Tensor

if TYPE_CHECKING:
    from serving.models.planning import SinglePlanner


@dataclass(frozen=True)
class CheckedRequest:
    """A request that was checked against the skill, not yet against its task."""

    fields: PlanRequest
    state: np.ndarray  # (1, S)
    last_z: np.ndarray | None  # (D,)


async def plan(service: Service, fields: object) -> dict[str, Any]:
    """Simulate skills from a state for a task. The reply has the one with the highest return, its
    joint targets and that return. Raises Refusal."""
    require_extra()
    request = validate(PlanRequest, fields)
    skill = await service.get_skill(request.skill)
    checked = CheckedRequest(
        request, read_row(request.state, skill.specs["state"]), _read_z(request, skill)
    )
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
    return {**answer, "targets": targets[0], "skill": skill.stamp}


def plan_task(planner: SinglePlanner, checked: CheckedRequest) -> dict[str, Any]:
    """Runs on the planner's thread. Raises Refusal, and ValueError as `SinglePlanner.plan`."""
    fields = checked.fields
    try:
        task = planner.make_task(fields.task, fields.parameters or {})
    except KeyError as error:
        message = f"no task {quoted(fields.task)}; there are: {error.args[0]}"
        raise Refusal(404, "unknown_task", message, "task", "one of those") from error
    except ValidationError as error:
        raise _wrong_parameter(error) from error
    except ValueError as error:
        message = quoted(str(error), 400)[1:-1]
        raise invalid(
            "wrong_parameter", message, "parameters", "a body of the character"
        ) from error
    parts = task.goal_layout()
    slices = tuple(Slice(**asdict(part)) for part in parts)
    tensor = Tensor(name="goal", shape=("B", parts[-1].stop), slices=slices)
    goal = read_row(fields.goal, rows.InputSpec("goal", tensor, 1))
    seed = secrets.randbits(63) if fields.seed is None else fields.seed
    skill_plan = planner.plan(task, checked.state[0], goal[0], seed=seed, last_z=checked.last_z)
    return {
        "z": skill_plan.z,
        "predicted_return": skill_plan.predicted_return,
        "horizon": planner.horizon,
        "llc_steps": planner.llc_steps,
    }


def _not_simulated(message: str) -> Refusal:
    expected = "a state and a skill library that can be simulated"
    return invalid("not_simulated", message, None, expected)


def read_row(value: object, spec: rows.InputSpec) -> np.ndarray:
    """One row, (1, width). Raises Refusal for a batch."""
    parsed = rows.read(value, replace(spec, limit=1))
    if not parsed.single:
        message = f"{spec.field} is a batch; a plan is made for one character"
        raise invalid("wrong_shape", message, spec.field, f"[{spec.width}]")
    return parsed.array


def _read_z(request: PlanRequest, skill: ServedSkill) -> np.ndarray | None:
    if request.last_z is None:
        return None
    spec = replace(skill.specs["z"], field="last_z")
    parsed = rows.Rows(read_row(request.last_z, spec), True)
    return rows.project_to_sphere(parsed, "last_z", strict=False)[0][0]


def _wrong_parameter(error: ValidationError) -> Refusal:
    first = error.errors(include_url=False, include_input=False)[0]
    name = ".".join(["parameters", *map(str, first["loc"])])
    return invalid("wrong_parameter", f"{quoted(name)[1:-1]}: {first['msg']}", "parameters")
