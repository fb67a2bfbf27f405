"""Pictures of skills: frames of one rollout of a published library, side by side, a row a clip.

python -m pretrain.render skill=humanoid@latest clips=walk,run,turn_left1 out=skills.png

keys:
  skill=humanoid@latest   reference of the library
  store=                  skill store; default $REPERTOIRE_STORE, else as in skills_store/places.py
  clips=                  names of training clips, separated by commas; default: the first four
  out=                    a .png; default: below the folder of cards
"""

from __future__ import annotations

# MuJoCo's bindings ship no type stubs
# pyright: reportAttributeAccessIssue=false
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

if sys.platform == "linux":
    os.environ.setdefault("MUJOCO_GL", "egl")  # before mujoco is imported; a display is rarely at hand

import numpy as np
import torch
from PIL import Image, ImageDraw

from pretrain.characters.character import Character, mujoco
from pretrain.characters.kinematics import forward
from pretrain.characters.state import CharacterState
from pretrain.cli import parse_options, program
from pretrain.sim.backend import make_backend
from pretrain.sim.mujoco_cpu import compile_model
from pretrain.training_data import TrainingData, control_steps, load_published_data
from skills_store import places
from skills_store.errors import StoreError
from skills_store.open import open_store
from skills_store.runtime.library import SkillLibrary

HEIGHT, WIDTH = 240, 900
VIEW, ELEVATION = 20, -10  # degrees: from the lower edge of a row to the upper, and of the camera's axis
MARGIN = 0.25  # m around the joints: a head's, a hand's, and a little
SECONDS, EVERY = 4.0, 12  # of motion shown, and control steps between two figures
APART = 0.6  # m along x between two figures, on average and at least: who stays in place would be one heap
SHOWN = 4  # clips, where none are named


def rollout(skills: SkillLibrary, material: TrainingData, clip: str) -> list[CharacterState]:
    """`SECONDS` of one character that holds the embedding of `clip`, from the clip's first frame; states (1, ...)."""
    library = material.library
    if clip not in library.names:
        raise ValueError(f"no clip {clip!r}; there are: {', '.join(library.names)}")
    index = library.names.index(clip)
    backend = make_backend("mujoco", material.character, 1, 1)
    backend.place(torch.zeros(1, dtype=torch.long), library.at(torch.tensor([index]), torch.zeros(1)))
    z = np.array([skills.version.manifest.latent.clips[clip]], dtype=np.float32)
    states = []
    for _ in range(control_steps(SECONDS)):
        states.append(backend.state())
        backend.advance(torch.from_numpy(skills.act(states[-1].flatten().numpy(), z)))
    return states


def apart(states: Sequence[CharacterState]) -> list[CharacterState]:
    """`states` (1, ...) of one character after each other, moved along x until they are APART on average, if they are not."""
    gaps = max(1, len(states) - 1)
    travelled = float(states[-1].root_pos[0, 0] - states[0].root_pos[0, 0])
    more = max(0.0, APART - abs(travelled) / gaps) * (1 if travelled >= 0 else -1)
    steps = (torch.tensor([i * more, 0.0, 0.0]) for i in range(len(states)))
    return [replace(state, root_pos=state.root_pos + step) for state, step in zip(states, steps, strict=True)]


def side_view(points: np.ndarray) -> mujoco.MjvCamera:
    """A camera that looks along y, a little down, from as near as shows all of `points` (P, 3) m with MARGIN around them."""
    camera, down, slope = mujoco.MjvCamera(), np.radians(ELEVATION), np.tan(np.radians(VIEW / 2))
    middle = (points.min(0) + points.max(0)) / 2
    aside, deep, high = (points - middle).T
    ahead, up = deep * np.cos(down) + high * np.sin(down), high * np.cos(down) - deep * np.sin(down)
    least = np.maximum(np.abs(up) + MARGIN, (np.abs(aside) + MARGIN) * HEIGHT / WIDTH) / slope - ahead
    camera.lookat[:], camera.distance, camera.elevation, camera.azimuth = middle, least.max(), ELEVATION, 90
    return camera


def renderer(model: mujoco.MjModel) -> mujoco.Renderer:
    """OSError, in a line, where this machine can't draw, which MuJoCo tells in a way of its own for each MUJOCO_GL."""
    try:
        return mujoco.Renderer(model, HEIGHT, WIDTH)
    except (AttributeError, ImportError, RuntimeError, mujoco.FatalError) as error:
        reason = "nothing to draw with" if isinstance(error, AttributeError) else " ".join(str(error).split())
        where = f"no rendering here (MUJOCO_GL={os.environ.get('MUJOCO_GL', '')}: {reason})"
        raise OSError(f"{where}; install libegl1, or libosmesa6 and set MUJOCO_GL=osmesa") from error


def strip(character: Character, states: Sequence[CharacterState]) -> np.ndarray:
    """One picture (HEIGHT, WIDTH, 3): the character at several moments, a translucent copy each, seen from the side."""
    shown = apart(states[::EVERY])
    model = compile_model(character)
    model.vis.global_.offwidth, model.vis.global_.offheight, model.vis.global_.fovy = WIDTH, HEIGHT, VIEW
    data, option = mujoco.MjData(model), mujoco.MjvOption()
    bodies = [forward(character.skeleton, s.root_pos, s.root_rot, s.joint_pos)[0].flatten(0, -2) for s in shown]
    camera = side_view(torch.cat(bodies).numpy())
    with renderer(model) as drawing:
        for i, state in enumerate(shown):
            data.qpos[:] = torch.cat([state.root_pos[0], state.root_rot[0], state.joint_pos[0]]).numpy()
            mujoco.mj_forward(model, data)
            if i == 0:
                drawing.update_scene(data, camera, option)
            else:
                dynamic = int(mujoco.mjtCatBit.mjCAT_DYNAMIC)
                mujoco.mjv_addGeoms(model, data, option, mujoco.MjvPerturb(), dynamic, drawing.scene)
        return drawing.render()


def main(arguments: list[str]) -> int:
    try:
        picture = places.cards() / "skills.png"
        defaults = {"skill": "humanoid@latest", "store": "", "clips": "", "out": str(picture)}
        asked = parse_options(arguments, defaults)
        if not asked["out"].endswith(".png"):
            raise ValueError(f"out={asked['out']}: name a .png")
        skills = SkillLibrary.open(open_store(asked["store"]), asked["skill"])
        material = load_published_data(skills.version.manifest, skills.window_length)
        clips = [clip.name for clip in material.dataset.originals][:SHOWN]
        if asked["clips"]:
            clips = asked["clips"].split(",")
        rows = [strip(material.character, rollout(skills, material, clip)) for clip in clips]
        picture = Image.fromarray(np.concatenate(rows))
        for i, clip in enumerate(clips):
            ImageDraw.Draw(picture).text((10, i * HEIGHT + 8), clip, fill="black")
        Path(asked["out"]).parent.mkdir(parents=True, exist_ok=True)
        picture.quantize(dither=Image.Dither.NONE).save(asked["out"], optimize=True)  # a third of the bytes
    except (StoreError, ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{asked['out']}: {', '.join(clips)}")
    return 0


if __name__ == "__main__":
    sys.exit(program(main, lambda: str(__doc__)))
