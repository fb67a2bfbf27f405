"""Builds a training run from a configuration and clips: networks, environment, objective, training
aids, warm start, and the schedule of the action std."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import torch
from torch import Generator, Tensor

from pretrain.ase.clone import CloneData, clone
from pretrain.ase.discriminator import make_replay
from pretrain.ase.encoder import fit_encoder, warm_encoder
from pretrain.ase.env import AseEnv
from pretrain.ase.latent_separation import separate_latents
from pretrain.ase.latents import LatentSampling
from pretrain.ase.nets import Sizes, SkillNets, make_nets
from pretrain.ase.parent_skills import ParentSkills
from pretrain.ase.published_weights import load_encoder, load_policy
from pretrain.ase.symmetry import latent_mirror, make_symmetry
from pretrain.ase_config import SkillPPOConfig
from pretrain.assist.assisted_env import AssistedEnv
from pretrain.assist.curriculum import Curriculum
from pretrain.assist.latent_distillation import distill_latents, visit_states
from pretrain.assist.privileged_observation import privileged_mirror
from pretrain.config import PretrainConfig
from pretrain.motion.clip import control_steps
from pretrain.objective import count_values, make_objective
from pretrain.parent import check_parent, find_parent, warn_of_other_body
from pretrain.rl.generators import spawn_generators
from pretrain.rl.gradient_steps import GradientSteps
from pretrain.rl.graph_weights import Weights, read_weights
from pretrain.rl.iteration import LoopConfig
from pretrain.rl.rollout import Noise
from pretrain.rl.training import Training
from pretrain.sim.backend import make_backend
from pretrain.sim.env import CharacterEnv, EpisodeConfig
from pretrain.sim.ground import Ground, read_ground
from pretrain.training_aids import (
    make_assisted_env,
    make_curriculum,
    make_recovery,
)
from pretrain.training_data import TrainingData
from skills_store.manifest import Manifest
from skills_store.open import open_store
from skills_store.store import Store
from skills_store.version import Version

WARM_LR = 1e-3  # of the gradient steps before simulation
WARM_BATCH = 1024  # rows

SkillTraining = Training[SkillNets, AseEnv | AssistedEnv]


def build_training(cfg: PretrainConfig, data: TrainingData) -> SkillTraining:
    """Fresh networks, an environment and the ASE objective: style and skill rewards, four learners.
    Without the warm start."""
    rng, env_rng, skill_rng = spawn_generators(cfg.seed, 3)
    skeleton = data.character.skeleton
    ground = read_ground(data.library, skeleton)
    nets = build_nets(cfg, data, count_values(cfg, ground), rng)
    curriculum = make_curriculum(cfg, data, ground) if cfg.assisted else None
    env = build_env(cfg, data, ground, curriculum, env_rng)
    ase_env = AseEnv(
        env,
        nets.action_scale,
        make_latent_sampling(cfg),
        nets.encoder.clip_latents,
        rng=skill_rng,
        near_probs=make_near_probs(cfg, data, curriculum),
    )
    replay = make_replay(cfg.disc.disc_buffer_size, data.demos)
    return Training(
        nets,
        make_assisted_env(cfg, data, nets, ase_env, curriculum) if curriculum else ase_env,
        make_objective(cfg, nets, data, replay, ground, parent=load_parent_skills(cfg, data, nets)),
        LoopConfig(
            cfg.ppo.horizon,
            cfg.ppo.gamma,
            cfg.ppo.lam,
            critics=cfg.ppo.critics,
            held_samples=cfg.warm.value_samples,
        ),
        Noise.begin(cfg.ppo.noise_color, cfg.num_envs, skeleton.num_hinges, rng),
        rng,
        extra_state={"replay": replay},
    )


def load_parent_skills(
    cfg: PretrainConfig, data: TrainingData, nets: SkillNets
) -> ParentSkills | None:
    """The policy of `warm.library` and its clips, for `warm.parent_weight`. None without it, and
    without the training aids, which measure the tracking error."""
    parent = find_parent(cfg)
    if parent is None or not cfg.warm.parent_weight or not cfg.assisted:
        return None
    check_parent(cfg, parent.manifest, data.character)
    policy = deepcopy(nets.policy)
    load_policy(replace(nets, policy=policy), read_policy(open_store(cfg.store), parent))
    return ParentSkills(policy, find_learned(parent.manifest, data))


def build_nets(
    cfg: PretrainConfig, data: TrainingData, num_values: int, rng: Generator
) -> SkillNets:
    """Fresh networks; with training aids the value net has the privileged observation."""
    skeleton = data.character.skeleton
    privileged = privileged_mirror(skeleton) if cfg.assisted else None
    latent_dim = cfg.latent.latent_dim
    sizes = Sizes(
        latent_dim,
        policy=cfg.ppo.hidden,
        value=cfg.ppo.value_hidden,
        disc=cfg.disc.hidden,
        enc=cfg.enc.hidden,
        action_std=cfg.ppo.action_std,
        average_decay=cfg.ppo.average_decay,
        privileged=len(privileged) if privileged else 0,
        conditional=cfg.disc.conditional,
        num_values=num_values,
    )
    steps = cfg.num_disc_obs_steps
    symmetry = make_symmetry(
        skeleton,
        data.library.images if cfg.symmetry else None,
        latent_dim,
        steps,
        privileged=privileged,
        conditional=cfg.disc.conditional,
    )
    return make_nets(
        sizes, data.library, data.demos, skeleton.num_hinges, symmetry=symmetry, rng=rng
    )


def build_env(
    cfg: PretrainConfig,
    data: TrainingData,
    ground: Ground,
    curriculum: Curriculum | None,
    rng: Generator,
) -> CharacterEnv:
    """The simulated characters; a curriculum, if given, weights the clips in which episodes
    begin."""
    episodes = EpisodeConfig(
        window=cfg.num_disc_obs_steps,
        length=control_steps(cfg.episode_length),
        recovery=make_recovery(cfg, ground),
        clip_weights=(lambda: curriculum.weights) if curriculum else None,
        default_reset_prob=cfg.default_reset_prob,
    )
    return CharacterEnv(
        make_backend(cfg.engine, data.character, cfg.num_envs, cfg.threads),
        data.character.skeleton,
        data.library,
        episodes,
        rng=rng,
        ground=ground,
    )


def make_latent_sampling(cfg: PretrainConfig) -> LatentSampling:
    latent = cfg.latent
    return LatentSampling(
        latent.latent_dim,
        max(1, control_steps(latent.latent_time_min)),
        control_steps(latent.latent_time_max),
        latent.clip_latent_prob,
        latent.own_return,
    )


def make_near_probs(
    cfg: PretrainConfig, data: TrainingData, curriculum: Curriculum | None
) -> Callable[[], Tensor]:
    """The `near_probs` of AseEnv: constant without a curriculum."""
    if curriculum:
        return curriculum.near_probs
    constant = torch.full((len(data.library.names),), cfg.latent.near_prob)
    return lambda: constant


def set_action_std(cfg: PretrainConfig, training: SkillTraining) -> None:
    """Set the std of the policy's actions by the progress of the curriculum."""
    if isinstance(training.env, AssistedEnv):
        progress = float(training.env.curriculum.progress)
        training.nets.policy.std = schedule_action_std(cfg.ppo, progress)


