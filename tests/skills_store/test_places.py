"""Default folders in a checkout and in an installation, and the variable that overrides each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import platformdirs
import pytest

from skills_store import places
from skills_store.__main__ import main
from skills_store.errors import NoHomeFolder

ROOT = Path(__file__).parents[2]
PLACES: dict[str, tuple[Callable[[], Path], str, str]] = {  # its variable, in a checkout, installed
    "store": (places.store, "REPERTOIRE_STORE", "skills_store/data"),
    "runs": (places.runs, "REPERTOIRE_RUNS", "runs"),
    "cards": (places.cards, "REPERTOIRE_CARDS", "cards"),
    "keys.json": (places.keys, "REPERTOIRE_KEYS", "keys.json"),
    "motions": (places.clips, "REPERTOIRE_CACHE", ".cache/motions"),
    "peers": (places.peers, "REPERTOIRE_CACHE", ".cache/peers"),
}
CACHED = ("motions", "peers")


@pytest.fixture(autouse=True)
def _unset_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for _, variable, _ in PLACES.values():
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Packages beside another project's pyproject.toml; returns the home folder."""
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "other"\n')
    monkeypatch.setattr(places, "ROOT", tmp_path)
    home = tmp_path / "Zoë 日本"
    monkeypatch.setenv("HOME", str(home))
    for variable in ("XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    return home


@pytest.mark.parametrize("name", PLACES)
def test_checkout_folders_do_not_depend_on_the_working_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, _, in_checkout = PLACES[name]
    monkeypatch.chdir(tmp_path)
    assert places.checkout() == ROOT
    assert place() == ROOT / in_checkout


@pytest.mark.parametrize("name", PLACES)
def test_installed_folders_are_in_the_users_home(name: str, installed: Path) -> None:
    parent = platformdirs.user_cache_path if name in CACHED else platformdirs.user_data_path
    assert places.checkout() is None
    assert PLACES[name][0]() == parent("repertoire", appauthor=False) / name
    assert installed in PLACES[name][0]().parents


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("setting", ["in a checkout", "installed"])
def test_variable_overrides_each_folder(
    name: str,
    setting: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    if setting == "installed":
        request.getfixturevalue("installed")
    place, variable, _ = PLACES[name]
    before = place()
    monkeypatch.setenv(variable, str(tmp_path / "mine"))
    assert place() == (tmp_path / "mine" / name if name in CACHED else tmp_path / "mine")
    monkeypatch.setenv(variable, "")
    assert place() == before


def test_caches_of_buckets_are_shared_by_all_checkouts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert places.buckets() == platformdirs.user_cache_path("repertoire", appauthor=False)
    monkeypatch.setenv("REPERTOIRE_CACHE", str(tmp_path))
    assert places.buckets() == tmp_path


def test_missing_home_error_names_the_variable_to_set(
    installed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # As in a container whose user id has no passwd entry.
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    for place, variable, _ in PLACES.values():
        with pytest.raises(NoHomeFolder, match=f"no home folder; set {variable} to"):
            place()
    assert main(["ls"]) == 2
    assert (
        capsys.readouterr().err
        == "skills: this user has no home folder; set REPERTOIRE_STORE to the place to use\n"
    )
