"""Pictures of skills: rollouts of a published library as film strips, one row per clip.

python -m pretrain.render skill=humanoid@latest clips=walk,run,turn_left1 out=skills.png

Each clip's own z is held for 10 s from the clip's first frame, two frames a second. The bar below
a row is green while the character is within tolerance of the clip, gray while it is up but is not,
and red while it is down.

keys:
  skill=humanoid@latest   reference of the library; may stand without `skill=`
  store=                  skill store; default $REPERTOIRE_STORE, else as in skills_store/places.py
  clips=                  names of clips, separated by commas; default: all but mirror images
  random=false            also a minute under random skills, one frame a second
  out=                    a .png; default: below the folder of cards
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

if sys.platform == "linux":
    os.environ.setdefault("MUJOCO_GL", "egl")  # before mujoco is imported; there may be no display

import torch
from PIL import Image
from torch import Tensor

from pretrain.characters.state import CharacterState
from pretrain.cli import program
from pretrain.evaluation.conditions import Conditions
from pretrain.evaluation.episodes import random_sampling
from pretrain.evaluation.falls import FallCounter
from pretrain.evaluation.film_strip import DOWN, ON_CLIP, UP, FilmStrip, Strip
from pretrain.evaluation.on_clip import on_clip
from pretrain.evaluation.rollout import hold_skill, random_skill_rollout
from pretrain.evaluation.setup import Setup
from pretrain.evaluation.skill_card import clips_of
from pretrain.motion.clip import control_steps
from pretrain.options import name_reference, parse_flag, parse_options
from pretrain.sim.velocity_range import level_velocity
from skills_store import places
from skills_store.errors import StoreError
from skills_store.open import open_store
from skills_store.runtime.library import SkillLibrary

HELD_SECONDS = 10.0
RANDOM_SECONDS = 60.0
HELD_EVERY = control_steps(0.5)  # between two frames
RANDOM_EVERY = control_steps(1.0)
SEED = 0


def hold_clips(setup: Setup, clips: Sequence[str]) -> list[Strip]:
    """Each clip's own z from the clip's first frame, all in one batch."""
    numbers = torch.tensor([clip_number(setup, clip) for clip in clips])
    rng = torch.Generator().manual_seed(SEED)
    env = setup.make_env(len(clips), HELD_SECONDS, rng)
    env.begin(torch.arange(len(clips)), numbers, torch.zeros(len(clips)))
    falls = FallCounter(len(clips))
    poses = []
    windows = []
    velocity = []
    down = []
    z = setup.own_z[numbers]
    for outcome in hold_skill(setup.skills.act, env, z, numbers, env.episode_length):
        falls.update(env.falls.steps_down, outcome.broken)
        poses.append(_qpos(env.state()))
        windows.append(env.windows().clone())
        velocity.append(level_velocity(env.state()))
        down.append(env.falls.is_down | outcome.broken)
    strips = []
    targets = [target.name for target in setup.targets]
    recorded_windows = torch.stack(windows)
    velocities = torch.stack(velocity)
    for i, clip in enumerate(clips):
        world = slice(i, i + 1)
        near = on_clip(
            setup, targets.index(clip), recorded_windows[:, world], velocities[:, world]
        )[:, 0]
        colors = _colors(torch.stack(down)[:, i].tolist(), near.tolist())
        share = float(near.float().mean())
        title = f"{clip}: on clip {share:.0%} of 10 s, {int(falls.falls[i])} falls"
        strips.append(Strip(title, torch.stack(poses)[:, i], HELD_EVERY, colors))
    return strips


def random_minute(setup: Setup) -> Strip:
    """One character under random z, redrawn every 0 to 5 s."""
    rng = torch.Generator().manual_seed(SEED)
    env = setup.make_env(1, RANDOM_SECONDS, rng)
    env.reset(torch.arange(1))
    falls = FallCounter(1)
    poses = []
    down = []
    sampling = random_sampling(setup)
    rollout = random_skill_rollout(setup.skills.act, env, sampling, rng, setup.nearest_clip)
    for step in rollout:
        falls.update(env.falls.steps_down, step.outcome.broken, step.clip_changed)
        poses.append(_qpos(env.state())[0])
        down.append(bool((env.falls.is_down | step.outcome.broken)[0]))
    colors = _colors(down, [False] * len(down))
    title = f"random z, redrawn every 0 to 5 s, for a minute: {int(falls.falls[0])} falls"
    return Strip(title, torch.stack(poses), RANDOM_EVERY, colors)


def clip_number(setup: Setup, clip: str) -> int:
    """ValueError lists what exists; mirror images have no tolerance."""
    names = [target.name for target in setup.targets]
    if clip not in names:
        raise ValueError(f"no clip {clip!r}; there are: {', '.join(names)}")
    return setup.library.names.index(clip)


def _qpos(state: CharacterState) -> Tensor:
    return torch.cat([state.root_pos, state.root_rot, state.joint_pos], -1)


def _colors(down: Sequence[bool], on_clip: Sequence[bool]) -> list[str]:
    pairs = zip(down, on_clip, strict=True)
    return [DOWN if low else ON_CLIP if near else UP for low, near in pairs]


def save(picture: Image.Image, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    picture.quantize(dither=Image.Dither.NONE).save(file, optimize=True)  # a third of the bytes


def main(arguments: list[str]) -> int:
    try:
        usual = str(places.cards() / "skills.png")
        others = {"skill": "humanoid@latest", "store": "", "clips": "", "random": "false"}
        options = parse_options(name_reference(arguments, "skill"), {**others, "out": usual})
        if not options["out"].endswith(".png"):
            raise ValueError(f"out={options['out']}: name a .png")
        with_random = parse_flag(options, "random")
        skills = SkillLibrary.open(open_store(options["store"]), options["skill"])
        setup = Setup(skills, clips_of(skills), Conditions(threads=1))
        names = [target.name for target in setup.targets]
        clips = options["clips"].split(",") if options["clips"] else names
        for clip in clips:
            clip_number(setup, clip)  # an unknown one is refused even without rendering
        drawing = FilmStrip(setup.data.character)  # fails here, not after a minute of simulation
        strips = hold_clips(setup, clips)
        if with_random:
            strips.append(random_minute(setup))
        save(drawing.draw(strips), Path(options["out"]))
        drawing.close()
    except (StoreError, ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{options['out']}: {', '.join(clips)}")
    return 0


if __name__ == "__main__":
    sys.exit(program(main, lambda: str(__doc__)))
