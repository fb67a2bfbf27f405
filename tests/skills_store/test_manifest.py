"""The manifest's documented schema, its versions and the contract digest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from skills_store.contract_digest import compute_contract_digest
from skills_store.manifest import Manifest
from skills_store.store import BUNDLED, Store
from tests import tiny

SCHEMA = Path(__file__).parents[2] / "docs/manifest.schema.json"


def test_the_documented_schema_is_the_one_in_use() -> None:
    """`python -m skills_store schema > docs/manifest.schema.json` writes it."""
    assert json.loads(SCHEMA.read_text()) == Manifest.model_json_schema()


def test_a_manifest_of_an_earlier_schema_is_refused() -> None:
    plain = tiny.skills_manifest().model_dump(mode="json") | {"schema_version": 2}
    with pytest.raises(ValidationError, match="schema_version"):
        Manifest.model_validate(plain)


def test_a_body_without_damping_is_refused() -> None:
    plain = tiny.skills_manifest().model_dump(mode="json")
    del plain["character"]["damping"]
    with pytest.raises(ValidationError, match="damping"):
        Manifest.model_validate(plain)


def test_bundled_libraries_verify_and_contain_no_absolute_paths() -> None:
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


def test_contract_digest_depends_on_client_relevant_fields_only() -> None:
    manifest = tiny.skills_manifest()
    digest = compute_contract_digest(manifest)
    assert (
        compute_contract_digest(
            manifest.model_copy(update={"card": {"survival": 1.0}, "name": "other"})
        )
        == digest
    )
    stiffer = manifest.character.model_copy(
        update={"kp": tuple(2 * kp for kp in manifest.character.kp)}
    )
    assert compute_contract_digest(manifest.model_copy(update={"character": stiffer})) != digest
