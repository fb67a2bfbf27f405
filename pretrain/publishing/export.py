"""Exports networks as a published skill library: the ONNX graphs include features, normalizers and
action scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from pretrain.ase.discriminator import Discriminator
from pretrain.ase.encoder import embed_clips
from pretrain.ase.latents import sample_on_sphere
from pretrain.ase.nets import SkillNets
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import layout, unflatten
from pretrain.config import PretrainConfig
from pretrain.motion.licences import join_licences
from pretrain.publishing.graph_metadata import with_metadata
from pretrain.publishing.lineage import describe_clips, make_lineage
from pretrain.publishing.manifest_character import to_manifest
from pretrain.publishing.onnx_graph import check_parity, describe_graph, export
from pretrain.publishing.slices import to_slices
from pretrain.publishing.start_states import write_starts
from pretrain.rl.run_folder import PLACES
from pretrain.sim.features import proprioception, style_frame
from pretrain.sim.ground import read_ground
from pretrain.training_data import TrainingData
from skills_store import graph as g
from skills_store import manifest as m

START_FRAMES = 3000  # of clips that are published as start states, about; of each at least 60


class PolicyGraph(nn.Module):
    """state (B, S), z (B, D) -> joint targets (B, J) rad. z is projected to the unit sphere
    first."""

    def __init__(self, nets: SkillNets):
        super().__init__()
        self.policy = nets.average.module
        self.register_buffer("offset", nets.action_scale.offset)
        self.register_buffer("scale", nets.action_scale.scale)

    def forward(self, state: Tensor, z: Tensor) -> Tensor:
        obs = proprioception(unflatten(state))
        return self.offset + self.scale * self.policy({"obs": obs, "z": normalize(z, dim=-1)})


class WindowGraph(nn.Module):
    """window (B, W, S) -> `head` of its style features."""

    def __init__(self, skeleton: Skeleton, head: nn.Module):
        super().__init__()
        self.skeleton = skeleton
        self.head = head

    def forward(self, window: Tensor) -> Tensor:
        return self.head(style_frame(self.skeleton, unflatten(window)).flatten(1))


class StyleProbability(nn.Module):
    """The discriminator's probability for a style window, in (0, 1): the largest over the clips."""

    def __init__(self, discriminator: Discriminator):
        super().__init__()
        self.discriminator = discriminator

    def forward(self, window: Tensor) -> Tensor:
        return torch.sigmoid(self.discriminator.best_logit(window))


@dataclass(frozen=True)
class ExportedGraphs:
    graphs: dict[str, g.Graph]
    files: dict[str, bytes]


@dataclass(frozen=True)
class GraphPlan:
    """A graph to be exported, and rows on which its parity is checked."""

    module: nn.Module
    rows: dict[str, Tensor]
    inputs: tuple[g.Tensor, ...]
    output: g.Tensor


def export_nets(nets: SkillNets, skeleton: Skeleton, recorded: Tensor, seed: int) -> ExportedGraphs:
    """The three graphs, with parity checked on `recorded` windows (n, W, S) and on extreme ones."""
    rng = torch.Generator().manual_seed(seed)
    windows = torch.cat([recorded, _make_extremes(recorded, rng)])
    graphs: dict[str, g.Graph] = {}
    files: dict[str, bytes] = {}
    for name, plan in plan_graphs(nets, skeleton, windows, rng).items():
        file = f"{name}.onnx"
        output = plan.output.name
        files[file] = export(plan.module, {key: x[:3] for key, x in plan.rows.items()}, output)
        parity = check_parity(name, files[file], plan.module, plan.rows, output)
        graphs[name] = describe_graph(file, plan.inputs, plan.output, parity)
    return ExportedGraphs(graphs, files)


