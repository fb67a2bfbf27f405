"""The folder of captures beside the project, where there is one."""

from pathlib import Path


def find_mocap() -> Path | None:
    """shared/mocap beside the project, or beside a folder that the project lies in."""
    places = (folder.parent / "shared" / "mocap" for folder in Path(__file__).resolve().parents)
    return next((place for place in places if place.is_dir()), None)
