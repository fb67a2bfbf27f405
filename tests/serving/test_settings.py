"""What is served where nobody says which store."""

from __future__ import annotations

from pathlib import Path
from socket import socket

import pytest
import uvicorn

from serving.__main__ import _skills, main, set_environment
from serving.settings import Settings
from skills_store.store import BUNDLED, Store
from tests import tiny


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that everything publishes to."""
    monkeypatch.delenv("REPERTOIRE_STORE", raising=False)
    monkeypatch.setattr("serving.settings.default_root", lambda: tmp_path / "data")
    return tmp_path / "data"


def test_until_something_is_published_what_comes_with_the_project_is_served(data: Path) -> None:
    assert Settings().store == BUNDLED
    data.mkdir()
    assert Settings().store == BUNDLED
    assert _skills(Settings()).startswith("what comes with the project, humanoid, ")
    Store(data).publish(tiny.skills_manifest(), tiny.skills_files(0))
    assert Settings().store == data
    assert _skills(Settings()) == "humanoid"


def test_a_worker_that_is_begun_after_the_first_publish_serves_what_the_others_do(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPERTOIRE_STORE", "")  # as if it were not set; what the command makes of it is undone
    monkeypatch.setenv("REPERTOIRE_PORT", "0")
    served = []

    def run(self: uvicorn.Server, sockets: list[socket]) -> None:
        for listening in sockets:
            listening.close()
        Store(data).publish(tiny.skills_manifest(), tiny.skills_files(0))
        served.append(Settings().store)

    monkeypatch.setattr(uvicorn.Server, "run", run)
    assert main() == 0
    assert served == [str(BUNDLED)]


def test_a_folder_that_is_no_store_is_not_passed_over(data: Path) -> None:
    data.mkdir()
    (data / "thesis.txt").touch()
    assert Settings().store == data
    assert "thesis.txt" in _skills(Settings())


def test_a_store_that_is_named_is_served_empty_as_it_is(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPERTOIRE_STORE", str(tmp_path / "named"))
    assert Settings().store == str(tmp_path / "named")
    assert "has no skills" in _skills(Settings())


def test_settings_are_given_as_key_value_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPERTOIRE_PORT", "1")  # what is set below is undone with these
    monkeypatch.setenv("REPERTOIRE_ALLOWED_HOSTS", "")
    set_environment(["port=8123", "allowed_hosts=a.example,b.example"])
    settings = Settings()
    assert (settings.port, settings.allowed_hosts) == (8123, ("a.example", "b.example"))


@pytest.mark.parametrize(("argument", "near"), [("prt=1", "port"), ("--port", "expected key=value"), ("x", "host")])
def test_an_unknown_setting_names_those_near_it(argument: str, near: str) -> None:
    with pytest.raises(ValueError, match=near):
        set_environment([argument])
