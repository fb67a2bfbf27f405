"""Stage 1, clips to published skills: warm start, the loop, refining, export, evaluation of what is exported, publication.

make pretrain            or   python -m pretrain.train preset=locomotion seed=1 ppo.target_kl=0.02
"""

from __future__ import annotations

import sys
import time
from copy import deepcopy
from pathlib import Path

import torch

from pretrain.assembly import SkillTraining, adapt, build, warm_up
from pretrain.assist.aids import AssistedEnv
from pretrain.assist.refinement import PhaseCorrectedPolicy, Refinement
from pretrain.cli import command, describe_config, program
from pretrain.config import PretrainConfig
from pretrain.publishing.publish import publish
from pretrain.rl import checkpoint
from pretrain.rl.background import one_thread
from pretrain.rl.learner import Scalars
from pretrain.rl.rollout import Noise
from pretrain.rl.run_folder import NOT_LEARNING, claimed, fingerprint
from pretrain.rl.training import CHECKPOINT, go_on, restored
from pretrain.training_data import Material, load_material
from skills_store import publish_receipt
from skills_store.open import open_store
from skills_store.store import Store


def train(cfg: PretrainConfig, material: Material, training: SkillTraining, folder: Path) -> bool:
    """The loop, up to `cfg.samples`. Returns whether it got there."""
    env, policy = training.env, training.nets.policy
    adapt(cfg, training)

    def after(scalars: Scalars) -> Scalars:
        training.nets.average.update_parameters(policy)
        adapt(cfg, training)
        if isinstance(env, AssistedEnv):
            env.step_schedule()
        if training.samples % cfg.milestone_interval < cfg.num_envs * cfg.ppo.horizon:
            keep(folder, cfg, training)
        down = float((env.env.falls.down > 0).float().mean())
        more = {"broken": env.env.broken, "down": down, "action_std": policy.std}
        return env.scalars() | more if isinstance(env, AssistedEnv) else more

    shown = {"steps": "episode/length", "style": "reward/style", "skill": "reward/skill"}
    if isinstance(env, AssistedEnv):
        shown["assist"] = "assist"
    interval = cfg.checkpoint_interval
    return go_on(
        training, cfg.samples, folder, label="pretrain", shown=shown, checkpoint_interval=interval, after=after
    )


def refinement(cfg: PretrainConfig, material: Material, training: SkillTraining) -> Refinement:
    """Of the average policy, in the environment as training has left it."""
    env = training.env
    if not isinstance(env, AssistedEnv):
        raise TypeError("refinement corrects by the phase of reference motions: it needs an AssistedEnv")
    policy = deepcopy(training.nets.policy)
    policy.load_state_dict(training.nets.average.module.state_dict())
    legs = torch.from_numpy(material.character.skeleton.legs)
    return Refinement(
        env,
        PhaseCorrectedPolicy(deepcopy(policy), env.tracker.num_phases, legs),
        policy,
        Noise(cfg.ppo.noise_color, torch.zeros_like(training.noise.value)),
        torch.Generator().manual_seed(cfg.seed),
        cfg.ppo.horizon,
        cfg.refine.correct,
        cfg.refine.learn,
    )


def refine(cfg: PretrainConfig, material: Material, training: SkillTraining, folder: Path) -> Refinement | None:
    """Correct what is still off, and have a policy learn it; goes on where it was. None if it was interrupted."""
    refining = refinement(cfg, material, training)
    place = folder / "refine" / f"{training.samples:012d}"
    if (place / CHECKPOINT).exists():
        restored(refining, place / CHECKPOINT)
    shown = {"pose error": "pose_error", "corrections": "corrections", "ends": "terminated"}
    samples, interval = cfg.refine.correct + cfg.refine.learn, cfg.checkpoint_interval
    done = go_on(refining, samples, place, label="refine", shown=shown, checkpoint_interval=interval)
    return refining if done else None


def train_and_refine(cfg: PretrainConfig, material: Material, training: SkillTraining, folder: Path) -> bool:
    """The whole run; refined at the end, and on the way, where training then goes on with what was refined.

    Returns whether it got there. A policy that has just been refined balances worse, and learns to again.
    """
    turn = cfg.num_envs * cfg.ppo.horizon
    for until in (*(samples for samples in cfg.refine.after if samples < cfg.samples), cfg.samples):
        if training.samples >= until + turn:
            continue  # it has been, before an interruption
        if not train(cfg.model_copy(update={"samples": until}), material, training, folder):
            return False
        if cfg.refine.correct > 0:
            refining = refine(cfg, material, training, folder)
            if refining is None:
                return False
            training.seconds += refining.seconds
            refined = refining.policy.state_dict()
            training.nets.average.module.load_state_dict(refined)
            if until < cfg.samples:
                training.nets.policy.load_state_dict(refined)
        keep(folder, cfg, training)
    return True


def keep(folder: Path, cfg: PretrainConfig, training: SkillTraining) -> None:
    """The networks as they are now and what they cost, for `python -m benchmarks.learning`."""
    training.background.finish()
    cost = {"samples": cfg.spent(training.samples), "seconds": training.seconds}
    checkpoint.save(folder / "milestones" / f"{training.samples:012d}.pt", {**cost, "nets": training.nets.state()})


def run_folder(cfg: PretrainConfig, material: Material) -> Path:
    """Where a run lives: another one wherever what is learned, or from what, differs."""
    return Path(cfg.runs) / f"{cfg.name}-{fingerprint(cfg, NOT_LEARNING, material.dataset.digest)}"


def run(cfg: PretrainConfig) -> int:
    began = time.monotonic()
    store = open_store(cfg.store) if cfg.publish else None  # a wrong address is said before an hour of training
    material = load_material(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    for warning in material.dataset.doubts:
        print(f"warning: {warning}", file=sys.stderr)
    folder = run_folder(cfg, material)
    with claimed(folder, cfg):
        return follow_through(cfg, material, folder, store, began)


def follow_through(cfg: PretrainConfig, material: Material, folder: Path, store: Store | None, began: float) -> int:
    """From where the run in `folder` is to a published library; without a store, to its last sample."""
    training = build(cfg, material)
    if training.resume(folder, cfg.samples):
        print(f"{folder}: going on after {training.samples:,} of {cfg.samples:,} samples", flush=True)
    else:
        print(f"{folder}: {len(material.dataset.clips)} clips, {cfg.samples:,} samples; warm start", flush=True)
        with one_thread():  # beside other work two of them wait for each other most of the time
            warm_up(cfg, material, training)
    if not train_and_refine(cfg, material, training, folder):
        print(f"stopped after {training.samples:,} samples; the same command goes on from {folder}", flush=True)
        return 130
    if store is None:
        return 0
    if version := publish_receipt.find_published(folder, store, training.samples):
        print(f"{version.ref} ({version.digest[:19]}) is this run's already; samples=N with a larger N goes on from it")
        return 0
    version = publish(cfg, material, training, folder, store)
    minutes = (time.monotonic() - began) / 60
    print(f"published {version.ref} ({version.digest[:19]}) after {minutes:.1f} min", flush=True)
    print(f"next: make serve, or make hlc TASK=reach ARGS=skill={version.ref}", flush=True)
    return 0


def main(arguments: list[str]) -> int:
    return command(run, PretrainConfig, "pretrain.conf", arguments)


if __name__ == "__main__":
    sys.exit(program(main, lambda: describe_config(PretrainConfig, "pretrain.conf", __doc__)))
