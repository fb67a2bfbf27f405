"""Command line of pretraining and control: starts runs from arguments; prints errors in one line
and returns an exit status."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from io import TextIOWrapper

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from pretrain.overrides import Config, ConfigError, load_config
from skills_store.errors import StoreError

HELP = ("-h", "--help")
MULTIRUN = ("-m", "--multirun")


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
        runs = expand_sweep(sweep) if len(sweep) < len(arguments) else [sweep]
        # all before the first run: an error in the last would be found after hours
        for config in [load_config(kind, module, overrides) for overrides in runs]:
            status = run(config)
            if status:
                return status
        return 0
    except (StoreError, KeyError, ValueError, RuntimeError, OSError, MemoryError) as error:
        message = error.args[0] if isinstance(error, KeyError) else error
        print(f"{type(error).__name__}: {message}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:  # training handles it itself; elsewhere nothing is lost
        text = "stopped; the same command goes on from the last checkpoint, if there is one"
        print(text, file=sys.stderr)
        return 130


def program(main: Callable[[list[str]], int], help_text: Callable[[], str]) -> int:
    """The exit status of `main` with the arguments of this process, or `help_text` for --help.

    Characters that the terminal cannot show, as in a folder's name, are escaped."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if not any(argument in HELP for argument in sys.argv[1:]):
        try:
            return main(sys.argv[1:])
        except KeyboardInterrupt:  # of a program that does not handle it itself
            print("stopped", file=sys.stderr)
            return 130
    try:
        text = help_text()
    except ConfigError as error:  # of an override beside --help
        print(f"ConfigError: {error}", file=sys.stderr)
        return 2
    with suppress(BrokenPipeError):  # `... --help | head`
        print(text, flush=True)
    return 0


def expand_sweep(overrides: Sequence[str]) -> list[list[str]]:
    """One list of overrides for each combination of the swept values, in Hydra's grammar.

    An override that this grammar cannot parse is kept: it is text, or an error that `load_config`
    describes."""
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
