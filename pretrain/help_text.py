"""The help of a program: its groups and keys, from the models of its configuration."""

from __future__ import annotations

from importlib import resources
from typing import Any

from pydantic import BaseModel

from pretrain.overrides import list_groups


def describe_config(kind: type[BaseModel], module: str, usage: str | None) -> str:
    """The help of a program: how it is called, the choices of each group, and every key with
    default and meaning."""
    groups = [_describe_group(module, group) for group in sorted(list_groups(module))]
    keys = [_describe_key(key, *found) for key, found in _fields(kind).items()]
    sweep = "With -m, several values of a key (seed=1,2,3) are run one after the other."
    return "\n".join([(usage or "").strip(), "", sweep, "", "groups:", *groups, "", "keys:", *keys])


def _describe_group(module: str, group: str) -> str:
    files = [entry.name for entry in resources.files(module).joinpath(group).iterdir()]
    choices = sorted(name.removesuffix(".yaml") for name in files if name.endswith(".yaml"))
    return f"  {group}=NAME  one of: {', '.join(choices)}"


def _fields(kind: type[BaseModel], prefix: str = "") -> dict[str, tuple[object, str]]:
    """Every key by its dotted name, with default and description."""
    found: dict[str, tuple[object, str]] = {}
    for name, field in kind.model_fields.items():
        inner: Any = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            found |= _fields(inner, f"{prefix}{name}.")
        else:
            default = field.get_default(call_default_factory=True, validated_data={})
            found[prefix + name] = (default, field.description or "")
    return found


def _describe_key(key: str, default: object, description: str) -> str:
    shown = "null" if default is None else list(default) if isinstance(default, tuple) else default
    return f"  {f'{key}={shown}':<44} {description}"
