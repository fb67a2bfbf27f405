"""The command line of pretraining and control: Hydra's `key=value` grammar into one frozen pydantic
model."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from importlib import resources
from io import TextIOWrapper
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, TypeVar

from hydra import compose, initialize_config_module
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException, OverrideParseException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from skills_store.errors import StoreError

Config = TypeVar("Config", bound=BaseModel)

TEXT = (str, Path)  # types of keys whose value is text

TOP_KEYS = 6  # keys outside of groups that are shown where none is near
MOST_NEAR = 4  # keys shown for an unknown one

# values of keys that are not text
VALUES = "a number, true, false, null, a word, or a list as [256,256]"

MAX_REASON = 200  # letters of Hydra's message
HELP = ("-h", "--help")
MULTIRUN = ("-m", "--multirun")


class ConfigError(ValueError):
    """An invalid configuration; the message lists what exists."""


def load_config(kind: type[Config], module: str, overrides: Sequence[str]) -> Config:
    """Hydra groups of `module` plus `overrides` ("task=reach ppo.lr=3e-4"), once, into a frozen
    model.

    A key whose type is text takes everything after its first "=" as it stands: a path may have any
    letter. Other values are in Hydra's grammar. Raises ConfigError, with a message of one line.
    """
    keys = _keys(kind)
    groups = _groups(module)
    if invalid := [override for override in overrides if "=" not in override]:
        raise ConfigError(f"{' '.join(invalid)} is not key=value")
    _check_known(kind, [*keys, *(groups - keys.keys())], overrides)
    textual = {key for key, type_ in keys.items() if type_ in TEXT} - groups
    texts, others = _split(overrides, textual)
    # Hydra overrides only keys it knows: the model's own defaults come first, under the model's
    # name. Text keys are left out, because Hydra would interpret a ${...} in them.
    defaults = kind().model_dump(mode="json", exclude=textual)
    ConfigStore.instance().store(name=kind.__name__, node=defaults)
    try:
        with initialize_config_module(config_module=module, version_base="1.3"):
            composed = compose(config_name="config", overrides=others)
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
    """The key, what was expected, and the value."""
    key = ".".join(map(str, error["loc"]))
    return f"{key}: {error['msg'].removeprefix('Value error, ')}, got {error['input']!r}"


def command(
    run: Callable[[Config], int], kind: type[Config], module: str, arguments: Sequence[str]
) -> int:
    """The exit status of `run` with the configuration of `arguments`; an error is one line on
    stderr.

    With `-m` or `--multirun`, as in Hydra, keys with several values (`seed=1,2,3`) give one run
    after the other. The first status that is not 0 ends the sweep.
    """
    try:
        sweep = [argument for argument in arguments if argument not in MULTIRUN]
        for overrides in expand_sweep(sweep) if len(sweep) < len(arguments) else [sweep]:
            status = run(load_config(kind, module, overrides))
            if status:
                return status
        return 0
    except (StoreError, KeyError, ValueError, RuntimeError, OSError) as error:
        message = error.args[0] if isinstance(error, KeyError) else error
        print(f"{type(error).__name__}: {message}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:  # training itself saves and stops; at other times nothing is lost
        text = "stopped; the same command goes on from the last checkpoint, if there is one"
        print(text, file=sys.stderr)
        return 130


def program(main: Callable[[list[str]], int], help_text: Callable[[], str]) -> int:
    """The exit status of `main` with the arguments of this process, or `help_text` for --help.

    Letters that the terminal cannot show, as in the name of a folder, are escaped.
    """
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if not any(argument in HELP for argument in sys.argv[1:]):
        return main(sys.argv[1:])
    with suppress(BrokenPipeError):  # `... --help | head`
        print(help_text(), flush=True)
    return 0


def expand_sweep(overrides: Sequence[str]) -> list[list[str]]:
    """One list of overrides for each combination of the swept values, in Hydra's grammar.

    An override that this grammar cannot read is kept as it is: it is text, or an error that
    `load_config` describes.
    """
    choices = [_expand(override) for override in overrides]
    return [list(chosen) for chosen in itertools.product(*choices)]


def _expand(override: str) -> list[str]:
    try:
        parsed = OverridesParser.create().parse_override(override)
    except HydraException:
        return [override]
    if not parsed.is_sweep_override():
        return [override]
    return [f"{parsed.get_key_element()}={value}" for value in parsed.sweep_string_iterator()]


def describe_config(kind: type[BaseModel], module: str, usage: str | None) -> str:
    """The help of a program: how it is called, the choices of each group, and every key with
    default and meaning."""
    groups = [_describe_group(module, group) for group in sorted(_groups(module))]
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


def parse_options(arguments: Sequence[str], defaults: dict[str, str]) -> dict[str, str]:
    """`key=value` arguments over `defaults`, for commands too small for a configuration."""
    options = dict(defaults)
    for argument in arguments:
        key, _, value = argument.partition("=")
        if key not in defaults:
            existing = ", ".join(find_near(key, defaults) or defaults)
            raise ConfigError(f"unknown key {key}; there are: {existing}")
        options[key] = value
    return options


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
        found = f"{key}={shortened(text)[1:-1]}"
        raise ConfigError(f"{found} is not a whole number of at least {least} and below 2^63")
    return int(text)


def parse_flag(options: dict[str, str], key: str) -> bool:
    """`options[key]` as true or false."""
    if options[key] not in ("true", "false"):
        raise ConfigError(f"{key}={options[key]} is neither true nor false")
    return options[key] == "true"


def find_near(key: str, known: Iterable[str]) -> list[str]:
    """Those of `known` that are like `key`, as a whole or after the last dot."""
    names = list(known)
    last = {name: name.rpartition(".")[2] for name in names}
    close = get_close_matches(key.rpartition(".")[2], last.values(), MOST_NEAR, cutoff=0.75)
    found = get_close_matches(key, names, MOST_NEAR) + [n for n in names if last[n] in close]
    return list(dict.fromkeys(found))[:MOST_NEAR]


def _check_known(kind: type[BaseModel], known: Sequence[str], overrides: Sequence[str]) -> None:
    """ConfigError for a key that is none of `known`, with those near it or in its group."""
    above = {parent for key in known for parent in _parents(key)}
    for override in overrides:
        key = override.partition("=")[0].lstrip("+")
        if key in known or key in above or not re.fullmatch(r"[\w.]+", key):
            continue  # not a plain key: left to Hydra
        where = f"{kind.__module__.replace('.', '/')}.py"
        raise ConfigError(
            f"unknown key {key}; {_alternatives(key, known, above)}; every key is in {where}"
        )


def _parents(key: str) -> list[str]:
    """The groups that `key` is in, outermost first."""
    parts = key.split(".")
    return [".".join(parts[:i]) for i in range(1, len(parts))]


def _alternatives(key: str, known: Sequence[str], above: Collection[str]) -> str:
    """The keys near `key`, otherwise those of its group, otherwise the first at the top and the
    groups, which are `above`."""
    if similar := find_near(key, known):
        return f"near it: {', '.join(similar)}"
    group = key.rpartition(".")[0]
    if siblings := [name for name in known if name.startswith(f"{group}.")]:
        return f"there are: {', '.join(siblings)}"
    top = [name for name in known if "." not in name]
    groups = [f"{name}.*" for name in sorted(above)]
    return f"there are: {', '.join([*top[:TOP_KEYS], *groups])}, and others that --help lists"


def _split(overrides: Sequence[str], textual: Collection[str]) -> tuple[dict[str, str], list[str]]:
    """The texts by their keys, and the overrides of all other keys."""
    texts: dict[str, str] = {}
    others: list[str] = []
    for override in overrides:
        key, _, value = override.partition("=")
        if (name := key.removeprefix("++")) in textual:
            if not _is_utf8(value):
                raise ConfigError(f"{name}={value!a} is not in UTF-8")
            texts[name] = value
        else:
            others.append(override)
    return texts, others


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


def _groups(module: str) -> set[str]:
    """The keys of `module` that choose a file of a folder there, such as preset=toy."""
    folders = [entry.name for entry in resources.files(module).iterdir() if entry.is_dir()]
    return set(folders) - {"__pycache__"}


def _keys(kind: type[BaseModel], prefix: str = "") -> dict[str, Any]:
    """Every key, nested ones by their dotted names, with its type."""
    found: dict[str, Any] = {}
    for name, field in kind.model_fields.items():
        inner: Any = field.annotation
        nested = isinstance(inner, type) and issubclass(inner, BaseModel)
        found |= _keys(inner, f"{prefix}{name}.") if nested else {prefix + name: inner}
    return found
