"""Stage 1, clips to published skills: warm start, the loop, refining, evaluation, export, publication.

make pretrain            or   python -m pretrain.train preset=locomotion seed=1 ppo.target_kl=0.02
"""

from __future__ import annotations

import math
import sys
import time
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from pretrain.ase.clone import clone
from pretrain.ase.imitation import FOR_AIMED, FOR_POSED, aimed, imitation_reward, posed
from pretrain.ase.latents import LatentSchedule, SkillEnv
from pretrain.ase.leash import Leash, nearer_reward
from pretrain.ase.nets import Sizes, SkillNets, make_nets
from pretrain.ase.refine import Corrected, Refinement
from pretrain.ase.rise import rise_reward
from pretrain.ase.skill import diverse_loss, encoder_loss, skill_reward, warm_encoder
from pretrain.ase.style import demonstrations, remembered, style_loss, style_reward
from pretrain.ase.symmetry import privileged_mirror, symmetry
from pretrain.card import learning, write_card
from pretrain.characters.skeleton import Skeleton
from pretrain.config import PPOConfig, PretrainConfig
from pretrain.evaluate import Conditions, skill_card
from pretrain.export import build_manifest, export_nets
from pretrain.material import Material, control_steps, load_material
from pretrain.motion.clip import CONTROL_RATE
from pretrain.rl import checkpoint
from pretrain.rl.background import one_thread
from pretrain.rl.learner import Learner, Scalars
from pretrain.rl.loop import LoopConfig, Recipe
from pretrain.rl.mirror import untied
from pretrain.rl.ppo import FOR_POLICY, FOR_VALUE, Loss, clipped_surrogate, value_loss
from pretrain.rl.replay import Replay
from pretrain.rl.rollout import Noise
from pretrain.rl.run import NOT_LEARNING, claimed, command, fingerprint, logged
from pretrain.rl.training import CHECKPOINT, Training, go_on, restored
from pretrain.sim.backend import make_backend
from pretrain.sim.curriculum import Curriculum, LettingGo
from pretrain.sim.env import CharacterEnv
from pretrain.sim.falls import NOBODY, Protection
from pretrain.sim.ground import Ground, ground_of
from pretrain.sim.lift import Lift
from pretrain.table import table
from skills_store import receipt
from skills_store.library import SkillLibrary
from skills_store.manifest import Manifest
from skills_store.opening import open_store
from skills_store.store import Store
from skills_store.trust.policy import Trust
from skills_store.version import Version

SkillTraining = Training[SkillNets, SkillEnv]


def build(cfg: PretrainConfig, material: Material) -> SkillTraining:
    """Fresh networks, an environment and the ASE recipe: style and skill rewards, four learners. Not yet warm."""
    seeds = torch.Generator().manual_seed(cfg.seed)
    streams = [torch.Generator().manual_seed(int(s)) for s in torch.randint(2**62, (3,), generator=seeds)]
    rng, env_rng, skill_rng = streams
    skeleton = material.character.skeleton
    ground = ground_of(material.library, skeleton, cfg.curriculum.steady_above)
    clocks = keeps_time(cfg, ground)
    privileged = privileged_mirror(skeleton) if clocks else None
    sizes = Sizes(
        cfg.latent.latent_dim,
        policy=cfg.ppo.hidden,
        value=cfg.ppo.value_hidden,
        disc=cfg.disc.hidden,
        enc=cfg.enc.hidden,
        action_std=cfg.ppo.action_std,
        average_decay=cfg.ppo.average_decay,
        privileged=len(privileged) if privileged else 0,
    )
    both_sides = symmetry(skeleton, material.library.names, cfg.latent.latent_dim, cfg.num_disc_obs_steps, privileged)
    nets = make_nets(sizes, material.library, material.demos, skeleton.num_hinges, both_sides, rng)
    env = CharacterEnv(
        make_backend(cfg.engine, material.character, cfg.num_envs, cfg.threads),
        skeleton,
        material.library,
        window=cfg.num_disc_obs_steps,
        episode_length=control_steps(cfg.episode_length),
        rng=env_rng,
        curriculum=make_curriculum(cfg, material, ground),
        protection=protection(cfg, ground),
        lift=make_lift(cfg, ground),
        ground=ground,
    )
    schedule = LatentSchedule(
        cfg.latent.latent_dim,
        max(1, control_steps(cfg.latent.latent_time_min)),
        control_steps(cfg.latent.latent_time_max),
        cfg.latent.clip_latent_prob,
        cfg.latent.near_prob,
        cfg.latent.near_steps or math.inf,
        cfg.latent.near_after,
        cfg.latent.own_return,
    )
    clips = demonstrations(material.library, skeleton, cfg.num_disc_obs_steps, rate=CONTROL_RATE)
    grace, lag = control_steps(cfg.leash.grace), control_steps(cfg.leash.lag)
    leash = Leash(clips, nets.discriminator.spread, cfg.leash.length, grace, lag, cfg.leash.liveliest)
    skills = SkillEnv(env, nets.action_scale, schedule, nets.encoder.clip_latents, leash, skill_rng, clocks)
    replay = remembered(cfg.disc.disc_buffer_size, material.demos)
    noise = Noise(cfg.ppo.noise_color, torch.zeros(cfg.num_envs, skeleton.num_hinges))
    loop = LoopConfig(cfg.ppo.horizon, cfg.ppo.gamma, cfg.ppo.lam)
    recipe = ase_recipe(cfg, nets, material, replay, ground)
    training = Training(nets, skills, recipe, loop, noise, rng, memory={"replay": replay})
    adapt(cfg, training)
    return training


