"""The exported ONNX graph of every task's controller matches the network."""

from __future__ import annotations

import pytest
import torch

from hlc.config import CONFIG_MODEL, ControllerPPOConfig
from hlc.export import export_policy
from hlc.nets import make_nets
from hlc.parent import Parent
from hlc.tasks import TASKS
from hlc.tasks.task import goal_width
from skills_store.admission.gate import admit
from tests.hlc.bodies import clip_states


@pytest.mark.parametrize("name", TASKS)
def test_exported_graph_matches_the_network_and_is_admitted(name: str, parent: Parent) -> None:
    """Also on displaced states and on goals hundreds of meters away."""
    task = CONFIG_MODEL(task=name).chosen_task()
    rng = torch.Generator().manual_seed(0)
    nets = make_nets(
        ControllerPPOConfig(hidden=(16,)), task, parent.clips, parent.skills.latent_dim, rng
    )
    recorded = clip_states(parent, 64).flatten()
    exported = export_policy(nets.policy, task, parent, recorded, 0)
    admit(name, exported.data, exported.graph)
    graph = exported.graph
    assert graph.parity.max_abs_error <= 1e-5
    goal = graph.input("goal")
    assert goal.width == goal_width(task)
    assert goal.slices is not None
    layout = [(part.name, part.start, part.stop, part.frame) for part in task.goal_layout()]
    assert [(x.name, x.start, x.stop, x.frame) for x in goal.slices] == layout
