"""The library that a training continues: differences of its body are reported."""

from __future__ import annotations

from dataclasses import replace

from pretrain.parent import warn_of_other_body
from pretrain.publishing.manifest_character import from_manifest
from skills_store.open import open_store
from skills_store.store import BUNDLED
from tests.pipeline.small import PARENT, toy


def test_a_body_that_differs_from_the_parents_is_reported_by_what_differs(capsys):
    manifest = open_store(BUNDLED).resolve(PARENT).manifest
    same = from_manifest(manifest.character)
    cfg = toy(f"store={BUNDLED}", f"warm.library={PARENT}")
    warn_of_other_body(cfg, manifest, same)
    assert capsys.readouterr().err == ""
    heavier = replace(same, mjcf=same.mjcf.replace("<mujoco", "<!-- heavier --><mujoco", 1))
    limit = [2 * torque for torque in same.torque_limit]
    warn_of_other_body(cfg, manifest, replace(heavier, torque_limit=limit))
    expected = f"warning: {PARENT} was trained on a body with other torque_limit, mjcf\n"
    assert capsys.readouterr().err == expected