def schedule_action_std(ppo: SkillPPOConfig, progress: float) -> float:
    """Action std at a progress of 0 to 1: large while balance is learned, then small, so that the
    motion of the clips can be followed."""
    return ppo.action_std * (ppo.action_std_final / ppo.action_std) ** progress


def start_from_parent(cfg: PretrainConfig, data: TrainingData, training: SkillTraining) -> bool:
    """Load policy and encoder of `warm.library`. Its clips keep their z and begin unassisted; the
    policy clones the others. Returns False where no library is named.

    Raises ValueError if its networks have other states or sizes."""
    parent = find_parent(cfg)
    if parent is None:
        return False
    check_parent(cfg, parent.manifest, data.character)
    warn_of_other_body(cfg, parent.manifest, data.character)
    store = open_store(cfg.store)
    nets = training.nets
    load_policy(nets, read_policy(store, parent))
    encoder = read_weights(store.read(parent, parent.manifest.graphs["encoder"].file))
    load_encoder(nets.encoder, encoder, data.demos, match_latents(parent.manifest, data))
    is_learned = find_learned(parent.manifest, data)
    separate_clips(cfg, data, training, is_learned)
    if isinstance(training.env, AssistedEnv):
        training.env.assistance.begin_unassisted(is_learned)
        set_action_std(cfg, training)
    if not is_learned.all():
        clone_clips(cfg, data, training, is_learned)
    if isinstance(training.env, AssistedEnv) and cfg.warm.distill_steps:
        distill(cfg, data, training, training.env)
    return True


