"""Networks -> published skill library: features, normalisers and action scale go inside the ONNX graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from pretrain.ase.latents import sphere
from pretrain.ase.nets import SkillNets
from pretrain.ase.skill import embed_clips
from pretrain.ase.style import Discriminator
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import layout, unflat
from pretrain.config import PretrainConfig
from pretrain.publishing.graph_metadata import with_metadata
from pretrain.publishing.lineage import describe_clips, make_lineage
from pretrain.publishing.manifest_character import to_manifest
from pretrain.publishing.onnx_graph import described, export, prove
from pretrain.publishing.start_states import write_starts
from pretrain.rl.run_folder import PLACES
from pretrain.sim.features import proprioception, style_frame
from pretrain.sim.ground import ground_of
from pretrain.training_data import Material
from skills_store import manifest as m


class PolicyGraph(nn.Module):
    """state (B, S), z (B, D) -> joint targets (B, J) rad. z is projected to the unit sphere first."""

    def __init__(self, nets: SkillNets):
        super().__init__()
        self.policy = nets.average.module
        self.register_buffer("offset", nets.action_scale.offset)
        self.register_buffer("scale", nets.action_scale.scale)

    def forward(self, state: Tensor, z: Tensor) -> Tensor:
        obs = proprioception(unflat(state))
        return self.offset + self.scale * self.policy({"obs": obs, "z": normalize(z, dim=-1)})


class WindowGraph(nn.Module):
    """window (B, W, S) -> what `head` makes of its style features."""

    def __init__(self, skeleton: Skeleton, head: nn.Module):
        super().__init__()
        self.skeleton, self.head = skeleton, head

    def forward(self, window: Tensor) -> Tensor:
        return self.head(style_frame(self.skeleton, unflat(window)).flatten(1))


class Likeness(nn.Module):
    """Probability that a style window is from the clip it looks most like, by the discriminator, in (0, 1)."""

    def __init__(self, discriminator: Discriminator):
        super().__init__()
        self.discriminator = discriminator

    def forward(self, window: Tensor) -> Tensor:
        return torch.sigmoid(self.discriminator.best(window))


@dataclass(frozen=True)
class Exported:
    graphs: dict[str, m.Graph]
    files: dict[str, bytes]


def export_nets(nets: SkillNets, skeleton: Skeleton, recorded: Tensor, seed: int) -> Exported:
    """The three graphs, proven on `recorded` windows (n, W, S) and on extreme ones."""
    latent_dim, width = nets.encoder.latent_dim, recorded.shape[-1]
    rng = torch.Generator().manual_seed(seed)
    windows = torch.cat([recorded, _extremes(recorded, rng)])
    states = windows[:, -1].contiguous()
    z = sphere(len(states), latent_dim, rng)
    slices = tuple(
        m.Slice(name=p.name, start=p.start, stop=p.stop, unit=p.unit, frame=p.frame)
        for p in layout(skeleton.num_hinges)
    )
    state = m.Tensor(name="state", shape=("B", width), slices=slices)
    latent = m.make_latent_tensor(latent_dim)
    window = m.Tensor(name="window", shape=("B", recorded.shape[1], width), slices=slices)
    targets = m.make_target_tensor(skeleton.hinges)
    likeness = m.Tensor(name="style", shape=("B",))
    plans: dict[str, tuple[nn.Module, dict[str, Tensor], tuple[m.Tensor, ...], m.Tensor]] = {
        "policy": (PolicyGraph(nets), {"state": states, "z": z}, (state, latent), targets),
        "encoder": (WindowGraph(skeleton, nets.encoder), {"window": windows}, (window,), latent),
        "style": (WindowGraph(skeleton, Likeness(nets.discriminator)), {"window": windows}, (window,), likeness),
    }
    graphs, files = {}, {}
    for name, (module, rows, inputs, output) in plans.items():
        data = export(module, {key: x[:3] for key, x in rows.items()}, output.name)
        parity = prove(name, data, module, rows, output.name)
        graphs[name], files[f"{name}.onnx"] = described(f"{name}.onnx", inputs, output, parity), data
    return Exported(graphs, files)


def _extremes(recorded: Tensor, rng: torch.Generator) -> Tensor:
    """States far outside of training: thrown, spinning, upside down, joints at +-pi; and the all-zero pose at rest."""
    wild = recorded[torch.randperm(len(recorded), generator=rng)].clone()
    wild += 3.0 * wild.std((0, 1)) * torch.randn(wild.shape, generator=rng)
    wild[..., 3:7] = sphere(wild[..., 3:7].numel() // 4, 4, rng).view(*wild.shape[:-1], 4)
    wild[..., 7:13] *= 10.0
    rest = torch.zeros_like(wild[:1])
    rest[..., 3] = 1.0
    return torch.cat([wild, rest])


def build_version(
    cfg: PretrainConfig,
    material: Material,
    nets: SkillNets,
    exported: Exported,
    card: dict[str, Any],
    action_std: float,
) -> tuple[m.Manifest, dict[str, bytes]]:
    """The manifest of a published library and its files: graphs that name their contract, and start states.

    `action_std` is that of the policy's noise at the end of training, before the action scale.
    """
    upright = ground_of(material.library, material.character.skeleton).upright
    starts = write_starts(material.library, upright, cfg.start_frames)
    manifest = build_manifest(cfg, material, nets, exported, card, action_std)
    files = with_metadata(manifest, exported.files)
    if starts is None:
        return manifest, files
    return manifest.model_copy(update={"starts": starts[0]}), {**files, starts[0].file: starts[1]}


def build_manifest(
    cfg: PretrainConfig,
    material: Material,
    nets: SkillNets,
    exported: Exported,
    card: dict[str, Any],
    action_std: float,
) -> m.Manifest:
    """Everything that a published library says of itself, but its start states."""
    latents = embed_clips(nets.encoder, material.demos)
    names = material.library.names
    scale = nets.action_scale
    return m.Manifest(
        kind="skills",
        name=cfg.name,
        character=to_manifest(material.character),
        graphs=exported.graphs,
        latent=m.Latent(dim=cfg.latent.latent_dim, clips={n: _plain(z) for n, z in zip(names, latents, strict=True)}),
        action=m.Action(
            offset=_plain(scale.offset),
            scale=_plain(scale.scale),
            std=_plain(scale.scale * action_std),
        ),
        card=card,
        lineage=make_lineage(cfg.model_dump(mode="json", exclude=PLACES), cfg.seed, describe_clips(material.dataset)),
        licence=" AND ".join(sorted({_term(clip.licence) for clip in material.dataset.clips})),
    )


def _term(licence: str) -> str:
    """Of an SPDX expression: AND binds closer than OR."""
    return f"({licence})" if " OR " in licence else licence


def _plain(x: Tensor) -> tuple[float, ...]:
    return tuple(np.asarray(x, dtype=np.float32).tolist())
