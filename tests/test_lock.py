"""requirements.lock: exact versions within the ranges of pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
NOT_LOCKED = {"gpu", "ray"}  # other builds of the same packages, in environments of their own
RUNTIME = ("serve", "client", "cpu", "gpu", "store", "sign", "remote", "otel", "ray", "rl")


def read_lock() -> dict[str, str]:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pins = [Requirement(line) for line in lines if not line.startswith("#")]
    return {canonicalize_name(pin.name): str(pin.specifier) for pin in pins}


@pytest.mark.parametrize("extra", ["dependencies", *sorted(EXTRAS.keys() - NOT_LOCKED)])
def test_each_requirement_is_locked_to_one_version_in_its_range(extra):
    lock = read_lock()
    for text in EXTRAS.get(extra, PROJECT["dependencies"]):
        requirement = Requirement(text)
        locked = lock[canonicalize_name(requirement.name)]
        assert locked.startswith("=="), text
        assert requirement.specifier.contains(locked.removeprefix("==")), text


@pytest.mark.parametrize("extra", ["dependencies", *RUNTIME])
def test_dependencies_have_lower_and_upper_bounds(extra):
    for text in EXTRAS.get(extra, PROJECT["dependencies"]):
        assert re.fullmatch(r"[\w\[\],-]+>=[\d.]+,<[\d.]+", text), text


def test_torch_is_exact_everywhere():
    requirements = [Requirement(text) for extra in EXTRAS.values() for text in extra]
    named = {str(each) for each in requirements if each.name == "torch"}
    assert named == {f"torch{read_lock()['torch']}"} == {"torch==2.13.0"}
    assert '"torch==2.13.0"' in (ROOT / "Makefile").read_text()
