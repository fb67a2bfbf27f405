"""Every command is a module of the folder and an entry of the registry."""

from __future__ import annotations

import argparse
import inspect
from pathlib import Path

import pytest

from skills_store import commands
from skills_store.__main__ import make_parser
from skills_store.commands.registry import COMMANDS, load_command

SHARED = {"__init__", "arguments", "duration", "meter", "output", "registry"}


def test_every_file_is_a_command_of_the_registry() -> None:
    files = {path.stem for path in Path(commands.__path__[0]).glob("*.py")}
    assert files - SHARED == {module for module, _ in COMMANDS.values()}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_adds_its_arguments_and_runs(name: str) -> None:
    command = load_command(name)
    command.add_arguments(argparse.ArgumentParser())
    assert list(inspect.signature(command.run).parameters) == ["store", "args"]


def test_help_lists_every_command() -> None:
    text = make_parser().format_help()
    for name, (_, meaning) in COMMANDS.items():
        assert f"    {name}" in text
        assert meaning.split()[0] in text
