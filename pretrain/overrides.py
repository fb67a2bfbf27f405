"""Loads Hydra's `key=value` overrides into one frozen pydantic model."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from hydra import compose, initialize_config_module
from hydra.core.config_store import ConfigStore
from hydra.errors import HydraException, OverrideParseException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

Config = TypeVar("Config", bound=BaseModel)
TEXT = (str, Path)  # types of keys whose value is text
TOP_KEYS = 6  # keys outside of groups that are shown where none is near
MAX_NEAR = 4  # keys shown for an unknown one
# values of keys that are not text
VALUES = "a number, true, false, null, a word, or a list as [256,256]"
# reasons of pydantic in Python's terms, in those of the command line
REASONS = {"tuple_type": "expected a list, as [256,256]"}
MAX_REASON = 200  # characters of Hydra's message


class ConfigError(ValueError):
    """An invalid configuration; the message lists what exists."""


def load_config(kind: type[Config], module: str, overrides: Sequence[str]) -> Config:
    """Load Hydra groups of `module` plus `overrides` ("task=reach ppo.lr=3e-4") into a frozen
    model.

    A text key takes everything after its first "=" literally: a path may have any character. Other
    values are in Hydra's grammar. Raises ConfigError, with a message of one line."""
    keys = _keys(kind)
    groups = list_groups(module)
    if invalid := [override for override in overrides if "=" not in override]:
        raise ConfigError(f"{' '.join(invalid)} is not key=value")
    _check_known([*keys, *(groups - keys.keys())], overrides)
    textual = {key for key, type_ in keys.items() if type_ in TEXT} - groups
    texts, hydra_overrides = _split(overrides, textual)
    # Hydra overrides only existing keys: the model's defaults come first, under the model's name.
    # Text keys are left out, because Hydra would interpret a ${...} in them.
    defaults = kind().model_dump(mode="json", exclude=textual)
    ConfigStore.instance().store(name=kind.__name__, node=defaults)
    try:
        with initialize_config_module(config_module=module, version_base="1.3"):
            composed = compose(config_name="config", overrides=hydra_overrides)
        values = OmegaConf.to_container(composed, resolve=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(_reason(error)) from None
    for key, text in texts.items():
        _place(values, key, text)
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise ConfigError("; ".join(map(describe_error, error.errors()))) from None


def describe_error(error: ErrorDetails) -> str:
    """The key, what was expected, and the value; a rule over several keys has its own message."""
    key = ".".join(map(str, error["loc"]))
    reason = REASONS.get(error["type"], error["msg"].removeprefix("Value error, "))
    message = f"{key}: {reason}" if key else reason
    if isinstance(error["input"], dict):
        return message
    return f"{message}, got {error['input']!r}"


def find_near(key: str, keys: Iterable[str]) -> list[str]:
    """Those of `keys` similar to `key`, as a whole or after the last dot."""
    names = list(keys)
    last = {name: name.rpartition(".")[2] for name in names}
    close = get_close_matches(key.rpartition(".")[2], last.values(), MAX_NEAR, cutoff=0.75)
    similar = get_close_matches(key, names, MAX_NEAR) + [n for n in names if last[n] in close]
    return list(dict.fromkeys(similar))[:MAX_NEAR]


def _check_known(keys: Sequence[str], overrides: Sequence[str]) -> None:
    """ConfigError for a key that is none of `keys`, with those near it or in its group."""
    above = {parent for key in keys for parent in _parents(key)}
    for override in overrides:
        key = override.partition("=")[0].lstrip("+")
        if key in keys or key in above or not re.fullmatch(r"[\w.]+", key):
            continue  # not a plain key: left to Hydra
        near = _alternatives(key, keys, above)
        raise ConfigError(f"unknown key {key}; {near}; --help lists every key")


def _parents(key: str) -> list[str]:
    """The groups that `key` is in, outermost first."""
    parts = key.split(".")
    return [".".join(parts[:i]) for i in range(1, len(parts))]


def _alternatives(key: str, keys: Sequence[str], above: Collection[str]) -> str:
    """The keys near `key`, else those of its group, else the first top-level keys and the groups in
    `above`."""
    if similar := find_near(key, keys):
        return f"near it: {', '.join(similar)}"
    group = key.rpartition(".")[0]
    if siblings := [name for name in keys if name.startswith(f"{group}.")]:
        return f"there are: {', '.join(siblings)}"
    top = [name for name in keys if "." not in name]
    groups = [f"{name}.*" for name in sorted(above)]
    return f"there are: {', '.join([*top[:TOP_KEYS], *groups])}"


def _split(overrides: Sequence[str], textual: Collection[str]) -> tuple[dict[str, str], list[str]]:
    """The texts by their keys, and the overrides of all other keys."""
    texts: dict[str, str] = {}
    hydra_overrides: list[str] = []
    for override in overrides:
        key, _, value = override.partition("=")
        if (name := key.removeprefix("++")) in textual:
            if not _is_utf8(value):
                raise ConfigError(f"{name}={value!a} is not in UTF-8")
            texts[name] = value
        else:
            hydra_overrides.append(override)
    return texts, hydra_overrides


def _is_utf8(text: str) -> bool:
    """Whether `text` can be encoded; an argument of other bytes than UTF-8 has surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _place(values: Any, key: str, text: str) -> None:
    *above, last = key.split(".")
    for name in above:
        values = values[name]
    values[last] = text


def _reason(error: HydraException | OmegaConfBaseException) -> str:
    """Hydra's message in one line, with the options that exist where a group lacks the given
    one."""
    lines = [line.strip() for line in str(error).splitlines()]
    if isinstance(error, OverrideParseException):
        return f"{error.override} cannot be read; expected after the =: {VALUES}"
    if lines[0].startswith("Ambiguous value"):
        return f"{lines[0]}; expected after the =: {VALUES}"
    first = _find_line(lines, "Available options")
    stop = _find_line(lines, "Config search path")
    return " ".join([f"{lines[0][:MAX_REASON].rstrip('.')}.", *lines[first:stop]])


def _find_line(lines: list[str], start: str) -> int:
    """The index of the first line that begins with `start`; the number of lines if there is
    none."""
    return next((i for i, line in enumerate(lines) if line.startswith(start)), len(lines))


def list_groups(module: str) -> set[str]:
    """The keys of `module` that select a file of a folder, such as preset=toy."""
    folders = [entry.name for entry in resources.files(module).iterdir() if entry.is_dir()]
    return set(folders) - {"__pycache__"}


def _keys(kind: type[BaseModel], prefix: str = "") -> dict[str, Any]:
    """Every key, nested ones by their dotted names, with its type."""
    keys: dict[str, Any] = {}
    for name, field in kind.model_fields.items():
        inner: Any = field.annotation
        nested = isinstance(inner, type) and issubclass(inner, BaseModel)
        keys |= _keys(inner, f"{prefix}{name}.") if nested else {prefix + name: inner}
    return keys
