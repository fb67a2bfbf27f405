"""Signatures over version digests, and trust policies that require them."""

from __future__ import annotations

import base64
import fcntl
import json
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cryptography", reason="repertoire[sign] is not installed")

from skills_store.__main__ import main
from skills_store.errors import (
    FailedWrite,
    StoreError,
    UnsupportedLayout,
    UntrustedVersion,
    UnusableKey,
)
from skills_store.runtime.library import Controller, SkillLibrary
from skills_store.signatures import signing
from skills_store.signatures.trust_policy import TrustPolicy
from skills_store.store import Store
from skills_store.transfer.copy import copy
from skills_store.transfer.formats import export, import_folder
from skills_store.version import Version
from tests import tiny
from tests.skills_store.full import files_of_at_most


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "store")
    tiny.publish_tiny_controller(store, tiny.publish_tiny(store))
    return store


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """old and new, and a folder `trusted` that has the public half of old."""
    for name in ("old", "new"):
        signing.generate_key(tmp_path / name)
    (tmp_path / "trusted").mkdir()
    (tmp_path / "trusted/old.pub").write_bytes((tmp_path / "old.pub").read_bytes())
    return tmp_path


def signed(store: Store, ref: str, key: Path) -> Version:
    version = store.resolve(ref)
    envelope = signing.sign(version.name, version.digest, signing.read_private_key(key))
    store.add_signature(version, envelope)
    return version


def test_a_signed_version_opens_and_an_unsigned_does_not(store: Store, keys: Path) -> None:
    trust = TrustPolicy("require", (keys / "trusted",))
    with pytest.raises(
        UntrustedVersion, match="humanoid@1 is not signed by a trusted key: it has 0 signatures"
    ):
        SkillLibrary.open(store, "humanoid", trust=trust)
    signed(store, "humanoid", keys / "old")
    library = SkillLibrary.open(store, "humanoid", trust=trust)
    assert library.act(np.zeros((1, tiny.STATE)), np.ones((1, tiny.LATENT))).shape == (
        1,
        len(tiny.JOINTS),
    )


def test_a_controller_needs_its_parent_signed_as_well(store: Store, keys: Path) -> None:
    trust = TrustPolicy("require", (keys / "trusted",))
    signed(store, "reach", keys / "old")
    with pytest.raises(UntrustedVersion, match="humanoid@1"):
        Controller.open(store, "reach", trust=trust)
    signed(store, "humanoid", keys / "old")
    assert Controller.open(store, "reach", trust=trust).library.version.name == "humanoid"


def test_signing_changes_no_version(store: Store, keys: Path) -> None:
    before = {path: path.read_bytes() for path in store.root.rglob("*") if path.is_file()}
    version = signed(store, "humanoid", keys / "old")
    signed(store, "humanoid", keys / "old")
    after = {path: path.read_bytes() for path in store.root.rglob("*") if path.is_file()}
    assert {path: after[path] for path in before} == before
    assert len(after) == len(before) + 1  # one envelope for both signings
    assert store.resolve("humanoid") == version
    assert store.verify() == ()


def test_the_envelope_is_dsse_around_in_toto(store: Store, keys: Path) -> None:
    """Checked by hand against the specifications, as other verifiers do."""
    version = signed(store, "humanoid", keys / "old")
    (envelope,) = store.signatures("humanoid").read_envelopes(version.digest)
    parts = json.loads(envelope)
    payload = base64.b64decode(parts["payload"])
    assert parts["payloadType"] == "application/vnd.in-toto+json"
    statement = json.loads(payload)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["subject"] == [
        {"name": "humanoid", "digest": {"sha256": version.digest.removeprefix("sha256:")}}
    ]
    (public,) = signing.read_public_keys([keys / "old.pub"]).values()
    message = (
        b"DSSEv1 28 application/vnd.in-toto+json " + str(len(payload)).encode() + b" " + payload
    )
    public.verify(base64.b64decode(parts["signatures"][0]["sig"]), message)
    assert parts["signatures"][0]["keyid"] == signing.key_id(public)


def _edited(change: Callable[[dict[str, Any]], object]) -> Callable[[bytes], bytes]:
    def edit(envelope: bytes) -> bytes:
        parts = json.loads(envelope)
        change(parts)
        return json.dumps(parts).encode()

    return edit


def _other_statement(**changed: object) -> Callable[[dict[str, Any]], None]:
    def change(parts: dict[str, Any]) -> None:
        statement = json.loads(base64.b64decode(parts["payload"])) | changed
        parts["payload"] = base64.b64encode(json.dumps(statement).encode()).decode()

    return change


def _flip(parts: dict[str, Any]) -> None:
    signature = bytearray(base64.b64decode(parts["signatures"][0]["sig"]))
    signature[7] ^= 1
    parts["signatures"][0]["sig"] = base64.b64encode(signature).decode()


