"""What is read of a published controller's training."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hlc.evaluate import trained_task
from hlc.tasks.reach import Reach
from skills_store.store import BUNDLED, Store
from skills_store.version import Version


def change_lineage(version: Version, **changes: Any) -> Version:
    manifest = version.manifest
    lineage = manifest.lineage
    changed = lineage.model_copy(update={"config": dict(lineage.config) | changes})
    return replace(version, manifest=manifest.model_copy(update={"lineage": changed}))


def test_task_is_read_despite_keys_of_another_release() -> None:
    version = change_lineage(Store(BUNDLED).resolve("reach@1"), removed_key=1)
    task = trained_task("a", version, {"goal_time_min": 2.5})
    assert isinstance(task, Reach)
    assert task.goal_time_min == 2.5


def test_unknown_task_error_lists_the_tasks() -> None:
    version = change_lineage(Store(BUNDLED).resolve("reach@1"), task="swim")
    with pytest.raises(ValueError, match=r"reach@1 is of task 'swim', expected one of .*reach"):
        trained_task("a", version, {})
