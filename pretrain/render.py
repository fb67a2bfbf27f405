"""A skill as a picture: frames of one rollout of a published library, side by side.

python -m pretrain.render skill=humanoid@latest clips=walk,run,turn_left1 out=skills.png   (its first four without clips)
"""

from __future__ import annotations

# MuJoCo's bindings ship no type stubs
# pyright: reportAttributeAccessIssue=false
import os
import sys
from collections.abc import Iterable

os.environ.setdefault("MUJOCO_GL", "egl")  # before mujoco is imported; a display is rarely at hand

import mujoco
import numpy as np
import torch
from PIL import Image, ImageDraw

from pretrain.characters.character import Character
from pretrain.characters.state import CharacterState
from pretrain.material import Material, control_steps, material_of
from pretrain.rl.run import options
from pretrain.sim.backend import make_backend
from pretrain.sim.mujoco_cpu import compile_model
from skills_store.errors import StoreError
from skills_store.library import SkillLibrary
from skills_store.opening import open_store

HEIGHT, WIDTH = 240, 900
SECONDS, EVERY = 4.0, 12  # of motion shown, and control steps between two figures
SHOWN = 4  # clips, where none are named


def rollout(skills: SkillLibrary, material: Material, clip: str) -> list[CharacterState]:
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
        backend.advance(torch.from_numpy(skills.act(states[-1].flat().numpy(), z)))
    return states


def strip(character: Character, states: Iterable[CharacterState]) -> np.ndarray:
    """One picture (HEIGHT, WIDTH, 3): the character at several moments, a translucent copy each, seen from the side."""
    shown = list(states)[::EVERY]
    model = compile_model(character)
    model.vis.global_.offwidth, model.vis.global_.offheight = WIDTH, HEIGHT
    data, option = mujoco.MjData(model), mujoco.MjvOption()
    path = np.stack([state.root_pos[0].numpy() for state in shown])
    camera = mujoco.MjvCamera()
    camera.lookat[:] = [*(path[:, :2].min(0) + path[:, :2].max(0)) / 2, 0.8]
    camera.distance, camera.elevation, camera.azimuth = 2.2 + 0.45 * np.ptp(path, axis=0).max(), -10, 90
    with mujoco.Renderer(model, HEIGHT, WIDTH) as renderer:
        for i, state in enumerate(shown):
            data.qpos[:] = torch.cat([state.root_pos[0], state.root_rot[0], state.joint_pos[0]]).numpy()
            mujoco.mj_forward(model, data)
            if i == 0:
                renderer.update_scene(data, camera, option)
            else:
                dynamic = int(mujoco.mjtCatBit.mjCAT_DYNAMIC)
                mujoco.mjv_addGeoms(model, data, option, mujoco.MjvPerturb(), dynamic, renderer.scene)
        return renderer.render()


def main(arguments: list[str]) -> int:
    defaults = {"skill": "humanoid@latest", "store": "", "clips": "", "out": "skills.png"}
    try:
        asked = options(arguments, defaults)
        skills = SkillLibrary.open(open_store(asked["store"]), asked["skill"])
        material = material_of(skills.version.manifest, skills.window_length)
        clips = [clip.name for clip in material.dataset.originals][:SHOWN]
        if asked["clips"]:
            clips = asked["clips"].split(",")
        rows = [strip(material.character, rollout(skills, material, clip)) for clip in clips]
        picture = Image.fromarray(np.concatenate(rows))
        for i, clip in enumerate(clips):
            ImageDraw.Draw(picture).text((10, i * HEIGHT + 8), clip, fill="white")
        picture.save(asked["out"])
    except (StoreError, ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{asked['out']}: {', '.join(clips)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
