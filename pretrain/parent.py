"""The parent: a published library from which training continues."""

from __future__ import annotations

import sys

from pretrain.characters.character import Character
from pretrain.config import PretrainConfig
from pretrain.publishing.manifest_character import to_manifest
from skills_store.manifest import Manifest
from skills_store.open import open_store
from skills_store.version import Version


def find_parent(cfg: PretrainConfig) -> Version | None:
    """The version that `warm.library` names; None where it is empty.

    Raises ValueError where it is no skill library, or where another key of `warm` needs one, and
    StoreError where it does not exist."""
    if not cfg.warm.library:
        for key in ("distill_steps", "parent_weight", "value_samples"):
            if value := getattr(cfg.warm, key):
                raise ValueError(
                    f"warm.{key}={value} needs a library, and none is given; expected "
                    "warm.library=NAME@N"
                )
        return None
    version = open_store(cfg.store).resolve(cfg.warm.library)
    if version.manifest.kind != "skills":
        raise ValueError(
            f"warm.library={cfg.warm.library} is a {version.manifest.kind}; "
            "expected a skill library"
        )
    return version


def check_parent(cfg: PretrainConfig, manifest: Manifest, character: Character) -> None:
    """Raise ValueError where its networks are for another body, latent or style window."""
    window = manifest.graphs["encoder"].input("window").shape[1]
    for key, configured, published in (
        ("latent.latent_dim", cfg.latent.latent_dim, manifest.latent.dim),
        ("num_disc_obs_steps", cfg.num_disc_obs_steps, window),
    ):
        if configured != published:
            raise ValueError(
                f"{key} is {configured}, and {cfg.warm.library} has {published}; "
                f"expected {key}={published}"
            )
    body = to_manifest(character)
    published_body = manifest.character
    if body.joints != published_body.joints:
        raise ValueError(
            f"{cfg.warm.library} has the joints {', '.join(published_body.joints)}; "
            f"{character.name!r} has {', '.join(body.joints)}"
        )


def warn_of_other_body(cfg: PretrainConfig, manifest: Manifest, character: Character) -> None:
    """Warn on stderr of a body that differs from the parent's in anything but its joints."""
    body = to_manifest(character)
    published_body = manifest.character
    differs = [
        name
        for name in ("kp", "kd", "damping", "torque_limit", "control_dt", "mjcf")
        if getattr(body, name) != getattr(published_body, name)
    ]
    if differs:
        print(
            f"warning: {cfg.warm.library} was trained on a body with other {', '.join(differs)}",
            file=sys.stderr,
        )
