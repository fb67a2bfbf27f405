"""The folder of motion captures beside the project, if it exists."""

from pathlib import Path


def find_mocap() -> Path | None:
    """shared/mocap beside the project, or beside a folder above it."""
    places = (folder.parent / "shared" / "mocap" for folder in Path(__file__).resolve().parents)
    return next((place for place in places if place.is_dir()), None)
