"""The help of a program: its groups and keys, from the models of its configuration."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from pydantic import BaseModel

from pretrain.overrides import list_groups, load_config


def describe_config(
    kind: type[BaseModel], module: str, usage: str | None, arguments: Sequence[str]
) -> str:
    """The help of a program: usage, the choices of each group, and every key with its meaning and
    its value under the overrides of `arguments`, as in `preset=NAME --help`."""
    overrides = [argument for argument in arguments if "=" in argument]
    cfg = load_config(kind, module, overrides)
    groups = [_describe_group(module, group) for group in sorted(list_groups(module))]
    keys = [_describe_key(key, *entry) for key, entry in _fields(cfg).items()]
    choices = ["groups:", *groups, ""] if groups else []
    sweep = "With -m, several values of a key (KEY=1,2,3) are run one after the other."
    return "\n".join([(usage or "").strip(), "", sweep, "", *choices, "keys:", *keys])


def _describe_group(module: str, group: str) -> str:
    files = [entry.name for entry in resources.files(module).joinpath(group).iterdir()]
    choices = sorted(name.removesuffix(".yaml") for name in files if name.endswith(".yaml"))
    return f"  {group}=NAME  one of: {', '.join(choices)}"


def _fields(cfg: BaseModel, prefix: str = "") -> dict[str, tuple[object, str]]:
    """Every key by its dotted name, with value and description."""
    fields: dict[str, tuple[object, str]] = {}
    for name, field in type(cfg).model_fields.items():
        value = getattr(cfg, name)
        if isinstance(value, BaseModel):
            fields |= _fields(value, f"{prefix}{name}.")
        else:
            fields[prefix + name] = (value, field.description or "")
    return fields


def _describe_key(key: str, value: object, description: str) -> str:
    shown = "null" if value is None else list(value) if isinstance(value, tuple) else value
    return f"  {f'{key}={shown}':<44} {description}"
