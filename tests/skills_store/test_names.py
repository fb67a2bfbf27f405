"""Valid names: no paths, no look-alikes, and no two that are one file on some disk."""

from __future__ import annotations

import contextlib
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skills_store import reference
from skills_store.errors import InvalidName, InvalidReference, StoreError
from skills_store.store import Store
from tests import tiny

LOOK_ALIKES = {
    "cyrillic": "hum\N{CYRILLIC SMALL LETTER A}noid",
    "full width": "\N{FULLWIDTH LATIN SMALL LETTER H}umanoid",
    "composed": "humano\N{LATIN SMALL LETTER I WITH DIAERESIS}d",
    "decomposed": "humanoi\N{COMBINING DIAERESIS}d",
    "dotless": "human\N{LATIN SMALL LETTER DOTLESS I}d",
    "zero width": "human\N{ZERO WIDTH SPACE}oid",
    "right to left": "\N{RIGHT-TO-LEFT OVERRIDE}dionamuh",
    "kelvin": "\N{KELVIN SIGN}night",  # lower() makes a plain k of it
    "digit": "walk\N{ARABIC-INDIC DIGIT TWO}",
    "soft hyphen": "human\N{SOFT HYPHEN}oid",
}
PATHS = [
    "..", ".", "../x", "a/b", "a\\b", "/etc", "~", "~root", "a\0b", "%2e%2e", "c:", "file:x",
    "x/../y", "...",
]  # fmt: skip
OTHERS = [
    "",
    " ",
    "a b",
    "-a",
    "a-",
    "_a",
    "a.",
    ".a",
    "Humanoid",
    "HUMANOID",
    "a@b",
    "a\n",
    "\na",
    "a" * 65,
    "a" * 10_000,
]
BAD = [*LOOK_ALIKES.values(), *PATHS, *OTHERS]


@pytest.mark.parametrize("name", BAD, ids=ascii)
def test_invalid_skill_or_alias_name_is_refused_everywhere(tmp_path: Path, name: str) -> None:
    store = Store(tmp_path / "store")
    tiny.publish_tiny(store)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InvalidName, match="cannot name a skill"):
        store.publish(tiny.skills_manifest().model_copy(update={"name": name}), tiny.skills_files())
    with pytest.raises(InvalidName, match="cannot name an alias"):
        store.alias("humanoid", name, 1)
    for refused in (
        lambda: store.rollback(name, "prod"),
        lambda: store.log(name),
        lambda: store.latest(name),
    ):
        with pytest.raises(InvalidName):
            refused()
    with pytest.raises(StoreError):
        store.rollback("humanoid", name)
    with pytest.raises(InvalidReference):
        store.resolve(f"{name}@1")
    with pytest.raises(StoreError):
        store.release(name)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "file", [*LOOK_ALIKES.values(), *PATHS, "", " ", ".hidden", "a b", "a\n", "a" * 129], ids=ascii
)
def test_invalid_file_name_is_refused(tmp_path: Path, file: str) -> None:
    store = Store(tmp_path / "store")
    with pytest.raises(InvalidName, match="cannot name a file"):
        store.publish(tiny.skills_manifest(), tiny.skills_files() | {file: b""})
    assert not store.root.exists()


def test_file_names_that_differ_only_in_case_are_refused(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    with pytest.raises(
        InvalidName,
        match=r"'Notes\.md' cannot name a file: on some disks it is the same file as 'notes\.md'",
    ):
        store.publish(
            tiny.skills_manifest(), tiny.skills_files() | {"notes.md": b"1", "Notes.md": b"2"}
        )
    assert not store.root.exists()


@given(st.text(max_size=70))
def test_valid_names_are_invariant_to_case_and_unicode_folding(text: str) -> None:
    """So a disk that folds case or Unicode keeps any two valid names apart."""
    if reference.is_name(text):
        assert text.isascii()
        assert text == text.lower() == text.casefold() == unicodedata.normalize("NFKC", text)
        assert "/" not in text
        assert not text.startswith(".")


@given(st.text(max_size=100))
def test_any_text_is_a_valid_reference_or_refused(text: str) -> None:
    with contextlib.suppress(InvalidReference):
        assert reference.is_name(reference.parse(text).name)
