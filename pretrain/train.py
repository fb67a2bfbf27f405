"""Stage 1: train skills from clips and publish them: warm start, training, refinement, export,
evaluation of the exported graphs, publication.

make pretrain            or   python -m pretrain.train preset=locomotion seed=1 ppo.target_kl=0.02
"""

from __future__ import annotations

import gc
import sys
import time
from copy import deepcopy
from pathlib import Path

import torch

from pretrain.assembly import SkillTraining, build_training, set_action_std, warm_up
from pretrain.assist.assisted_env import AssistedEnv
from pretrain.assist.refinement import PhaseCorrectedPolicy, Refinement
from pretrain.cli import command, program
from pretrain.config import PretrainConfig
from pretrain.help_text import describe_config
from pretrain.parent import find_parent
from pretrain.publishing.publish import TrainedSkills, publish, take_trained
from pretrain.rl import checkpoint
from pretrain.rl.background import use_one_thread
from pretrain.rl.learner import Scalars
from pretrain.rl.rollout import Noise
from pretrain.rl.run_folder import NOT_LEARNING, hash_config, lock_run_folder
from pretrain.rl.training import CHECKPOINT, Monitor, restore_from, train_until
from pretrain.training_data import TrainingData, load_training_data
from skills_store import publish_receipt
from skills_store.open import open_store
from skills_store.store import Store


def train(cfg: PretrainConfig, training: SkillTraining, folder: Path) -> bool:
    """Iterate up to `cfg.samples`. Returns whether it reached them uninterrupted."""
    set_action_std(cfg, training)
    progress = {"steps": "episode/length", "style": "reward/style", "skill": "reward/skill"}
    if isinstance(training.env, AssistedEnv):
        progress["assist"] = "assist"

    def on_iteration(scalars: Scalars) -> Scalars:
        return finish_iteration(cfg, training, folder)

    monitor = Monitor("pretrain", progress, cfg.checkpoint_interval, on_iteration)
    return train_until(training, cfg.samples, folder, monitor)


def finish_iteration(cfg: PretrainConfig, training: SkillTraining, folder: Path) -> Scalars:
    """Average the policy, step the schedules, and save a milestone if one is due. Returns more
    scalars for the log."""
    env = training.env
    policy = training.nets.policy
    training.nets.average.update_parameters(policy)
    if isinstance(env, AssistedEnv):
        env.step_schedule()
    # The progress is in the checkpoint, so that a resumed run has the same std.
    set_action_std(cfg, training)
    if training.samples % cfg.milestone_interval < cfg.num_envs * cfg.ppo.horizon:
        save_milestone(folder, cfg, training)
    down = float(env.env.falls.is_down.float().mean())
    scalars = {"broken": env.env.num_broken, "down": down, "action_std": policy.std}
    return env.scalars() | scalars if isinstance(env, AssistedEnv) else scalars


def make_refinement(cfg: PretrainConfig, data: TrainingData, training: SkillTraining) -> Refinement:
    """Refinement of the averaged policy, in the training's present environment."""
    env = training.env
    if not isinstance(env, AssistedEnv):
        raise TypeError(
            "refinement corrects by the phase of reference motions: it needs an AssistedEnv"
        )
    policy = deepcopy(training.nets.policy)
    policy.load_state_dict(training.nets.average.module.state_dict())
    legs = torch.from_numpy(data.character.skeleton.legs)
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


def refine(
    cfg: PretrainConfig, data: TrainingData, training: SkillTraining, folder: Path
) -> Refinement | None:
    """Run the refinement, from its checkpoint if there is one. None if it was interrupted."""
    refining = make_refinement(cfg, data, training)
    place = folder / "refine" / f"{training.samples:012d}"
    if (place / CHECKPOINT).exists():
        restore_from(refining, place / CHECKPOINT)
    progress = {"pose error": "pose_error", "corrections": "corrections", "ends": "terminated"}
    monitor = Monitor("refine", progress, cfg.checkpoint_interval)
    samples = cfg.refine.correct + cfg.refine.learn
    return refining if train_until(refining, samples, place, monitor) else None


