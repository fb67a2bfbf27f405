"""`key=value` options of the small programs without a configuration."""

from __future__ import annotations

import re
from collections.abc import Sequence
from reprlib import repr as shortened

from pretrain.overrides import ConfigError, find_near


def parse_options(arguments: Sequence[str], defaults: dict[str, str]) -> dict[str, str]:
    """`key=value` arguments over `defaults`. ConfigError for an unknown key."""
    options = dict(defaults)
    for argument in arguments:
        key, _, value = argument.partition("=")
        if key not in defaults:
            existing = ", ".join(find_near(key, defaults) or defaults)
            raise ConfigError(f"unknown key {key}; there are: {existing}")
        options[key] = value
    return options


def name_reference(arguments: Sequence[str], key: str) -> list[str]:
    """`arguments` with the one that is not key=value, a reference as humanoid@4, as that of `key`.
    ConfigError for two references."""
    references = [argument for argument in arguments if "=" not in argument]
    if len(references) > 1:
        raise ConfigError(f"{' '.join(references)}: expected one reference")
    return [argument if "=" in argument else f"{key}={argument}" for argument in arguments]


def split_arguments(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The `arguments` that are not key=value, and those that are. A path may have a "=" after its
    first "/"."""
    pairs = [argument for argument in arguments if re.match(r"\w+=", argument)]
    return [argument for argument in arguments if argument not in pairs], pairs


def parse_int(options: dict[str, str], key: str, least: int) -> int:
    """`options[key]` as a whole number, `least` or more, and below 2^63."""
    text = options[key]
    # the length is checked first: the error of int() for more than 4300 digits names no key
    if not text.isdecimal() or len(text) > len(str(2**63)) or not least <= int(text) < 2**63:
        setting = f"{key}={shortened(text)[1:-1]}"
        raise ConfigError(f"{setting} is not a whole number of at least {least} and below 2^63")
    return int(text)


def parse_flag(options: dict[str, str], key: str) -> bool:
    """`options[key]` as true or false."""
    if options[key] not in ("true", "false"):
        raise ConfigError(f"{key}={options[key]} is neither true nor false")
    return options[key] == "true"
