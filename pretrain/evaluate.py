"""The skill card of a published library: what it can do, measured on the very graphs that are served.

python -m pretrain.evaluate skill=humanoid@latest
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from pretrain.ase.latents import LatentSchedule, sphere
from pretrain.ase.style import demonstrations
from pretrain.characters.state import CharacterState
from pretrain.config import PretrainConfig
from pretrain.material import Material, control_steps, load_material
from pretrain.motion.clip import CONTROL_RATE, MotionClip
from pretrain.motion.library import MotionLibrary, pack
from pretrain.rl.run import options
from pretrain.sim.backend import make_backend
from pretrain.sim.env import CharacterEnv
from skills_store.errors import StoreError
from skills_store.library import SkillLibrary
from skills_store.store import Store, default_root

# A rollout begins in a clip's state: its first second would cover that clip for nothing.
BURN_IN = control_steps(1.0)


@dataclass(frozen=True)
class ClipWindows:
    """A clip's windows as normalised features, and how close a rollout must pass by to have covered one."""

    name: str
    windows: Tensor  # (M, W * F)
    tau: float


def coverage_targets(
    clips: tuple[MotionClip, ...], library: MotionLibrary, window: int
) -> tuple[list[ClipWindows], Tensor]:
    """Per clip (mirrors left out) its windows and tau; and the scale (W * F) that features are divided by.

    tau is the 95th percentile, over the clip's windows, of the distance to the nearest window of the same clip that
    does not overlap it in time, or of its mirror image: how far apart two instances of one motion lie.
    """
    skeleton = clips[0].skeleton
    scale = demonstrations(library, skeleton, window).windows.std(0).clamp_min(0.03)
    targets = []
    for clip in clips:
        if clip.name.endswith("_mirror"):
            continue
        pair = pack((clip, clip.mirrored()), (1.0, 1.0))
        demos = demonstrations(pair, skeleton, window, rate=CONTROL_RATE)
        features = demos.windows / scale
        own, mirror = features[demos.clip == 0], features[demos.clip == 1]
        targets.append(ClipWindows(clip.name, own, _tau(own, mirror, window)))
    return targets, scale


def _tau(own: Tensor, mirror: Tensor, window: int) -> float:
    index = torch.arange(len(own))
    overlap = (index[:, None] - index).abs() < window
    apart = torch.cdist(own, own).masked_fill(overlap, torch.inf).amin(1)
    return float(torch.minimum(apart, torch.cdist(own, mirror).amin(1)).quantile(0.95))


class Coverage:
    """Nearest distance that any rollout has come to each window of each clip."""

    def __init__(self, targets: list[ClipWindows], scale: Tensor):
        self.targets, self.scale = targets, scale
        self._all = torch.cat([target.windows for target in targets])
        self._nearest = torch.full((len(self._all),), torch.inf)

    def see(self, windows: Tensor) -> None:
        """Style windows (n, W * F) that rollouts went through."""
        if len(windows):
            distance = torch.cdist(self._all, windows / self.scale)
            self._nearest = torch.minimum(self._nearest, distance.amin(1))

    def per_clip(self) -> dict[str, float]:
        """Share of each clip's windows that a rollout passed within tau of."""
        parts = self._nearest.split([len(target.windows) for target in self.targets])
        pairs = zip(self.targets, parts, strict=True)
        return {target.name: float((near <= target.tau).float().mean()) for target, near in pairs}


@dataclass(frozen=True)
class Episodes:
    """Random-skill rollouts of E worlds over T steps; rows after a fall are not counted."""

    lengths: Tensor  # (E,) steps before a fall
    agreement: Tensor  # (E,) mean <z, enc(window)> while standing
    speed: Tensor  # (E,) mean horizontal speed while standing, m/s
    coverage: dict[str, float]