def keeps_time(cfg: PretrainConfig, ground: Ground) -> bool:
    """Whether anything asks the clocks: the leash, a reward, or a hand that leads, which over clips that move on steadily
    there is not."""
    of = cfg.imitation
    weighs = any(weight > 0 for weight in (of.reward_weight, of.aim_weight, of.pose_weight))
    asked = cfg.leash.timed_from is not None or cfg.refine.correct > 0 or weighs
    return asked or not bool(ground.steady.all())


def make_curriculum(cfg: PretrainConfig, material: Material, ground: Ground) -> Curriculum:
    """Those who are to rise have a hand of their own (`make_lift`)."""
    of = cfg.curriculum
    hand = LettingGo(of.assist_start, of.assist_steps, of.assist_rate)
    steps = control_steps(cfg.episode_length)
    return Curriculum(
        material.library.weights,
        episode_length=steps,
        hand=hand,
        held=~ground.rising,
        focus=of.focus,
        sought=~ground.rising,  # their time on the ground is no success, so they would always seem to need more
    )


def make_lift(cfg: PretrainConfig, ground: Ground) -> Lift:
    """Nobody is lifted where no clip shows how to get up."""
    of = cfg.recovery
    return Lift(of.lift_start * ground.rising, of.lift_rate)


def protection(cfg: PretrainConfig, ground: Ground) -> Protection:
    """Nobody is protected where no clip shows how to get up."""
    of = cfg.recovery
    return Protection(control_steps(of.patience), of.protected_prob, of.lying_prob) if ground.rising.any() else NOBODY


def ase_recipe(cfg: PretrainConfig, nets: SkillNets, material: Material, replay: Replay, ground: Ground) -> Recipe:
    """Peng et al. 2022: move in style, stay tellable apart, differ when z differs."""
    ppo, disc, enc = cfg.ppo, cfg.disc, cfg.enc
    acting, valuing = (*nets.policy.inputs.names, *FOR_POLICY), (*nets.value.inputs.names, *FOR_VALUE)
    acting += (FOR_AIMED if cfg.imitation.aim_weight else ()) + (FOR_POSED if cfg.imitation.pose_weight else ())
    style = style_loss(
        nets.discriminator,
        material.demos,
        replay,
        grad_penalty=disc.disc_grad_penalty,
        logit_reg=disc.disc_logit_reg,
        replay_share=disc.disc_replay_share,
    )

    def adam(net: torch.nn.Module, lr: float) -> torch.optim.Optimizer:
        return torch.optim.Adam(net.parameters(), lr, fused=True)

    policy = adam(nets.policy, ppo.lr), ppo.epochs, ppo.minibatch
    value = adam(nets.value, ppo.value_lr), ppo.value_epochs, ppo.value_minibatch
    tell_clips = adam(nets.discriminator, disc.lr), 1, disc.minibatch, disc.rows
    tell_skills = adam(nets.encoder, enc.lr), 1, enc.minibatch, enc.rows
    rise = {"rise": (cfg.recovery.rise_reward_weight, rise_reward(ground))} if ground.rising.any() else {}
    at_moment = imitation_reward(cfg.imitation.reward_scale)
    imitation = {"imitation": (cfg.imitation.reward_weight, at_moment)} if cfg.imitation.reward_weight else {}
    return Recipe(
        rewards={
            "style": (disc.disc_reward_weight, style_reward(nets.discriminator, disc.disc_reward_scale)),
            "skill": (enc.enc_reward_weight, skill_reward(nets.encoder)),
            "nearer": (cfg.leash.nearer_reward_weight, nearer_reward),
            **rise,
            **imitation,
        },
        policy=Learner(
            "policy", acting, policy_loss(cfg, nets, material.character.skeleton, 0), *policy, target_kl=ppo.target_kl
        ),
        value=Learner("value", valuing, value_loss(nets.value), *value),
        others=(
            Learner("disc", ("window", "z_clip"), style, *tell_clips),
            Learner("enc", ("window", "z"), encoder_loss(nets.encoder, material.demos), *tell_skills),
        ),
    )


