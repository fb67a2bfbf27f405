"""What a manifest says is written down, versioned, and read by programs that came later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from skills_store.manifest import Manifest
from skills_store.store import BUNDLED, Store
from tests import tiny

SCHEMA = Path(__file__).parents[2] / "docs/manifest.schema.json"


def of_schema_1(**character: Any) -> dict[str, Any]:
    plain = tiny.skills_manifest().model_dump(mode="json")
    del plain["observations"]
    return plain | {"schema_version": 1, "character": plain["character"] | character}


def test_the_documented_schema_is_the_one_in_use() -> None:
    """`python -m skills_store schema > docs/manifest.schema.json` writes it."""
    assert json.loads(SCHEMA.read_text()) == Manifest.model_json_schema()


def test_a_manifest_of_schema_1_with_damping_is_read_as_it_is() -> None:
    assert Manifest.model_validate(of_schema_1()) == tiny.skills_manifest()


def test_without_damping_all_of_its_kd_was_passive() -> None:
    """Torque was clip(kp (target - q), +-limit) - kd q' before there was a `damping`, and still is."""
    earlier = of_schema_1(kd=[7.0] * len(tiny.JOINTS))
    del earlier["character"]["damping"]
    body = Manifest.model_validate(earlier).character
    assert set(body.kd) == {0.0}
    assert set(body.damping) == {7.0}


def test_without_damping_in_schema_2_it_is_refused() -> None:
    plain = tiny.skills_manifest().model_dump(mode="json")
    del plain["character"]["damping"]
    with pytest.raises(ValidationError, match="damping"):
        Manifest.model_validate(plain)


def test_the_bundled_library_opens_and_names_no_path_of_whoever_made_it() -> None:
    bundled = Store(BUNDLED)
    assert bundled.verify() == ()
    for name in bundled.names():
        manifest = bundled.resolve(name).manifest
        assert not {"runs", "store"} & set(manifest.lineage.config)
        assert not [text for text in _texts(manifest.lineage.config) if text.startswith("/")]


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for each in value.values() for text in _texts(each)]
    if isinstance(value, list):
        return [text for each in value for text in _texts(each)]
    return [value] if isinstance(value, str) else []
