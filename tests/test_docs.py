"""The documentation's API page names modules that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
API = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("module", re.findall(r"^::: (\S+)$", API, re.MULTILINE))
def test_each_module_of_the_api_page_has_a_file(module: str) -> None:
    path = ROOT.joinpath(*module.split("."))
    assert path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def test_the_api_page_names_modules() -> None:
    assert API.count(":::") == len(re.findall(r"^::: \S+$", API, re.MULTILINE)) > 0
