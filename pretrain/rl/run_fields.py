"""Settings for the folders of training runs and results, in both stages."""

from __future__ import annotations

from pydantic import Field

from skills_store import places

RUNS = Field(
    default_factory=lambda: str(places.runs()),
    description=(
        "Folder of training runs; default $REPERTOIRE_RUNS, else as in skills_store/places.py"
    ),
)
STORE = Field(
    default="",
    description="Skill store; default $REPERTOIRE_STORE, else as in skills_store/places.py",
)