def policy_loss(cfg: PretrainConfig, nets: SkillNets, skeleton: Skeleton, samples: int) -> Loss:
    """Of a policy that has seen so many samples: earn, aim as the clip where it is held, meet its poses, differ when z does."""
    ppo, of = cfg.ppo, cfg.imitation
    surrogate = clipped_surrogate(nets.policy, ppo.clip, ppo.action_bound, ppo.action_bound_weight)
    if of.aim_weight:
        surrogate = aimed(surrogate, of.aim_weight)
    if of.pose_weight and samples >= of.pose_from:
        surrogate = posed(surrogate, torch.from_numpy(skeleton.legs), of.pose_weight, of.reward_scale)
    return diverse_loss(nets.policy, surrogate, cfg.enc.diversity_weight, cfg.enc.diversity_tar)


def warm_up(cfg: PretrainConfig, material: Material, training: SkillTraining) -> None:
    """Encoder and policy learn from the clips alone, before the first simulated step."""
    nets, warm, rng = training.nets, cfg.warm, training.rng
    warm_encoder(nets.encoder, material.demos, warm.encoder_steps, warm.lr, rng)
    clone(
        nets.policy,
        material.library,
        nets.action_scale,
        nets.encoder.clip_latents,
        ground_of(material.library, material.character.skeleton),
        steps=warm.clone_steps,
        lr=warm.lr,
        batch=warm.batch,
        rng=rng,
    )
    training.env.reset(torch.arange(training.env.num_envs))


def train(cfg: PretrainConfig, material: Material, training: SkillTraining, folder: Path) -> bool:
    """The loop, up to `cfg.samples`. Returns whether it got there."""
    env, policy = training.env, training.nets.policy
    adapt(cfg, training)

    def after(scalars: Scalars) -> Scalars:
        training.nets.average.update_parameters(policy)
        adapt(cfg, training)
        env.env.lift.turn()
        if training.samples % cfg.milestone_interval < cfg.num_envs * cfg.ppo.horizon:
            keep(folder, cfg, training)
        down = float((env.env.falls.down > 0).float().mean())
        more = {"broken": env.env.broken, "down": down, "action_std": policy.std}
        names = material.library.names
        return follow(env.env.curriculum, names) | lifted(env.env.lift, env.env.falls.ground.rising, names) | more

    shown = {"steps": "episode/length", "style": "reward/style", "skill": "reward/skill", "assist": "assist"}
    interval = cfg.checkpoint_interval
    return go_on(
        training, cfg.samples, folder, label="pretrain", shown=shown, checkpoint_interval=interval, after=after
    )


