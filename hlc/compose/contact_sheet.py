"""Contact sheet of a machine's run: one film strip per visit."""

from __future__ import annotations

from pathlib import Path

from hlc.compose.player import FALL, SUCCESS, Playthrough
from hlc.tasks.scene import Scene
from pretrain.characters.character import Character
from pretrain.evaluation.film_strip import DOWN, ON_CLIP, UP, FilmStrip, Strip
from pretrain.motion.clip import CONTROL_RATE

FRAME_STRIDE = 5  # control steps from one frame to the next
COLORS = {SUCCESS: ON_CLIP, FALL: DOWN}  # of a strip's bar, by the cause of the visit's end


def draw_contact_sheet(played: Playthrough, character: Character, scene: Scene, path: Path) -> None:
    """Write the sheet to `path`. OSError where rendering fails."""
    strips = []
    for visit in played.visits:
        seconds = (visit.stop - visit.start) / CONTROL_RATE
        steps = played.qpos[visit.start : visit.stop]
        colors = [COLORS.get(visit.cause, UP)] * len(steps)
        title = f"{visit.name}: {visit.cause} after {seconds:.1f} s"
        strips.append(Strip(title, steps, FRAME_STRIDE, colors))
    film = FilmStrip(scene.extend(character))
    try:
        film.draw(strips).save(path)
    finally:
        film.close()
