"""Loads a published library's policy and encoder for further training.

A published version has no value net and no optimizer state, and its discriminator depends on the
clips of its training: these three start fresh."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn.functional import normalize

from pretrain.ase.encoder import Encoder, embed_clips
from pretrain.ase.nets import SkillNets
from pretrain.ase.reference_windows import ReferenceWindows
from pretrain.rl.graph_weights import (
    Weights,
    check_sizes,
    read_layers,
    read_weight,
    set_layers,
    set_normalizer,
)
from pretrain.rl.nets import Normalizer


@torch.no_grad()
def load_policy(nets: SkillNets, weights: Weights) -> None:
    """Set the policy to the published one: the same joint targets for the same states.

    The action scale stays that of the present clips; the last layer is rescaled to compensate.
    ValueError if the published layers have other sizes or lack the present symmetry."""
    layers = read_layers(weights, "policy.body")
    check_sizes(nets.policy.body, layers, "ppo.hidden")
    ratio = read_weight(weights, "scale") / nets.action_scale.scale
    shift = read_weight(weights, "offset") - nets.action_scale.offset
    weight, bias = layers[-1]
    layers[-1] = (ratio[:, None] * weight, ratio * bias + shift / nets.action_scale.scale)
    obs = nets.policy.inputs.parts["obs"]
    assert isinstance(obs, Normalizer)
    set_normalizer(obs, weights, "policy.inputs.parts.obs")
    set_layers(nets.policy.body, layers)


@torch.no_grad()
def load_encoder(
    net: Encoder, weights: Weights, demos: ReferenceWindows, latents: Mapping[int, Tensor]
) -> None:
    """Set the encoder to the published one. Clips keep their published `latents`, clip -> (D,); all
    others are embedded. ValueError as in `load_policy`."""
    layers = read_layers(weights, "head.body")
    check_sizes(net.body, layers, "enc.hidden")
    set_normalizer(net.norm, weights, "head.norm")
    set_layers(net.body, layers)
    net.clip_latents.copy_(embed_clips(net, demos))
    for clip, latent in latents.items():
        net.clip_latents[clip] = normalize(latent, dim=-1)
