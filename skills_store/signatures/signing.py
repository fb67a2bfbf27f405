"""Ed25519 signatures over a manifest's digest, as DSSE envelopes around in-toto statements.
Independent of store and policy.

The one module that imports cryptography. The digest covers the manifest, and through it every file,
so one signature covers a version. It covers the bytes, not which version is the newest: an alias
can still move back.

    envelope = {payloadType, payload: base64(statement), signatures: [{keyid, sig: base64}]}
    sig      = Ed25519("DSSEv1 <len type> <type> <len payload> <payload>")
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from skills_store.errors import StoreError, UnusableKey
from skills_store.signatures import key_file

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT = "https://in-toto.io/Statement/v1"
# Signatures over other statements of the same key do not count.
PREDICATE = "urn:repertoire:published-skill:v1"

Keys = Mapping[str, Ed25519PublicKey]  # by key id


def key_id(key: Ed25519PublicKey) -> str:
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()


def generate_key(path: Path) -> str:
    """A private key at `path`, readable by its owner only, and `path`.pub to distribute. Returns
    the key id.
    """
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    key_file.create_pair(path, pem, public)
    return key_id(key.public_key())


def read_private_key(path: Path) -> Ed25519PrivateKey:
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise StoreError(f"{path} is no private key in PEM without a password: {error}") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise StoreError(
            f"{path} is a {type(key).__name__}; signing takes Ed25519, as `keygen` makes it"
        )
    return key


def read_public_keys(paths: Iterable[Path]) -> Keys:
    """Public keys by id; a folder stands for every *.pub in it. Raises UnusableKey for a file that
    is missing or no key."""
    files = chain.from_iterable(map(_list_key_files, paths))
    keys = [_read_public_key(file) for file in files]
    return {key_id(key): key for key in keys}


def sign(name: str, digest: str, key: Ed25519PrivateKey) -> bytes:
    """The same key and digest give the same envelope: Ed25519 is deterministic, and the statement
    has no date.
    """
    statement = {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": digest.removeprefix("sha256:")}}],
        "predicateType": PREDICATE,
        "predicate": {},
    }
    payload = _encode_json(statement)
    signature = key.sign(_encode_pae(payload))
    signed = {"keyid": key_id(key.public_key()), "sig": base64.b64encode(signature).decode()}
    return _encode_json(
        {
            "payloadType": PAYLOAD_TYPE,
            "payload": base64.b64encode(payload).decode(),
            "signatures": [signed],
        }
    )


def find_signers(envelopes: Iterable[bytes], digest: str, keys: Keys) -> tuple[str, ...]:
    """Ids of those of `keys` that signed `digest`. Invalid envelopes are ignored."""
    signers = chain.from_iterable(_find_signers(envelope, digest, keys) for envelope in envelopes)
    return tuple(dict.fromkeys(signers))


def _find_signers(envelope: bytes, digest: str, keys: Keys) -> list[str]:
    try:
        parts = json.loads(envelope)
        payload = base64.b64decode(parts["payload"], validate=True)
        signatures = [
            base64.b64decode(signature["sig"], validate=True) for signature in parts["signatures"]
        ]
        is_statement = parts["payloadType"] == PAYLOAD_TYPE
    except (ValueError, KeyError, TypeError):
        return []
    # The key ids in an envelope are hints that anyone can write; only a verified signature counts.
    signers = [name for name, key in keys.items() if _is_signed(key, signatures, payload)]
    return signers if is_statement and signers and _covers(payload, digest) else []


def _covers(payload: bytes, digest: str) -> bool:
    """Called only for a payload whose signature is verified."""
    try:
        statement = json.loads(payload)
        subjects = [subject["digest"].get("sha256") for subject in statement["subject"]]
        kind = (statement["_type"], statement["predicateType"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return False
    return kind == (STATEMENT, PREDICATE) and digest.removeprefix("sha256:") in subjects


def _list_key_files(path: Path) -> list[Path]:
    return sorted(path.glob("*.pub")) if path.is_dir() else [path]


def _is_signed(key: Ed25519PublicKey, signatures: Iterable[bytes], payload: bytes) -> bool:
    return any(_is_valid(key, signature, payload) for signature in signatures)


def _is_valid(key: Ed25519PublicKey, signature: bytes, payload: bytes) -> bool:
    try:
        key.verify(signature, _encode_pae(payload))
    except InvalidSignature:
        return False
    return True


def _encode_pae(payload: bytes) -> bytes:
    """DSSE's pre-authentication encoding: type and payload cannot be shifted into one another."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def _read_public_key(path: Path) -> Ed25519PublicKey:
    try:
        key = serialization.load_pem_public_key(path.read_bytes())
    except OSError as error:
        raise UnusableKey(
            str(path), f"cannot be read as a trusted key: {error.strerror}"
        ) from error
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise UnusableKey(str(path), f"is no public key in PEM: {error}") from error
    if not isinstance(key, Ed25519PublicKey):
        raise UnusableKey(
            str(path), f"is a {type(key).__name__}; trust takes Ed25519, as `keygen` makes it"
        )
    return key


def _encode_json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
