"""The root of every error of the store, and the codes of all of them."""

from __future__ import annotations


class StoreError(Exception):
    """Any refusal of the store. `code` is for programs, `str()` is one line for people."""

    code = "store_error"


def error_codes() -> dict[str, type[StoreError]]:
    """Every error class of the store, by code. Classes of other packages do not count."""
    classes = [
        cls for cls in _list_subclasses(StoreError) if cls.__module__.startswith("skills_store.")
    ]
    return {cls.code: cls for cls in sorted(classes, key=lambda cls: cls.code)}


def _list_subclasses(cls: type[StoreError]) -> list[type[StoreError]]:
    """`cls` and everything below it."""
    classes = [cls]
    for child in cls.__subclasses__():
        classes += _list_subclasses(child)
    return classes
