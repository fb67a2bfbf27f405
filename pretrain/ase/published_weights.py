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
from pretrain.rl.mirror_net import MirrorLinear
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
    ValueError if the layers have other sizes.
    """
    obs = nets.policy.inputs.parts["obs"]
    assert isinstance(obs, Normalizer)
    _load_normalizer(obs, weights, "policy.inputs.parts.obs")
    layers = _read_layers(weights, "policy.body", len(_layers(nets.policy.body)))
    ratio = _read(weights, "scale") / nets.action_scale.scale
    shift = (_read(weights, "offset") - nets.action_scale.offset) / nets.action_scale.scale
    weight, bias = layers[-1]
    layers[-1] = (ratio[:, None] * weight, ratio * bias + shift)
    _load_layers(nets.policy.body, layers, "policy")


@torch.no_grad()
def load_encoder(
    net: Encoder, weights: Weights, demos: ReferenceWindows, latents: Mapping[int, Tensor]
) -> None:
    """Set the encoder to the published one. Clips keep their published `latents`, clip -> (D,);
    all others are embedded. ValueError if the layers have other sizes."""
    _load_normalizer(net.norm, weights, "head.norm")
    layers = _read_layers(weights, "head.body", len(_layers(net.body)))
    _load_layers(net.body, layers, "encoder")
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


def _read_layers(weights: Weights, body: str, count: int) -> list[tuple[Tensor, Tensor]]:
    """(weight, bias) of the first `count` linear layers; ReLUs have the odd numbers."""
    numbers = range(0, 2 * count, 2)
    return [
        (_read(weights, f"{body}.{i}.weight"), _read(weights, f"{body}.{i}.bias")) for i in numbers
    ]


def _layers(body: nn.Sequential) -> list[nn.Linear | MirrorLinear]:
    return [layer for layer in body if isinstance(layer, nn.Linear | MirrorLinear)]


def _load_layers(body: nn.Sequential, layers: list[tuple[Tensor, Tensor]], net: str) -> None:
    own = _layers(body)
    sizes = [own[0].in_features, *(layer.out_features for layer in own)]
    published = [layers[0][0].shape[1], *(len(bias) for _, bias in layers)]
    if sizes != published:
        raise ValueError(
            f"the published {net} has layers of {published}, the configured one of {sizes}; "
            "expected the same body, latent.latent_dim, num_disc_obs_steps, ppo.hidden, enc.hidden"
        )
    for layer, (weight, bias) in zip(own, layers, strict=True):
        if isinstance(layer, MirrorLinear):
            layer.load_dense(weight, bias)
        else:
            layer.weight.copy_(weight)
            layer.bias.copy_(bias)


def _load_normalizer(net: Normalizer, weights: Weights, name: str) -> None:
    net.mean.copy_(_read(weights, f"{name}.mean"))
    net.std.copy_(_read(weights, f"{name}.std"))
