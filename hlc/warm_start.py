"""Warm start: training continues from a published controller's policy, for instance on a newer
version of its skill library, whose latents are nearly the same."""

from __future__ import annotations

import sys

from hlc.config import HlcConfig, WarmConfig
from hlc.nets import ControllerNets
from hlc.parent import Parent
from pretrain.rl.graph_weights import (
    Layer,
    check_sizes,
    read_layers,
    read_weights,
    set_layers,
    set_normalizer,
)
from pretrain.rl.mirror_net import linear_layers
from pretrain.rl.nets import Normalizer
from skills_store.store import Store
from skills_store.version import Version


def find_controller(cfg: HlcConfig, store: Store) -> Version | None:
    """The version that `warm.controller` names; None where it is empty.

    Raises ValueError where it is no controller, or one of another task, whose goals differ, or
    where another key of `warm` needs one, and StoreError where it does not exist."""
    if not cfg.warm.controller:
        samples = cfg.warm.value_samples
        if not cfg.clone.decisions and samples != WarmConfig().value_samples:
            raise ValueError(
                f"warm.value_samples={samples} has no effect without a policy to hold; expected "
                "warm.controller=NAME@N or clone.decisions=N"
            )
        return None
    version = store.resolve(cfg.warm.controller)
    if version.manifest.kind != "controller":
        raise ValueError(
            f"warm.controller={cfg.warm.controller} is of the kind {version.manifest.kind!r}; "
            "expected a controller"
        )
    task = version.manifest.task
    if task is not None and task.name != cfg.task:
        raise ValueError(
            f"warm.controller={cfg.warm.controller} is of the task {task.name!r}; "
            f"expected {cfg.task!r}"
        )
    return version


def load_controller(nets: ControllerNets, version: Version, parent: Parent, store: Store) -> None:
    """Set the policy to the published one; the value net stays fresh.

    Raises ValueError where the layers have other sizes. Warns on stderr of a library of another
    name, whose latents may differ."""
    weights = read_weights(store.read(version, version.manifest.graphs["controller"].file))
    layers = read_layers(weights, "policy.body")
    check_sizes(nets.policy.body, layers, "ppo.hidden")
    _check_ends(nets, layers, version)
    for name, part in nets.policy.inputs.parts.items():
        assert isinstance(part, Normalizer)
        set_normalizer(part, weights, f"policy.inputs.parts.{name}")
    set_layers(nets.policy.body, layers)
    task = version.manifest.task
    assert task is not None
    if task.parent.name != parent.version.name:
        print(
            f"warning: {version.ref} was trained on {task.parent.name}, whose latents are not "
            f"those of {parent.version.ref}",
            file=sys.stderr,
        )


def _check_ends(nets: ControllerNets, layers: list[Layer], version: Version) -> None:
    """Raise ValueError where the published network has other input or output sizes."""
    own = linear_layers(nets.policy.body)
    for what, expected, published in (
        ("inputs, state and goal together", own[0].in_features, layers[0][0].shape[1]),
        ("latent numbers", own[-1].out_features, len(layers[-1][1])),
    ):
        if expected != published:
            raise ValueError(f"{version.ref} has {published} {what}; expected {expected}")
