"""From trained networks to a published version: export, evaluation of what was exported, the card, the store."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import torch

from pretrain.assembly import SkillTraining, exploration
from pretrain.config import PretrainConfig
from pretrain.evaluation.card import write_card
from pretrain.evaluation.conditions import Conditions
from pretrain.evaluation.learning_curves import learning
from pretrain.evaluation.skill_card import skill_card
from pretrain.evaluation.table import table
from pretrain.publishing.export import build_version, export_nets
from pretrain.rl.run_folder import logged
from pretrain.training_data import Material
from skills_store import publish_receipt
from skills_store.manifest import Manifest
from skills_store.runtime.library import SkillLibrary
from skills_store.signatures.trust_policy import TrustPolicy
from skills_store.store import Store
from skills_store.version import Version


@dataclass(frozen=True)
class Draft:
    """What a run would publish, opened from a store of its own: a card is of the bytes that are published."""

    manifest: Manifest
    files: dict[str, bytes]
    skills: SkillLibrary


def draft(cfg: PretrainConfig, material: Material, training: SkillTraining, scratch: Store) -> Draft:
    """Networks to ONNX, proven on the states that the environment is in."""
    exported = export_nets(training.nets, material.character.skeleton, training.env.env.states, cfg.seed)
    cost = {
        "samples": cfg.spent(training.samples),
        "seconds": round(training.seconds),
        "cores": cfg.threads or torch.get_num_threads(),
        "accelerator": None,
    }
    action_std = exploration(cfg.ppo, training.samples)
    manifest, files = build_version(cfg, material, training.nets, exported, {"cost": cost}, action_std)
    version = scratch.publish(manifest, files)
    threads = torch.get_num_threads()
    # A draft is not signed.
    skills = SkillLibrary.open(scratch, version, intra_op_num_threads=threads, trust=TrustPolicy())
    return Draft(manifest, files, skills)


def publish(cfg: PretrainConfig, material: Material, training: SkillTraining, folder: Path, store: Store) -> Version:
    """Export, evaluate what was exported, and publish it with its card."""
    print("exporting to ONNX and proving parity", flush=True)
    made = draft(cfg, material, training, Store(folder / "draft"))
    curves = learning(logged(folder))  # a log that can't be read is said before minutes of trials
    print(f"evaluating {cfg.eval.episodes} episodes under random skills", flush=True)
    under = Conditions(cfg.eval.episodes, cfg.eval.seed, engine=cfg.engine, threads=cfg.threads)
    card = {**skill_card(made.skills, material, under), **made.manifest.card, "learning": curves}
    print(table({cfg.name: card}), flush=True)
    manifest = made.manifest.model_copy(update={"card": card})
    version = publish_receipt.publish(folder, store, manifest, made.files, training.samples)
    text, latents = table({version.ref: card}), made.manifest.latent.clips
    try:
        page = write_card(folder / "card", version.ref, text, card, latents)
        print(f"its card, with plots: {page}", flush=True)
    except (OSError, ValueError) as error:
        undrawn = f"{version.ref} is published, but its card is not drawn: {error}"
        print(f"{undrawn}. python -m pretrain.evaluate {version.ref} draws it", file=sys.stderr)
    return version
