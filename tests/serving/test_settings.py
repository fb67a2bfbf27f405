"""Service settings: the served store, key=value arguments, the TLS files."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from serving.__main__ import _skills, main, set_environment
from serving.models.service import make_service
from serving.settings import Settings
from skills_store.store import BUNDLED, Store
from tests import tiny


def test_bundled_and_published_skills_are_served_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPERTOIRE_STORE", str(tmp_path / "data"))
    monkeypatch.setenv("REPERTOIRE_BUNDLED", "on")
    bundled = Store(BUNDLED).names()
    assert {"humanoid", "mobility", "reach"} < set(bundled)
    served = ", ".join(bundled)
    location = tmp_path / "data"
    assert (
        _skills(Settings()) == f"{served}: bundled versions only, as there is no store {location}"
    )
    service = make_service(Settings())
    assert asyncio.run(service.get_default_skill()).version.ref == "humanoid@4"
    published = Store(tmp_path / "data").publish(
        tiny.skills_manifest("dancer"), tiny.skills_files(0)
    )
    assert service.store.resolve("dancer") == published
    assert _skills(Settings()) == ", ".join(["dancer", *bundled])


def test_folder_that_is_no_store_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "thesis.txt").touch()
    monkeypatch.setenv("REPERTOIRE_STORE", str(tmp_path))
    assert "thesis.txt" in _skills(Settings())


def test_empty_store_without_bundle_reports_no_skills(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPERTOIRE_STORE", str(tmp_path / "named"))
    assert Settings().store == str(tmp_path / "named")
    assert "has no skills" in _skills(Settings())


def test_settings_are_given_as_key_value_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPERTOIRE_PORT", "1")  # restores what is set below
    monkeypatch.setenv("REPERTOIRE_ALLOWED_HOSTS", "")
    set_environment(["port=8123", "allowed_hosts=a.example,b.example"])
    settings = Settings()
    assert (settings.port, settings.allowed_hosts) == (8123, ("a.example", "b.example"))


@pytest.mark.parametrize(
    ("argument", "near"), [("prt=1", "port"), ("--port", "expected key=value"), ("x", "host")]
)
def test_unknown_setting_error_names_similar_ones(argument: str, near: str) -> None:
    with pytest.raises(ValueError, match=near):
        set_environment([argument])


def test_a_certificate_that_cannot_be_loaded_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPERTOIRE_TLS_CERT", "")  # restores what is set below
    monkeypatch.setenv("REPERTOIRE_TLS_KEY", "")
    cert = tmp_path / "none.pem"
    assert main([f"tls_cert={cert}", f"tls_key={cert}"]) == 2
    error = capsys.readouterr().err
    assert f"tls_cert={cert}" in error
    assert "Traceback" not in error