def plan_graphs(
    nets: SkillNets, skeleton: Skeleton, windows: Tensor, rng: torch.Generator
) -> dict[str, GraphPlan]:
    """Policy, encoder and style graph, checked on `windows` (n, W, S)."""
    latent_dim = nets.encoder.latent_dim
    steps, width = windows.shape[1:]
    states = windows[:, -1].contiguous()
    z = sample_on_sphere(len(states), latent_dim, rng)
    slices = to_slices(layout(skeleton.num_hinges))
    state = g.Tensor(name="state", shape=("B", width), slices=slices)
    latent = g.make_latent_tensor(latent_dim)
    window = g.Tensor(name="window", shape=("B", steps, width), slices=slices)
    style = WindowGraph(skeleton, StyleProbability(nets.discriminator))
    return {
        "policy": GraphPlan(
            PolicyGraph(nets),
            {"state": states, "z": z},
            (state, latent),
            g.make_target_tensor(skeleton.hinges),
        ),
        "encoder": GraphPlan(
            WindowGraph(skeleton, nets.encoder), {"window": windows}, (window,), latent
        ),
        "style": GraphPlan(
            style, {"window": windows}, (window,), g.Tensor(name="style", shape=("B",))
        ),
    }


def _make_extremes(recorded: Tensor, rng: torch.Generator) -> Tensor:
    """States far outside of the training distribution: thrown, spinning, upside down, joints at
    +-pi; and the all-zero pose at rest."""
    wild = recorded[torch.randperm(len(recorded), generator=rng)].clone()
    wild += 3.0 * wild.std((0, 1)) * torch.randn(wild.shape, generator=rng)
    wild[..., 3:7] = sample_on_sphere(wild[..., 3:7].numel() // 4, 4, rng).view(*wild.shape[:-1], 4)
    wild[..., 7:13] *= 10.0
    rest = torch.zeros_like(wild[:1])
    rest[..., 3] = 1.0
    return torch.cat([wild, rest])


@dataclass(frozen=True)
class TrainedLibrary:
    """A trained library before publication."""

    nets: SkillNets
    exported: ExportedGraphs
    action_std: float  # of the policy's noise at the end of training, before the action scale
    parent_licence: str = ""  # of the parent library; empty: none


def build_version(
    cfg: PretrainConfig, data: TrainingData, trained: TrainedLibrary, card: dict[str, Any]
) -> tuple[m.Manifest, dict[str, bytes]]:
    """The manifest of a published library and its files: graphs with metadata, and start states."""
    upright = read_ground(data.library, data.character.skeleton).upright
    excerpts, frames = write_starts(data.library, upright, START_FRAMES)
    manifest = build_manifest(cfg, data, trained, card)
    files = with_metadata(manifest, trained.exported.files)
    return manifest.model_copy(update={"starts": excerpts}), {**files, excerpts.file: frames}


def build_manifest(
    cfg: PretrainConfig, data: TrainingData, trained: TrainedLibrary, card: dict[str, Any]
) -> m.Manifest:
    """The manifest of a published library, without its start states."""
    # from the trained encoder: near the `clip_latents` of training, but not equal to them
    latents = embed_clips(trained.nets.encoder, data.demos)
    clips = {name: _to_floats(z) for name, z in zip(data.library.names, latents, strict=True)}
    scale = trained.nets.action_scale
    config = cfg.model_dump(mode="json", exclude=PLACES)
    licences = sorted({clip.licence for clip in data.dataset.clips})
    parents = [trained.parent_licence] if trained.parent_licence else []
    return m.Manifest(
        kind="skills",
        name=cfg.name,
        character=to_manifest(data.character),
        graphs=trained.exported.graphs,
        latent=m.Latent(dim=cfg.latent.latent_dim, clips=clips),
        action=m.Action(
            offset=_to_floats(scale.offset),
            scale=_to_floats(scale.scale),
            std=_to_floats(scale.scale * trained.action_std),
        ),
        card=card,
        lineage=make_lineage(config, cfg.seed, describe_clips(data.dataset)),
        licence=join_licences([*licences, *parents]),
    )


def _to_floats(x: Tensor) -> tuple[float, ...]:
    return tuple(np.asarray(x, dtype=np.float32).tolist())
