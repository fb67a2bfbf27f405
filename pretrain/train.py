"""Stage 1: train skills from clips and publish them: warm start, training, export, evaluation of
the exported graphs, publication.

make pretrain            or   python -m pretrain.train preset=locomotion seed=1 ppo.target_kl=0.02
"""

from __future__ import annotations

import gc
import sys
import time
from pathlib import Path

from pretrain.assembly import SkillTraining, build_training, set_action_std, warm_up
from pretrain.assist.assisted_env import AssistedEnv
from pretrain.cli import command, program
from pretrain.config import PretrainConfig
from pretrain.help_text import describe_config
from pretrain.parent import find_parent
from pretrain.publishing.publish import TrainedSkills, publish, take_trained
from pretrain.rl import checkpoint
from pretrain.rl.background import use_one_thread
from pretrain.rl.learner import Scalars
from pretrain.rl.run_folder import NOT_LEARNING, hash_config, lock_run_folder
from pretrain.rl.training import Monitor, train_until
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

    def on_iteration() -> Scalars:
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
        save_milestone(folder, training)
    down = float(env.env.falls.is_down.float().mean())
    scalars = {"broken": env.env.num_broken, "down": down, "action_std": policy.std}
    return env.scalars() | scalars if isinstance(env, AssistedEnv) else scalars


def save_milestone(folder: Path, training: SkillTraining) -> None:
    """Save the present networks and their cost, for `python -m benchmarks.learning`."""
    training.background.finish_fits()
    cost = {"samples": training.samples, "seconds": training.seconds}
    file = folder / "milestones" / f"{training.samples:012d}.pt"
    checkpoint.save(file, {**cost, "nets": training.nets.state()})


def find_run_folder(cfg: PretrainConfig, data: TrainingData) -> Path:
    """The folder of a run, one per configuration and data set."""
    return Path(cfg.runs) / f"{cfg.name}-{hash_config(cfg, NOT_LEARNING, data.dataset.digest)}"


def run(cfg: PretrainConfig) -> int:
    start = time.monotonic()
    store = open_store(cfg.store) if cfg.publish else None  # checked before training
    if store is not None:
        store.prepare(cfg.name, "skills")
    find_parent(cfg)  # checked before training
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
    if not train(cfg, training, folder):
        done = f"stopped after {training.samples:,} samples"
        print(f"{done}; the same command goes on from {folder}", flush=True)
        return None
    training.background.finish_fits()
    save_milestone(folder, training)
    return take_trained(training)


def main(arguments: list[str]) -> int:
    return command(run, PretrainConfig, "pretrain.conf", arguments)


def describe() -> str:
    return describe_config(PretrainConfig, "pretrain.conf", __doc__, sys.argv[1:])


if __name__ == "__main__":
    sys.exit(program(main, describe))
