"""Stage 2: train a task's controller over frozen skills, then export, evaluate and publish it.

python -m hlc.train task=reach
python -m hlc.train task=reach skill=humanoid@4 ppo.gamma=0.9
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import torch
from torch import Tensor

from hlc.cloning import clone_planner, count_planned, count_simulated
from hlc.config import CONFIG_MODEL, HlcConfig
from hlc.evaluate import table, task_card
from hlc.export import FILE, build_manifest, export_policy
from hlc.learners import make_policy_learner, make_value_learner
from hlc.nets import ControllerNets, make_nets
from hlc.parent import Parent, open_parent
from hlc.style import style_reward
from hlc.task_env import TaskEnv
from hlc.warm_start import find_controller, load_controller
from hlc.worlds import make_worlds
from pretrain.cli import command, program
from pretrain.help_text import describe_config
from pretrain.publishing.graph_metadata import with_metadata
from pretrain.rl.generators import spawn_generators
from pretrain.rl.iteration import LoopConfig, Objective, Reward
from pretrain.rl.learner import Scalars
from pretrain.rl.rollout import Noise, Rollout
from pretrain.rl.run_folder import NOT_LEARNING, hash_config, lock_run_folder
from pretrain.rl.training import Monitor, Training, train_until
from pretrain.sim.backend import count_threads
from skills_store import publish_receipt
from skills_store.open import open_store
from skills_store.runtime.library import SkillLibrary
from skills_store.runtime.onnx_session import load_net
from skills_store.store import Store
from skills_store.version import Version

ControllerTraining = Training[ControllerNets, TaskEnv]


def build(cfg: HlcConfig, parent: Parent) -> ControllerTraining:
    """Fresh networks, an environment over the frozen skills, and two learners."""
    rng, start_rng, goal_rng = spawn_generators(cfg.seed, 3)
    task = cfg.chosen_task()
    env = make_worlds(cfg, parent, cfg.num_envs, starts=start_rng, goals=goal_rng)
    nets = make_nets(cfg.ppo, task, parent.clips, parent.skills.latent_dim, rng)
    noise = Noise.begin(cfg.ppo.noise_color, cfg.num_envs, parent.skills.latent_dim, rng)
    loop = LoopConfig(
        cfg.ppo.horizon,
        cfg.ppo.gamma,
        cfg.ppo.lam,
        env_reward_weight=cfg.task_reward_weight,
        # the policy is loaded or cloned, the value net is new
        held_samples=cfg.warm.value_samples if cfg.warm.controller or cfg.clone.decisions else 0,
    )
    return Training(nets, env, controller_objective(cfg, nets, parent.skills), loop, noise, rng)


def controller_objective(cfg: HlcConfig, nets: ControllerNets, skills: SkillLibrary) -> Objective:
    """PPO on the rewards of the task, style, progress and falls."""
    style: Reward = style_reward(skills, cfg.disc_reward_scale) if cfg.disc_reward_weight else _zero
    return Objective(
        rewards={
            "style": (cfg.disc_reward_weight, style),
            "progress": (cfg.progress_reward_weight, _progress),
            "alive": (cfg.alive_reward_weight, _alive),
            "fall": (cfg.fall_penalty, _fall),
        },
        policy=make_policy_learner(cfg.ppo, nets.policy),
        value=make_value_learner(cfg.ppo, nets.value),
    )


def _zero(rollout: Rollout) -> Tensor:
    """For a term of weight 0."""
    return torch.zeros_like(rollout.reward)


def _progress(rollout: Rollout) -> Tensor:
    """Gain in the task's potential over each decision; far from the goal the task reward is flat.
    It is not part of the reported return.

    With `shaping=difference` it is undiscounted and may move the optimum a little."""
    return rollout.extras["progress"]


def _alive(rollout: Rollout) -> Tensor:
    """1 for each decision that does not end in a fall. Without it, a dive at the goal gains
    progress and costs nothing."""
    return 1 - rollout.terminated.float()


def _fall(rollout: Rollout) -> Tensor:
    """-1 for the decision that ends in a fall."""
    return -rollout.terminated.float()


def train(cfg: HlcConfig, training: ControllerTraining, folder: Path) -> bool:
    """Train up to `cfg.samples` decisions. Returns whether it reached them uninterrupted."""
    progress = {"decisions": "episode/length", "task": "reward/env", "style": "reward/style"}

    def count_broken() -> Scalars:
        return {"broken": training.env.env.num_broken}

    monitor = Monitor(cfg.task, progress, cfg.checkpoint_interval, count_broken)
    return train_until(training, cfg.samples, folder, monitor)


def publish(
    cfg: HlcConfig, parent: Parent, training: ControllerTraining, folder: Path, store: Store
) -> Version:
    """Export, evaluate the exported bytes, and publish them with their card under the task's
    name."""
    print("exporting to ONNX and checking parity", flush=True)
    recorded = training.env.env.states.flatten(0, 1)
    exported = export_policy(training.nets.policy, cfg.chosen_task(), parent, recorded, cfg.seed)
    net = load_net(FILE, exported.data, exported.graph, torch.get_num_threads(), "cpu")
    print(
        f"evaluating {cfg.eval.episodes} episodes, and as many of each baseline",
        flush=True,
    )
    card = task_card(lambda state, goal: net.run(state=state, goal=goal), parent, cfg)
    card["cost"] = {
        "samples": training.samples,
        "control_steps": training.samples * cfg.llc_steps,
        "planned_decisions": count_planned(cfg.clone),
        "planned_control_steps": count_simulated(cfg),
        "seconds": round(training.seconds),
        "cores": count_threads(cfg.threads),
        "accelerator": None,
    }
    print(table(card), flush=True)
    manifest = build_manifest(cfg, parent, exported.graph, card)
    files = with_metadata(manifest, {FILE: exported.data})
    return publish_receipt.publish(folder, store, manifest, files, training.samples)


def run(cfg: HlcConfig) -> int:
    began = time.monotonic()
    store = open_store(cfg.store)
    if cfg.publish:
        store.prepare(cfg.task, "controller")
    parent = open_parent(store, cfg.skill)
    # `latest` may move during training; a resumed run must use the version it began with
    pinned: dict[str, object] = {"skill": parent.version.pinned}
    if controller := find_controller(cfg, store):
        pinned["warm"] = cfg.warm.model_copy(update={"controller": controller.pinned})
    cfg = cfg.model_copy(update=pinned)
    folder = Path(cfg.runs) / f"{cfg.task}-{hash_config(cfg, NOT_LEARNING)}"
    with lock_run_folder(folder, cfg):
        return train_and_publish(cfg, parent, folder, store, began)


def train_and_publish(
    cfg: HlcConfig, parent: Parent, folder: Path, store: Store, began: float
) -> int:
    """Start or resume the run in `folder`; train and publish."""
    training = build(cfg, parent)
    if training.resume(folder, cfg.samples):
        print(
            f"{folder}: going on after {training.samples:,} of {cfg.samples:,} decisions",
            flush=True,
        )
    else:
        print(
            f"{folder}: {cfg.task} on {parent.version.ref}, {cfg.samples:,} decisions", flush=True
        )
        if controller := find_controller(cfg, store):
            load_controller(training.nets, controller, parent, store)
        if cfg.clone.decisions:
            started = time.monotonic()
            clone_planner(cfg, parent, training.nets)
            training.seconds = time.monotonic() - started
    if not train(cfg, training, folder):
        print(
            f"stopped after {training.samples:,} decisions; the same command goes on from {folder}",
            flush=True,
        )
        return 130
    if not cfg.publish:
        return 0
    if version := publish_receipt.find_published(folder, store, training.samples):
        print(
            f"{version.ref} ({version.digest[:19]}) is this run's already; samples=N with a "
            "larger N goes on from it"
        )
        return 0
    version = publish(cfg, parent, training, folder, store)
    print(
        f"published {version.ref} ({version.digest[:19]}), bound to {parent.version.ref}",
        flush=True,
    )
    print(f"{(time.monotonic() - began) / 60:.1f} min in all", flush=True)
    return 0


def main(arguments: list[str]) -> int:
    return command(run, CONFIG_MODEL, "hlc.conf", arguments)


def describe() -> str:
    return describe_config(CONFIG_MODEL, "hlc.conf", __doc__, sys.argv[1:])


if __name__ == "__main__":
    sys.exit(program(main, describe))