def random_skill_episodes(
    skills: SkillLibrary, env: CharacterEnv, schedule: LatentSchedule, coverage: Coverage, rng: Generator
) -> Episodes:
    """One episode per world, from a clip state, under random skills redrawn by `schedule`; the policy is deterministic."""
    n, steps = env.num_envs, env.episode_length
    env.reset(torch.arange(n))
    z, left = sphere(n, schedule.dim, rng), schedule.lifetimes(n, rng)
    standing, counted = torch.ones(n, dtype=torch.bool), torch.zeros(n)
    agreement, speed = torch.zeros(n), torch.zeros(n)
    for step in range(steps):
        outcome = env.step(torch.from_numpy(skills.act(env.state().flat().numpy(), z.numpy())))
        standing &= ~(outcome.fell | outcome.broken)
        code = torch.from_numpy(skills.encode(env.states.numpy()))
        agreement += standing * (code * z).sum(-1)
        speed += standing * env.state().root_vel[:, :2].norm(dim=-1)
        counted += standing
        if step >= BURN_IN:
            coverage.see(env.windows()[standing])
        left -= 1
        expired = (left <= 0).nonzero()[:, 0]
        z[expired], left[expired] = sphere(len(expired), schedule.dim, rng), schedule.lifetimes(len(expired), rng)
    stood = counted.clamp_min(1)
    return Episodes(counted, agreement / stood, speed / stood, coverage.per_clip())


def skill_card(skills: SkillLibrary, material: Material, cfg: PretrainConfig) -> dict[str, Any]:
    """The measures of `skills` as plain JSON. Plain numbers at the top; n and 95 % intervals of the means under `detail`."""
    window = skills.window_length
    rng = torch.Generator().manual_seed(cfg.eval.seed)
    env = CharacterEnv(
        make_backend(cfg.engine, material.character, cfg.eval.episodes, cfg.threads),
        material.character.skeleton,
        material.library,
        window=window,
        episode_length=control_steps(cfg.episode_length),
        rng=rng,
    )
    schedule = LatentSchedule(skills.latent_dim, 1, control_steps(cfg.latent.latent_time_max), 0.0)
    coverage = Coverage(*coverage_targets(material.dataset.clips, material.library, window))
    episodes = random_skill_episodes(skills, env, schedule, coverage, rng)
    survival = episodes.lengths / env.episode_length
    return {
        "survival": float(survival.mean()),
        "skill_recovery": float(episodes.agreement.mean()),
        "coverage": float(np.mean(list(episodes.coverage.values()))),
        "coverage_per_clip": episodes.coverage,
        "speed": float(episodes.speed.mean()),
        "detail": {
            "survival": interval(survival),
            "skill_recovery": interval(episodes.agreement),
            "speed": interval(episodes.speed),
            "tau": {target.name: target.tau for target in coverage.targets},
            "episode_steps": env.episode_length,
            "burn_in_steps": BURN_IN,
            "broken_worlds": env.broken,
        },
    }


def interval(x: Tensor) -> dict[str, Any]:
    """n, mean and the 95 % interval of the mean, by the normal approximation."""
    mean, half = float(x.mean()), 1.96 * float(x.std()) / len(x) ** 0.5
    return {"n": len(x), "mean": mean, "interval": [mean - half, mean + half]}


def clip_embeddings(skills: SkillLibrary, clips: tuple[MotionClip, ...]) -> dict[str, np.ndarray]:
    """Each clip's pooled z, by the published encoder, {name: (D,)}."""
    return {clip.name: skills.embed(_flat(clip.states())).pooled for clip in clips}


def _flat(states: CharacterState) -> np.ndarray:
    return states.flat().astype(np.float32)


def table(card: dict[str, Any]) -> str:
    """The card for people."""
    steps = card["detail"]["episode_steps"]
    rows = [
        ("survival", f"{card['survival'] * steps:.0f}/{steps} steps"),
        ("skill recovery", f"{card['skill_recovery']:.3f}"),
        ("coverage", f"{card['coverage']:.2f}"),
        *[(f"  {name}", f"{share:.2f}") for name, share in card["coverage_per_clip"].items()],
        ("speed", f"{card['speed']:.2f} m/s"),
    ]
    return "\n".join(f"{name:<24}{value:>16}" for name, value in rows)


def main(arguments: list[str]) -> int:
    defaults = {"skill": "humanoid@latest", "store": "", "episodes": "1024", "seed": "1234", "json": "false"}
    try:
        asked = options(arguments, defaults)
        store = Store(asked["store"] or default_root())
        skills = SkillLibrary.open(store, asked["skill"], intra_op_num_threads=2)
        trained = PretrainConfig.model_validate(skills.version.manifest.lineage.config)
    except (StoreError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    evaluation = trained.eval.model_copy(update={"episodes": int(asked["episodes"]), "seed": int(asked["seed"])})
    cfg = trained.model_copy(update={"eval": evaluation})
    material = load_material(cfg.character, cfg.motions, skills.window_length)
    card = skill_card(skills, material, cfg)
    print(json.dumps(card, indent=2) if asked["json"] == "true" else f"{skills.version.ref}\n{table(card)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
