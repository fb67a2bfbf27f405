"""Whether a version may be opened: it is signed by a trusted key or needs no signature. Computes no
signature.

    REPERTOIRE_TRUST=off|warn|require    default: off
    REPERTOIRE_TRUSTED_KEYS=DIR:FILE     public keys; a folder stands for every *.pub in it

The keys are read at every opening, so that a key removed from the folder does not count any more,
without a restart.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from skills_store.errors import StoreError, UntrustedVersion, UnusableKey
from skills_store.store import Store
from skills_store.version import Version

Policy = Literal["off", "warn", "require"]
logger = logging.getLogger("skills_store")


@dataclass(frozen=True)
class TrustPolicy:
    policy: Policy = "off"
    keys: tuple[Path, ...] = ()

    @staticmethod
    def from_environment() -> TrustPolicy:
        policy = os.environ.get("REPERTOIRE_TRUST") or "off"
        if policy not in get_args(Policy):  # a typo must not mean "off"
            raise StoreError(
                f"REPERTOIRE_TRUST is {policy!r}; it can be {', '.join(get_args(Policy))}"
            )
        keys = os.environ.get("REPERTOIRE_TRUSTED_KEYS", "").split(os.pathsep)
        return TrustPolicy(cast(Policy, policy), tuple(Path(key) for key in keys if key))

    def check(self, store: Store, version: Version) -> None:
        """Raises UntrustedVersion or UnusableKey under `require`, logs it under `warn`."""
        if self.policy == "off":
            return
        try:
            self.find_signers(store, version)
        except (UntrustedVersion, UnusableKey) as error:
            if self.policy == "require":
                raise
            logger.warning("%s", error)

    def find_signers(self, store: Store, version: Version) -> tuple[str, ...]:
        """Ids of the trusted keys that signed this version, at least one, or UntrustedVersion with
        the reason.

        Raises UnusableKey if a trusted key cannot be read: a typo must not drop a key.
        """
        try:
            from skills_store.signatures import signing
        except ImportError as error:
            raise UntrustedVersion(
                version.ref, f"checking needs cryptography (repertoire[sign]): {error}"
            ) from error
        keys = signing.read_public_keys(self.keys)
        if not keys:
            source = ", ".join(map(str, self.keys)) or "REPERTOIRE_TRUSTED_KEYS is not set"
            raise UntrustedVersion(version.ref, f"there are no trusted keys ({source})")
        envelopes = store.signatures(version.name).read_envelopes(version.digest)
        if signers := signing.find_signers(envelopes, version.digest, keys):
            return signers
        trusted = ", ".join(key[:16] for key in keys)
        raise UntrustedVersion(
            version.ref, f"it has {len(envelopes)} signatures, none of them by {trusted}"
        )