def train_and_refine(
    cfg: PretrainConfig, data: TrainingData, training: SkillTraining, folder: Path
) -> bool:
    """Train, with refinement at the end and after each of `refine.after`, from which training
    continues with the refined policy.

    Returns whether it finished uninterrupted. A freshly refined policy balances worse, and recovers
    in further training."""
    iteration_samples = cfg.num_envs * cfg.ppo.horizon  # samples of an iteration
    stages = [samples for samples in cfg.refine.after if samples < cfg.samples]
    for until in (*stages, cfg.samples):
        if training.samples >= until + iteration_samples:
            continue  # done before an interruption
        if not train(cfg.model_copy(update={"samples": until}), training, folder):
            return False
        if cfg.refine.correct > 0:
            refining = refine(cfg, data, training, folder)
            if refining is None:
                return False
            training.seconds += refining.seconds
            refined = refining.policy.state_dict()
            training.nets.average.module.load_state_dict(refined)
            if until < cfg.samples:
                training.nets.policy.load_state_dict(refined)
        save_milestone(folder, cfg, training)
    return True


def save_milestone(folder: Path, cfg: PretrainConfig, training: SkillTraining) -> None:
    """Save the present networks and their cost, for `python -m benchmarks.learning`."""
    training.background.finish_fits()
    cost = {"samples": cfg.count_samples(training.samples), "seconds": training.seconds}
    file = folder / "milestones" / f"{training.samples:012d}.pt"
    checkpoint.save(file, {**cost, "nets": training.nets.state()})


def find_run_folder(cfg: PretrainConfig, data: TrainingData) -> Path:
    """The folder of a run, one per configuration and data set."""
    return Path(cfg.runs) / f"{cfg.name}-{hash_config(cfg, NOT_LEARNING, data.dataset.digest)}"


def run(cfg: PretrainConfig) -> int:
    start = time.monotonic()
    store = open_store(cfg.store) if cfg.publish else None  # a wrong address fails before training
    if store is not None:
        store.check_kind(cfg.name, "skills")
    find_parent(cfg)  # so does a missing parent
    data = load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    for warning in data.dataset.doubts:
        print(f"warning: {warning}", file=sys.stderr)
    folder = find_run_folder(cfg, data)
    with lock_run_folder(folder, cfg):
        return train_and_publish(cfg, data, folder, store, start)


def train_and_publish(
    cfg: PretrainConfig, data: TrainingData, folder: Path, store: Store | None, start: float
) -> int:
    """Finish the run in `folder` and publish its library; without a store, only finish the run."""
    skills = train_skills(cfg, data, folder)
    if skills is None:
        return 130
    if store is None:
        return 0
    if version := publish_receipt.find_published(folder, store, skills.samples):
        name = f"{version.ref} ({version.digest[:19]})"
        print(f"{name} is this run's already; samples=N with a larger N goes on from it")
        return 0
    gc.collect()  # frees the environment, a reference cycle, before evaluation
    version = publish(cfg, data, skills, folder, store)
    minutes = (time.monotonic() - start) / 60
    print(f"published {version.ref} ({version.digest[:19]}) after {minutes:.1f} min", flush=True)
    print(f"next: make serve, or make hlc TASK=reach ARGS=skill={version.ref}", flush=True)
    return 0


def train_skills(cfg: PretrainConfig, data: TrainingData, folder: Path) -> TrainedSkills | None:
    """Start or resume the run in `folder`, to its end. None if it was interrupted."""
    training = build_training(cfg, data)
    if training.resume(folder, cfg.samples):
        done = f"{training.samples:,} of {cfg.samples:,} samples"
        print(f"{folder}: going on after {done}", flush=True)
    else:
        clips = len(data.dataset.clips)
        print(f"{folder}: {clips} clips, {cfg.samples:,} samples; warm start", flush=True)
        # under load, two threads mostly wait for each other
        with use_one_thread():
            warm_up(cfg, data, training)
    if not train_and_refine(cfg, data, training, folder):
        done = f"stopped after {training.samples:,} samples"
        print(f"{done}; the same command goes on from {folder}", flush=True)
        return None
    training.background.finish_fits()
    return take_trained(training)


def main(arguments: list[str]) -> int:
    return command(run, PretrainConfig, "pretrain.conf", arguments)


def describe() -> str:
    return describe_config(PretrainConfig, "pretrain.conf", __doc__, sys.argv[1:])


if __name__ == "__main__":
    sys.exit(program(main, describe))
