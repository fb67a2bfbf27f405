"""The weights of a published library's policy and encoder, to go on training from.

A published version holds no value net and no optimizer, and its discriminator depends on the clips
it learned from: these three begin anew.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx
import torch
from onnx import numpy_helper
from torch import Tensor, nn
from torch.nn.functional import normalize

from pretrain.ase.encoder import Encoder, embed_clips
from pretrain.ase.nets import SkillNets
from pretrain.ase.reference_windows import ReferenceWindows
from pretrain.rl.mirror_net import MirrorLinear, linear_layers
from pretrain.rl.nets import Normalizer

Weights = Mapping[str, Tensor]


def read_weights(graph: bytes) -> Weights:
    """The initializers of an ONNX graph, by name."""
    stored = onnx.load_from_string(graph).graph.initializer
    return {part.name: torch.tensor(numpy_helper.to_array(part)) for part in stored}


@torch.no_grad()
def load_policy(nets: SkillNets, weights: Weights) -> None:
    """Set the policy to the published one: the same joint targets for the same states.

    The action scale stays that of the present clips; the last layer makes up for the difference.
    ValueError if the layers have other sizes, or the present ones a symmetry that those have not.
    """
    layers = _read_layers(weights, "policy.body")
    _check_sizes(nets.policy.body, layers, "ppo.hidden")
    ratio = _read(weights, "scale") / nets.action_scale.scale
    shift = (_read(weights, "offset") - nets.action_scale.offset) / nets.action_scale.scale
    weight, bias = layers[-1]
    layers[-1] = (ratio[:, None] * weight, ratio * bias + shift)
    obs = nets.policy.inputs.parts["obs"]
    assert isinstance(obs, Normalizer)
    _load_normalizer(obs, weights, "policy.inputs.parts.obs")
    _load_layers(nets.policy.body, layers)


@torch.no_grad()
def load_encoder(
    net: Encoder, weights: Weights, demos: ReferenceWindows, latents: Mapping[int, Tensor]
) -> None:
    """Set the encoder to the published one. Clips keep their published `latents`, clip -> (D,);
    all others are embedded. ValueError as of `load_policy`."""
    layers = _read_layers(weights, "head.body")
    _check_sizes(net.body, layers, "enc.hidden")
    _load_normalizer(net.norm, weights, "head.norm")
    _load_layers(net.body, layers)
    net.clip_latents.copy_(embed_clips(net, demos))
    for clip, latent in latents.items():
        net.clip_latents[clip] = normalize(latent, dim=-1)


def _read(weights: Weights, name: str) -> Tensor:
    if name not in weights:
        raise ValueError(
            f"the published graph has no weights {name!r}: it is quantized, or another program "
            "exported it; expected a library of this program in float32"
        )
    return weights[name]


def _read_layers(weights: Weights, body: str) -> list[tuple[Tensor, Tensor]]:
    """(weight, bias) of all linear layers; ReLUs have the odd numbers."""
    layers = [(_read(weights, f"{body}.0.weight"), _read(weights, f"{body}.0.bias"))]
    while (name := f"{body}.{2 * len(layers)}.weight") in weights:
        layers.append((weights[name], _read(weights, f"{body}.{2 * len(layers)}.bias")))
    return layers


def _check_sizes(body: nn.Sequential, layers: list[tuple[Tensor, Tensor]], key: str) -> None:
    own = [layer.out_features for layer in linear_layers(body)[:-1]]
    published = [len(bias) for _, bias in layers[:-1]]
    if own != published:
        raise ValueError(f"{key} is {own}, and the published network has {published}")


def _load_layers(body: nn.Sequential, layers: list[tuple[Tensor, Tensor]]) -> None:
    for layer, (weight, bias) in zip(linear_layers(body), layers, strict=True):
        if isinstance(layer, MirrorLinear):
            layer.load_dense(weight, bias)
        else:
            layer.weight.copy_(weight)
            layer.bias.copy_(bias)


def _load_normalizer(net: Normalizer, weights: Weights, name: str) -> None:
    net.mean.copy_(_read(weights, f"{name}.mean"))
    net.std.copy_(_read(weights, f"{name}.std"))
