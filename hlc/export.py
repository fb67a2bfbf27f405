"""Exports a controller to one ONNX graph, checked, with a manifest that names the digest of the
skills it was trained on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from hlc.config import HlcConfig
from hlc.evaluate import PARENT
from hlc.nets import observation
from hlc.parent import Parent
from hlc.task_env import on_sphere
from hlc.tasks.task import Task, goal_width
from pretrain.characters.state import unflatten
from pretrain.publishing.lineage import make_lineage
from pretrain.publishing.onnx_graph import check_parity, describe_graph, export
from pretrain.publishing.slices import to_slices
from pretrain.rl.nets import GaussianPolicy
from pretrain.rl.run_folder import PLACES
from skills_store import graph as g
from skills_store import manifest as m

FILE = "controller.onnx"


class ControllerGraph(nn.Module):
    """state (B, S), goal (B, G) -> z (B, D), unit rows: the policy's mean. Includes features and
    normalizers."""

    def __init__(self, policy: GaussianPolicy, task: Task):
        super().__init__()
        self.policy = policy
        self.task = task

    def forward(self, state: Tensor, goal: Tensor) -> Tensor:
        return on_sphere(self.policy(observation(self.task, unflatten(state), goal)))


@dataclass(frozen=True)
class ExportedController:
    """A controller's graph: manifest entry and file."""

    graph: g.Graph
    data: bytes


def export_policy(
    policy: GaussianPolicy, task: Task, parent: Parent, recorded: Tensor, seed: int
) -> ExportedController:
    """The graph, checked on `recorded` states (n, S) with drawn goals, and on extreme ones."""
    rng = torch.Generator().manual_seed(seed)
    goals = task.draw(unflatten(recorded), rng)
    wild_states, wild_goals = _extremes(recorded, goals, rng)
    rows = {"state": torch.cat([recorded, wild_states]), "goal": torch.cat([goals, wild_goals])}
    module = ControllerGraph(policy, task)
    data = export(module, {key: x[:3] for key, x in rows.items()}, "z")
    parity = check_parity("controller", data, module, rows, "z")
    return ExportedController(declare_graph(task, parent, parity), data)


def declare_graph(task: Task, parent: Parent, parity: g.Parity) -> g.Graph:
    """The manifest entry of a controller's graph."""
    slices = to_slices(task.goal_layout())
    inputs = (
        parent.version.manifest.graphs["policy"].input("state"),  # the policy's own state
        g.Tensor(name="goal", shape=("B", goal_width(task)), slices=slices),
    )
    output = parent.version.manifest.graphs["encoder"].outputs[0]  # the library's z
    return describe_graph(FILE, inputs, output, parity)


def _extremes(states: Tensor, goals: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """States far from the clips, spinning and upside down, with goals up to hundreds of meters
    off; and the all-zero pose at rest."""
    wild = states + 3.0 * states.std(0) * torch.randn(states.shape, generator=rng)
    wild[:, 3:7] = on_sphere(torch.randn(len(states), 4, generator=rng))
    wild[:, 7:13] *= 10.0
    far = goals + 100.0 * torch.randn(goals.shape, generator=rng)
    rest = torch.zeros_like(wild[:1])
    rest[:, 3] = 1.0
    return torch.cat([wild, rest]), torch.cat([far, torch.zeros_like(far[:1])])


def build_manifest(
    cfg: HlcConfig, parent: Parent, graph: g.Graph, card: dict[str, Any]
) -> m.Manifest:
    """The manifest of a controller. Character and licence are those of its skills."""
    version = parent.version
    skills = version.manifest
    config = {**cfg.model_dump(mode="json", exclude=PLACES), PARENT: skills.lineage.config}
    bound = m.Parent(name=version.name, version=version.number, digest=version.digest)
    return m.Manifest(
        kind="controller",
        name=cfg.task,
        character=skills.character,
        graphs={"controller": graph},
        latent=m.Latent(dim=skills.latent.dim),
        task=m.Task(
            name=cfg.task,
            llc_steps=cfg.llc_steps,
            parent=bound,
            goal_limits=cfg.chosen_task().goal_limits(),
        ),
        card=card,
        lineage=make_lineage(config, cfg.seed, skills.lineage.clips),
        licence=skills.licence,
    )
