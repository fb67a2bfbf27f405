"""Builds a task from a user's parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from hlc.tasks import TASKS
from hlc.tasks.task import Task
from pretrain.overrides import ConfigError, describe_error


def make_task(label: str, task: str, parameters: Mapping[str, Any]) -> Task:
    """The task of that name in TASKS, with `parameters` in place of its defaults.

    Raises ConfigError, which begins with `label` and lists the task's parameters."""
    try:
        return TASKS[task].model_validate(parameters)
    except ValidationError as error:
        reasons = "; ".join(map(describe_error, error.errors()))
        existing = ", ".join(TASKS[task].model_fields)
        raise ConfigError(f"{label}: {reasons}; parameters of {task}: {existing}") from None
