"""Plays clips in the browser with viser, which is no dependency."""

# MuJoCo's bindings ship no type stubs, and viser is not installed with the project
# pyright: reportAttributeAccessIssue=false, reportMissingImports=false
from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from pretrain.characters.character import load_character
from pretrain.characters.mujoco_bindings import mujoco
from pretrain.characters.skeleton import Skeleton
from pretrain.motion.clip import MotionClip

HOST = "127.0.0.1"
GREY = (150, 150, 155)
LEFT = (55, 100, 160)
RIGHT = (205, 100, 65)
MAX_SPEED = 2.0
CAMERA = (2.4, -2.4, 1.6)  # m
LOOK_AT = (0.0, 0.0, 0.9)


class ClipViewer:
    """A page that shows one of `clips` at a time. Controls: clip, frame, play, speed, and whether
    the root stays over the origin.

    ImportError where viser is not installed."""

    def __init__(self, clips: Sequence[MotionClip], port: int):
        try:
            import viser
        except ImportError as error:
            raise ImportError(
                "preview --browser needs viser, which needs another version of websockets than "
                "the extra `serve`: in an environment with the extra `train`, pip install viser"
            ) from error
        self.clips = {f"{number}: {clip.name}": clip for number, clip in enumerate(clips)}
        self.server = viser.ViserServer(host=HOST, port=port, verbose=False)
        self.server.scene.set_up_direction("+z")
        self.server.initial_camera.position = CAMERA
        self.server.initial_camera.look_at = LOOK_AT
        self.server.scene.add_grid("/ground", cell_size=0.5)
        self.bodies = _add_bodies(self.server, clips[0].skeleton)
        gui = self.server.gui
        first = next(iter(self.clips))
        self.choice = gui.add_dropdown("clip", tuple(self.clips), initial_value=first)
        self.frame = gui.add_slider("frame", 0, len(clips[0]) - 1, 1, 0)
        self.play = gui.add_checkbox("play", True)
        self.speed = gui.add_slider("speed", 0.1, MAX_SPEED, 0.1, 1.0)
        self.in_place = gui.add_checkbox("in place", False)
        self.in_place.on_update(lambda _: self.show())
        self.choice.on_update(lambda _: self.choose())
        self.frame.on_update(lambda _: self.show())
        self.show()

    @property
    def url(self) -> str:
        """Address of the page; its port is another where the requested one was taken."""
        return f"http://{HOST}:{self.server.get_port()}"

    @property
    def clip(self) -> MotionClip:
        return self.clips[self.choice.value]

    def choose(self) -> None:
        """Start the chosen clip."""
        self.frame.max = len(self.clip) - 1
        self.frame.value = 0
        self.show()  # without a change of `frame` no callback runs

    def show(self) -> None:
        """Poses the bodies as in the chosen frame."""
        frame = min(int(self.frame.value), len(self.clip) - 1)
        positions, rotations = self.clip.world_poses
        origin = self.clip.root_pos[frame] * [1, 1, 0] if self.in_place.value else np.zeros(3)
        with self.server.atomic():
            for index, handle in enumerate(self.bodies):
                handle.position = positions[frame, index] - origin
                handle.wxyz = rotations[frame, index]

    def run(self) -> None:
        """Plays until interrupted."""
        while True:
            time.sleep(1 / (self.clip.fps * self.speed.value))
            if self.play.value:
                self.frame.value = (int(self.frame.value) + 1) % len(self.clip)


def _add_bodies(server: Any, skeleton: Skeleton) -> list[Any]:
    """A frame for each body, with the shapes of the character's model in it."""
    model = mujoco.MjModel.from_xml_string(load_character(skeleton.name).mjcf)
    frames = []
    for body in skeleton.bodies:
        frames.append(server.scene.add_frame(f"/body/{body}", show_axes=False))
        color = LEFT if body.startswith("left") else RIGHT if body.startswith("right") else GREY
        for geom in np.flatnonzero(model.geom_bodyid == model.body(body).id):
            vertices, faces = make_mesh(model, int(geom))
            server.scene.add_mesh_simple(
                f"/body/{body}/shape_{geom}",
                vertices=vertices,
                faces=faces,
                color=color,
                position=model.geom_pos[geom],
                wxyz=model.geom_quat[geom],
            )
    return frames


def make_mesh(model: Any, geom: int) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (V, 3) m and faces (F, 3) of a sphere, capsule or box about its center."""
    from trimesh import creation  # comes with viser

    size = model.geom_size[geom]
    kind = model.geom_type[geom]
    if kind == mujoco.mjtGeom.mjGEOM_SPHERE:
        mesh = creation.icosphere(radius=size[0])
    elif kind == mujoco.mjtGeom.mjGEOM_CAPSULE:
        mesh = creation.capsule(height=2 * size[1], radius=size[0])
    elif kind == mujoco.mjtGeom.mjGEOM_BOX:
        mesh = creation.box(extents=2 * size)
    else:
        raise ValueError(f"geom {geom} is no sphere, capsule or box")
    vertices = np.asarray(mesh.vertices)
    return vertices - (vertices.min(0) + vertices.max(0)) / 2, np.asarray(mesh.faces)