FORGERIES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "not json": lambda _: b"\x00\xff",
    "another shape": lambda _: b'{"payload": 3, "signatures": {}}',
    "a list": lambda _: b"[[[]]]",
    "no signatures": _edited(lambda parts: parts.update(signatures=[])),
    "a flipped bit": _edited(_flip),
    "another payload": _edited(_other_statement(predicate={"survival": 1})),
    "another type": _edited(lambda parts: parts.update(payloadType="text/plain")),
    "only a key id": _edited(lambda parts: parts["signatures"][0].update(sig="")),
}


@pytest.mark.parametrize("forgery", list(FORGERIES))
def test_forged_signatures_are_rejected(store: Store, keys: Path, forgery: str) -> None:
    version = store.resolve("humanoid")
    envelope = signing.sign("humanoid", version.digest, signing.read_private_key(keys / "old"))
    trusted = signing.read_public_keys([keys / "trusted"])
    assert signing.find_signers([envelope], version.digest, trusted)
    assert signing.find_signers([FORGERIES[forgery](envelope)], version.digest, trusted) == ()


def test_a_signature_is_for_its_digest_and_purpose_only(
    keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = "sha256:" + "1" * 64
    other = "sha256:" + "2" * 64
    key = signing.read_private_key(keys / "old")
    trusted = signing.read_public_keys([keys / "trusted"])
    assert signing.find_signers([signing.sign("humanoid", one, key)], other, trusted) == ()
    monkeypatch.setattr(signing, "PREDICATE", "https://example.com/failed-every-test/v1")
    envelope = signing.sign("humanoid", one, key)  # a valid signature of another statement
    monkeypatch.undo()
    assert signing.find_signers([envelope], one, trusted) == ()


def test_key_rotation_keeps_versions_trusted(store: Store, keys: Path) -> None:
    trust = TrustPolicy("require", (keys / "trusted",))
    version = signed(store, "humanoid", keys / "old")
    (keys / "trusted/new.pub").write_bytes((keys / "new.pub").read_bytes())  # 1. trust both
    assert len(trust.find_signers(store, version)) == 1
    signed(store, "humanoid", keys / "new")  # 2. sign again what is in use
    assert len(trust.find_signers(store, version)) == 2
    (keys / "trusted/old.pub").unlink()  # 3. stop trusting the old, without a restart
    assert len(trust.find_signers(store, version)) == 1
    signed(store, "reach", keys / "old")
    with pytest.raises(UntrustedVersion, match="1 signatures, none of them by"):
        trust.check(store, store.resolve("reach"))


def test_warn_policy_opens_unsigned_versions_with_a_warning(
    store: Store, keys: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "skills_store"):
        SkillLibrary.open(store, "humanoid", trust=TrustPolicy("warn", (keys / "trusted",)))
    assert "humanoid@1 is not signed by a trusted key" in caplog.text
    caplog.clear()
    SkillLibrary.open(store, "humanoid", trust=TrustPolicy("off"))
    assert caplog.text == ""


def test_the_environment_sets_the_policy(
    store: Store, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REPERTOIRE_TRUST", raising=False)
    SkillLibrary.open(store, "humanoid")
    monkeypatch.setenv("REPERTOIRE_TRUST", "require")
    with pytest.raises(UntrustedVersion, match="REPERTOIRE_TRUSTED_KEYS is not set"):
        SkillLibrary.open(store, "humanoid")
    monkeypatch.setenv("REPERTOIRE_TRUSTED_KEYS", f"{keys / 'trusted'}:{keys / 'new.pub'}")
    signed(store, "humanoid", keys / "new")
    SkillLibrary.open(store, "humanoid")
    monkeypatch.setenv("REPERTOIRE_TRUST", "requierd")
    with pytest.raises(StoreError, match="it can be off, warn, require"):
        SkillLibrary.open(store, "humanoid")


@pytest.mark.parametrize("way", ["push", "onnx", "oci"])
def test_copy_and_export_keep_signatures(
    store: Store, keys: Path, tmp_path: Path, way: str
) -> None:
    version = signed(store, "humanoid", keys / "old")
    other = Store(tmp_path / "other")
    signed(store, "humanoid", keys / "new")
    if way == "push":
        copy("humanoid", store, other)
    else:
        export(store, "humanoid", way, tmp_path / "out")
        import_folder(other, tmp_path / "out")
    assert set(other.signatures("humanoid").read_envelopes(version.digest)) == set(
        store.signatures("humanoid").read_envelopes(version.digest)
    )
    SkillLibrary.open(other, "humanoid", trust=TrustPolicy("require", (keys / "trusted",)))


def test_next_copy_brings_later_signatures(store: Store, keys: Path, tmp_path: Path) -> None:
    other = Store(tmp_path / "other")
    copy("humanoid", store, other)
    version = signed(store, "humanoid", keys / "old")
    assert not copy("humanoid", store, other)[0].new
    assert len(other.signatures("humanoid").read_envelopes(version.digest)) == 1


def test_private_key_file_is_0600_and_never_overwritten(keys: Path) -> None:
    assert (keys / "old").stat().st_mode & 0o777 == 0o600
    before = (keys / "old").read_bytes()
    with pytest.raises(FailedWrite, match="is there already; a key is never overwritten"):
        signing.generate_key(keys / "old")
    assert (keys / "old").read_bytes() == before
    with pytest.raises(StoreError, match="no private key"):
        signing.read_private_key(keys / "old.pub")
    with pytest.raises(UnusableKey, match="no public key"):
        signing.read_public_keys([keys / "old"])


@pytest.mark.parametrize("fault", ["missing", "junk"])
def test_invalid_trusted_key_is_reported_by_name(
    store: Store, keys: Path, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    signed(store, "humanoid", keys / "old")
    if fault == "junk":
        (keys / "trusted/junk.pub").write_bytes(b"\x00\xff")
    trusted = (keys / "trusted", *([keys / "missing"] if fault == "missing" else []))
    with caplog.at_level(logging.WARNING, "skills_store"):
        SkillLibrary.open(store, "humanoid", trust=TrustPolicy("warn", trusted))
    assert str(keys) in caplog.text
    assert fault in caplog.text
    with pytest.raises(UnusableKey, match=f"{fault}.* (is no public key|cannot be read)"):
        SkillLibrary.open(store, "humanoid", trust=TrustPolicy("require", trusted))


def test_store_of_a_later_layout_refuses_signatures(
    store: Store, keys: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    later = Store(tmp_path / "later")
    copy("humanoid", store, later)
    signed(store, "humanoid", keys / "old")
    export(store, "humanoid", "onnx", tmp_path / "out")
    marker = later.root / "layout.json"
    marker.chmod(0o644)
    marker.write_text('{"layout":9,"reader":2}')
    at = ["--store", str(later.root)]
    for argv in (
        [*at, "sign", "humanoid", "--key", str(keys / "old")],
        [*at, "pull", "humanoid", "--from", str(store.root)],
        [*at, "import", str(tmp_path / "out")],
    ):
        assert main(argv) == 2
        assert "its layout is 9; this program writes 3 and only reads it" in capsys.readouterr().err
    assert not (later.root / "skills/humanoid/signatures").exists()
    with pytest.raises(UnsupportedLayout):
        signed(later, "humanoid", keys / "old")


def test_signing_waits_for_the_sweep_lock(
    store: Store, keys: Path, blocked_flock: threading.Event
) -> None:
    with (store.root / "lock/access").open() as access:
        fcntl.flock(access, fcntl.LOCK_EX)
        waiting = threading.Thread(target=signed, args=(store, "humanoid", keys / "old"))
        waiting.start()
        assert blocked_flock.wait(60)
        assert store.signatures("humanoid").read_envelopes(store.resolve("humanoid").digest) == ()
    waiting.join(60)
    assert len(store.signatures("humanoid").read_envelopes(store.resolve("humanoid").digest)) == 1


def test_full_disk_error_is_named_and_keygen_can_be_repeated(
    store: Store, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with files_of_at_most(50):
        assert main(["keygen", str(keys / "third")]) == 2
        assert (
            main(["--store", str(store.root), "sign", "humanoid", "--key", str(keys / "old")]) == 2
        )
    key_error, sign_error = capsys.readouterr().err.splitlines()
    assert f"no key is made: {keys / 'third'}: File too large" in key_error
    assert sign_error == f"skills: humanoid@1 is not signed: File too large, in {store.root}"
    assert main(["keygen", str(keys / "third")]) == 0


def test_sign_and_verify_commands(
    store: Store, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ["--store", str(store.root)]
    check = [*at, "verify-signature", "humanoid", "--keys", str(keys / "trusted")]
    assert main(check) == 1
    assert "is not signed by a trusted key" in capsys.readouterr().out
    assert main(["keygen", str(keys / "third")]) == 0
    assert "third.pub" in capsys.readouterr().out
    assert main([*at, "sign", "humanoid", "--key", str(keys / "old")]) == 0
    assert "signed by" in capsys.readouterr().out
    assert main([*check, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["keys"] == list(
        signing.read_public_keys([keys / "old.pub"])
    )
    two = ["--keys", str(keys / "new.pub"), "--keys", str(keys / "old.pub")]
    # --keys does not take the reference.
    assert main([*at, "verify-signature", *two, "humanoid"]) == 0


def test_signing_a_damaged_version_is_refused(
    store: Store, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    digest = store.resolve("humanoid").manifest.files["policy.onnx"].digest
    path = store.root / "blobs/sha256" / digest.removeprefix("sha256:")
    path.chmod(0o644)
    path.write_bytes(b"rot")
    assert main(["--store", str(store.root), "sign", "humanoid", "--key", str(keys / "old")]) == 2
    assert "humanoid@1 is not signed: policy.onnx" in capsys.readouterr().err
    assert store.signatures("humanoid").read_envelopes(store.resolve("humanoid").digest) == ()