def refinement(cfg: PretrainConfig, material: Material, training: SkillTraining) -> Refinement:
    """Of the average policy, in the environment as training has left it."""
    env, policy = training.env, deepcopy(training.nets.policy)
    policy.load_state_dict(training.nets.average.module.state_dict())
    legs = torch.from_numpy(material.character.skeleton.legs)
    return Refinement(
        env,
        Corrected(untied(deepcopy(policy)), env.env.guide.moments, legs),
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
    if training.samples >= cfg.samples + turn:
        beyond = f"has taken {training.samples:,} samples already"
        raise ValueError(
            f"samples={cfg.samples}: {folder} {beyond}; ask for as many or more, or for a run of another name"
        )
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


def spent(cfg: PretrainConfig, samples: int) -> int:
    """Samples that a run has taken from the engine after `samples` of training: those, and what it was refined on."""
    turn, refining = cfg.num_envs * cfg.ppo.horizon, cfg.refine.correct + cfg.refine.learn
    times = sum(samples >= after for after in {*cfg.refine.after, cfg.samples}) if cfg.refine.correct else 0
    return samples + times * math.ceil(refining / turn) * turn


def adapt(cfg: PretrainConfig, training: SkillTraining) -> None:
    """What depends on how many samples were seen: the width of exploration, the leash, and what is asked of the policy."""
    recipe, nets, samples = training.recipe, training.nets, training.samples
    nets.policy.std = exploration(cfg.ppo, samples)
    training.env.leash.timed = cfg.leash.timed_from is not None and samples >= cfg.leash.timed_from
    policy = replace(recipe.policy, loss=policy_loss(cfg, nets, training.env.env.skeleton, samples))
    training.recipe = replace(recipe, policy=policy)


def exploration(ppo: PPOConfig, samples: int) -> float:
    """Action std after so many samples: wide while balance is learned, then narrow, so that the clips' motion can be met."""
    return ppo.action_std * (ppo.action_std_final / ppo.action_std) ** min(samples / ppo.action_std_samples, 1.0)


def follow(curriculum: Curriculum, clips: tuple[str, ...]) -> Scalars:
    """One turn of the curriculum, and its state for the log: `assist/CLIP` and `steps/CLIP` (between falls)."""
    curriculum.turn()
    scalars = {"assist": float(curriculum.assist.mean())}
    for name, strength, steps in zip(clips, curriculum.assist.tolist(), curriculum.lengths.tolist(), strict=True):
        scalars |= {f"assist/{name}": strength, f"steps/{name}": steps}
    return scalars


def lifted(lift: Lift, rising: Tensor, clips: tuple[str, ...]) -> Scalars:
    """For the log, of the clips that rise: `lift/CLIP`, the strength of its hand, and `rises/CLIP`, who comes up along it."""
    scalars: Scalars = {}
    for i in rising.nonzero()[:, 0].tolist():
        scalars |= {f"lift/{clips[i]}": float(lift.strength[i]), f"rises/{clips[i]}": float(lift.share[i])}
    return scalars


def keep(folder: Path, cfg: PretrainConfig, training: SkillTraining) -> None:
    """The networks as they are now and what they cost, for `python -m benchmarks.learning`."""
    training.background.finish()
    cost = {"samples": spent(cfg, training.samples), "seconds": training.seconds}
    checkpoint.save(folder / "milestones" / f"{training.samples:012d}.pt", {**cost, "nets": training.nets.state()})


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
        "samples": spent(cfg, training.samples),
        "seconds": round(training.seconds),
        "cores": cfg.threads or torch.get_num_threads(),
        "accelerator": None,
    }
    manifest = build_manifest(cfg, material, training.nets, exported, {"cost": cost})
    version, threads = scratch.publish(manifest, exported.files), torch.get_num_threads()
    skills = SkillLibrary.open(scratch, version, intra_op_num_threads=threads, trust=Trust())  # nobody signs a draft
    return Draft(manifest, exported.files, skills)


def publish(cfg: PretrainConfig, material: Material, training: SkillTraining, folder: Path, store: Store) -> Version:
    """Export, evaluate what was exported, and publish it with its card."""
    print("exporting to ONNX and proving parity", flush=True)
    made = draft(cfg, material, training, Store(folder / "draft"))
    curves = learning(logged(folder))  # a log that can't be read is said before minutes of trials
    print(f"evaluating {cfg.eval.episodes} episodes under random skills", flush=True)
    under = Conditions(cfg.eval.episodes, cfg.eval.seed, engine=cfg.engine, threads=cfg.threads)
    card = {**skill_card(made.skills, material, under), **made.manifest.card, "learning": curves}
    print(table({cfg.name: card}), flush=True)
    version = store.publish(made.manifest.model_copy(update={"card": card}), made.files)
    # before anything else can fail: what is published is not published twice
    receipt.note(folder, version, training.samples)
    text, latents = table({version.ref: card}), made.manifest.latent.clips
    try:
        page = write_card(folder / "card", version.ref, text, card, latents)
        print(f"its card, with plots: {page}", flush=True)
    except (OSError, ValueError) as error:
        undrawn = f"{version.ref} is published, but its card is not drawn: {error}"
        print(f"{undrawn}. python -m pretrain.evaluate {version.ref} out=card/ draws it", file=sys.stderr)
    return version


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
    if training.resume(folder):
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
    if version := receipt.noted(folder, store, training.samples):
        print(f"{version.ref} ({version.digest[:19]}) is this run's already; samples=N with a larger N goes on from it")
        return 0
    version = publish(cfg, material, training, folder, store)
    minutes = (time.monotonic() - began) / 60
    print(f"published {version.ref} ({version.digest[:19]}) after {minutes:.1f} min", flush=True)
    return 0


def main(arguments: list[str]) -> int:
    return command(run, PretrainConfig, "pretrain.conf", arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
