"""Loads the weights of a published ONNX graph into networks of the same layers."""

from __future__ import annotations

from collections.abc import Mapping

import onnx
import torch
from onnx import numpy_helper
from torch import Tensor, nn

from pretrain.rl.mirror_net import MirrorLinear, linear_layers
from pretrain.rl.nets import Normalizer

Weights = Mapping[str, Tensor]
Layer = tuple[Tensor, Tensor]  # weight (O, I) and bias (O,)


def read_weights(graph: bytes) -> Weights:
    """The initializers of an ONNX graph, by name."""
    stored = onnx.load_from_string(graph).graph.initializer
    return {part.name: torch.tensor(numpy_helper.to_array(part)) for part in stored}


def read_weight(weights: Weights, name: str) -> Tensor:
    """The weight `name`. ValueError where there is none."""
    if name not in weights:
        raise ValueError(
            f"the published graph has no weights {name!r}: it is quantized, or another program "
            "exported it; expected a graph of this program in float32"
        )
    return weights[name]


def read_layers(weights: Weights, body: str) -> list[Layer]:
    """All linear layers of the network `body`; ReLUs have the odd numbers."""
    first = (read_weight(weights, f"{body}.0.weight"), read_weight(weights, f"{body}.0.bias"))
    layers = [first]
    while (name := f"{body}.{2 * len(layers)}.weight") in weights:
        layers.append((weights[name], read_weight(weights, f"{body}.{2 * len(layers)}.bias")))
    return layers


def check_sizes(body: nn.Sequential, layers: list[Layer], key: str) -> None:
    """Raise ValueError where `layers` have other hidden sizes than `body`, which `key` sets."""
    own = [layer.out_features for layer in linear_layers(body)[:-1]]
    published = [len(bias) for _, bias in layers[:-1]]
    if own != published:
        raise ValueError(f"{key} is {own}, and the published network has {published}")


@torch.no_grad()
def set_layers(body: nn.Sequential, layers: list[Layer]) -> None:
    for layer, (weight, bias) in zip(linear_layers(body), layers, strict=True):
        if isinstance(layer, MirrorLinear):
            layer.load_dense(weight, bias)
        else:
            layer.weight.copy_(weight)
            layer.bias.copy_(bias)


@torch.no_grad()
def set_normalizer(net: Normalizer, weights: Weights, name: str) -> None:
    net.mean.copy_(read_weight(weights, f"{name}.mean"))
    net.std.copy_(read_weight(weights, f"{name}.std"))
