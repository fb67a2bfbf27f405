"""Publishes trained networks: export, evaluation of the exported graphs, card, store."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pretrain.ase.nets import SkillNets
from pretrain.assembly import SkillTraining
from pretrain.config import PretrainConfig
from pretrain.evaluation.card import write_card
from pretrain.evaluation.conditions import Conditions
from pretrain.evaluation.learning_curves import learning
from pretrain.evaluation.skill_card import skill_card
from pretrain.evaluation.table import table
from pretrain.parent import find_parent
from pretrain.publishing.export import TrainedLibrary, build_version, export_nets
from pretrain.rl.run_folder import read_log
from pretrain.sim.backend import count_threads
from pretrain.training_data import TrainingData
from skills_store import publish_receipt
from skills_store.manifest import Manifest
from skills_store.runtime.library import SkillLibrary
from skills_store.signatures.trust_policy import TrustPolicy
from skills_store.store import Store
from skills_store.version import Version


@dataclass(frozen=True)
class TrainedSkills:
    """The result of a training, for publication."""

    nets: SkillNets
    states: Tensor  # (N, W, S) of its worlds at the end
    samples: int
    seconds: float


def take_trained(training: SkillTraining) -> TrainedSkills:
    """The result of `training`; networks are not copied."""
    states = training.env.env.states.clone()
    return TrainedSkills(training.nets, states, training.samples, training.seconds)


@dataclass(frozen=True)
class ReleaseCandidate:
    """A version in a scratch store, to evaluate the bytes that are published."""

    manifest: Manifest
    files: dict[str, bytes]
    skills: SkillLibrary


def make_candidate(
    cfg: PretrainConfig, data: TrainingData, skills: TrainedSkills, scratch: Store
) -> ReleaseCandidate:
    """Export the networks to ONNX, with parity checked on the worlds' states."""
    exported = export_nets(skills.nets, data.character.skeleton, skills.states, cfg.seed)
    action_std = skills.nets.policy.std
    parent = find_parent(cfg)
    licence = parent.manifest.licence if parent else ""
    trained = TrainedLibrary(skills.nets, exported, action_std, licence)
    cost = state_cost(cfg, skills, parent)
    manifest, files = build_version(cfg, data, trained, {"cost": cost})
    version = scratch.publish(manifest, files)
    threads = torch.get_num_threads()
    # a candidate has no signature
    opened = SkillLibrary.open(scratch, version, intra_op_num_threads=threads, trust=TrustPolicy())
    return ReleaseCandidate(manifest, files, opened)


def state_cost(
    cfg: PretrainConfig, skills: TrainedSkills, parent: Version | None
) -> dict[str, Any]:
    """Cost of the training for the card, with that of its parent library."""
    cost: dict[str, Any] = {
        "samples": skills.samples,
        "seconds": round(skills.seconds),
        "cores": count_threads(cfg.threads),
        "accelerator": None,
    }
    if parent is not None and "cost" in parent.manifest.card:
        cost["parent"] = parent.manifest.card["cost"]
    return cost


def publish(
    cfg: PretrainConfig, data: TrainingData, skills: TrainedSkills, folder: Path, store: Store
) -> Version:
    """Export, evaluate the exported graphs, and publish them with their card."""
    print("exporting to ONNX and checking parity", flush=True)
    candidate = make_candidate(cfg, data, skills, Store(folder / "draft"))
    curves = learning(read_log(folder))  # an unreadable log fails before the evaluation
    print(f"evaluating {cfg.eval.episodes} episodes under random skills", flush=True)
    conditions = Conditions(
        cfg.eval.episodes, cfg.eval.seed, engine=cfg.engine, threads=cfg.threads
    )
    card = {
        **skill_card(candidate.skills, data, conditions),
        **candidate.manifest.card,
        "learning": curves,
    }
    print(table({cfg.name: card}), flush=True)
    manifest = candidate.manifest.model_copy(update={"card": card})
    version = publish_receipt.publish(folder, store, manifest, candidate.files, skills.samples)
    text = table({version.ref: card})
    latents = candidate.manifest.latent.clips
    try:
        page = write_card(folder / "card", version.ref, text, card, latents)
        print(f"its card, with plots: {page}", flush=True)
    except (OSError, ValueError) as error:
        failure = f"{version.ref} is published, but its card is not drawn: {error}"
        print(f"{failure}. python -m pretrain.evaluate {version.ref} draws it", file=sys.stderr)
    return version