def distill(
    cfg: PretrainConfig, data: TrainingData, training: SkillTraining, env: AssistedEnv
) -> None:
    """Train the policy to depend on its latent (pretrain/assist/latent_distillation.py)."""
    nets = training.nets
    warm = cfg.warm
    # restored below: the assistance must not record a policy that ignores its latent
    before = env.snapshot()
    visited = visit_states(env, nets.policy, training.rng)
    env.restore(before)
    config = GradientSteps(warm.distill_steps, WARM_LR, 4 * WARM_BATCH)
    latents = nets.encoder.clip_latents
    distill_latents(nets.policy, visited, data.library, latents, config, rng=training.rng)


def read_policy(store: Store, library: Version) -> Weights:
    return read_weights(store.read(library, library.manifest.graphs["policy"].file))


def find_learned(manifest: Manifest, data: TrainingData) -> Tensor:
    """Which clips of `data` the library has, (C,) bool."""
    latents = match_latents(manifest, data)
    return torch.tensor([clip in latents for clip in range(len(data.library.names))])


def match_latents(manifest: Manifest, data: TrainingData) -> dict[int, Tensor]:
    """Published z (D,), by clip index, of the clips of `data` that the library has."""
    # a clip and its mirror image have the same digest
    names = {(clip.digest, bool(clip.mirror_of)): clip.name for clip in manifest.lineage.clips}
    published = manifest.latent.clips
    latents = {}
    for number, clip in enumerate(data.dataset.clips):
        name = names.get((clip.digest, bool(clip.mirror_of)))
        if name in published:
            latents[number] = torch.tensor(published[name])
    return latents


def warm_up(cfg: PretrainConfig, data: TrainingData, training: SkillTraining) -> None:
    """Before simulation, fit encoder and policy to the clips alone, or load a published
    library's."""
    if not start_from_parent(cfg, data, training):
        warm = cfg.warm
        warm_encoder(training.nets.encoder, data.demos, warm.encoder_steps, WARM_LR, training.rng)
        separate_clips(cfg, data, training)
        clone_clips(cfg, data, training)
    training.env.reset(torch.arange(training.env.num_envs))


def separate_clips(
    cfg: PretrainConfig,
    data: TrainingData,
    training: SkillTraining,
    is_learned: Tensor | None = None,
) -> None:
    """Move the latents of similar clips apart, except those of `is_learned` (C,) bool, and fit the
    encoder to them. Without encoder steps, as in plain ASE, the latents are left as they are."""
    if not cfg.warm.encoder_steps:
        return
    encoder = training.nets.encoder
    is_mirrored = cfg.symmetry and data.library.images is not None
    latents = separate_latents(
        encoder.clip_latents,
        data.library.originals,
        training.rng,
        fixed=is_learned,
        mirror=latent_mirror(cfg.latent.latent_dim) if is_mirrored else None,
    )
    if not torch.equal(latents, encoder.clip_latents):
        encoder.clip_latents.copy_(latents)
        fit = GradientSteps(cfg.warm.encoder_steps, WARM_LR, WARM_BATCH)
        fit_encoder(encoder, data.demos, fit, training.rng)


def clone_clips(
    cfg: PretrainConfig,
    data: TrainingData,
    training: SkillTraining,
    is_learned: Tensor | None = None,
) -> None:
    """Fit the policy to the clips' poses without simulation, except `is_learned` (C,) bool."""
    nets = training.nets
    warm = cfg.warm
    clips = CloneData(
        data.library,
        nets.action_scale,
        nets.encoder.clip_latents,
        training.env.env.falls.ground,
        is_learned,
    )
    config = GradientSteps(steps=warm.clone_steps, lr=WARM_LR, batch=WARM_BATCH)
    clone(nets.policy, clips, config, training.rng)
