"""The default places of this program's files; configuration keys may name others. Set only here.

    what                    variable           in a source checkout   installed from a wheel
    store                   REPERTOIRE_STORE   skills_store/data      DATA/store
    bundled libraries       REPERTOIRE_BUNDLED skills_store/bundled   with the packages (on or off)
    training runs           REPERTOIRE_RUNS    runs                   DATA/runs
    skill cards, pictures   REPERTOIRE_CARDS   cards                  DATA/cards
    keys of the service     REPERTOIRE_KEYS    keys.json              DATA/keys.json
    fetched clips           REPERTOIRE_CACHE   .cache/motions         CACHE/motions
    verdicts on clips       REPERTOIRE_CACHE   .cache/verdicts        CACHE/verdicts
    servers to compare with REPERTOIRE_CACHE   .cache/peers           CACHE/peers
    caches of buckets       REPERTOIRE_CACHE   CACHE                  CACHE

DATA and CACHE are the user's folders on this system; on Linux ~/.local/share/repertoire and
~/.cache/repertoire. REPERTOIRE_CACHE replaces CACHE and .cache.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import platformdirs

from skills_store.errors import InvalidArgument, NoHomeFolder

APP = "repertoire"
BUNDLED = Path(__file__).parent / "bundled"  # read it, never publish there
ROOT = Path(__file__).parents[1]  # the folder of the packages


def store() -> Path:
    return _data_path("REPERTOIRE_STORE", "skills_store/data", "store")


def bundled() -> Path | None:
    """The libraries that come with the project, or None where REPERTOIRE_BUNDLED hides them."""
    value = os.environ.get("REPERTOIRE_BUNDLED") or "on"
    if value not in ("on", "off"):
        raise InvalidArgument(f"REPERTOIRE_BUNDLED is {value!r}; it can be on or off")
    return BUNDLED if value == "on" else None


def runs() -> Path:
    return _data_path("REPERTOIRE_RUNS", "runs", "runs")


def cards() -> Path:
    return _data_path("REPERTOIRE_CARDS", "cards", "cards")


def keys() -> Path:
    return _data_path("REPERTOIRE_KEYS", "keys.json", "keys.json")


def clips() -> Path:
    return _cache_path() / "motions"


def verdicts() -> Path:
    return _cache_path() / "verdicts"


def peers() -> Path:
    return _cache_path() / "peers"


def buckets() -> Path:
    """The user's cache, also in a checkout: all checkouts share it."""
    return _read_variable("REPERTOIRE_CACHE") or _user_folder(
        "REPERTOIRE_CACHE", platformdirs.user_cache_path
    )


def checkout() -> Path | None:
    """The source checkout of this code; None if it was installed from a wheel."""
    project = ROOT / "pyproject.toml"
    if (
        not project.is_file()
        or f'name = "{APP}"' not in project.read_text(encoding="utf-8").splitlines()
    ):
        return None
    return ROOT


def _data_path(variable: str, in_checkout: str, installed: str) -> Path:
    if named := _read_variable(variable):
        return named
    if (root := checkout()) is not None:
        return root / in_checkout
    return _user_folder(variable, platformdirs.user_data_path) / installed


def _cache_path() -> Path:
    root = checkout()
    return buckets() if root is None or _read_variable("REPERTOIRE_CACHE") else root / ".cache"


def _read_variable(variable: str) -> Path | None:
    """The folder that an environment variable names; an empty variable counts as unset."""
    text = os.environ.get(variable)
    return Path(text) if text else None


def _user_folder(variable: str, folder: Callable[..., Path]) -> Path:
    """This program's part of the user's `folder`. Raises NoHomeFolder if there is no home folder,
    as for a bare uid in a container.
    """
    try:
        return folder(APP, appauthor=False)
    except RuntimeError as error:
        raise NoHomeFolder(variable) from error
