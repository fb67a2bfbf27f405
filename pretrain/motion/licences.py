"""Effects of clips' licences on a library trained on them."""

from __future__ import annotations

import re
from collections.abc import Iterable

# CC BY-NC and its kind, and licences in words. CMU's terms allow products.
NON_COMMERCIAL = re.compile(
    r"(?<![a-z])nc(?![a-z])|non[- ]?commercial|research|evaluation only", re.IGNORECASE
)

EITHER = re.compile(r"\bor\b", re.IGNORECASE)  # binds less than AND
PARENTHESIZED = re.compile(r"\([^()]*\)")
AND = re.compile(r"\s+AND\s+(?![^()]*\))")  # outside parentheses


def join_licences(licences: Iterable[str]) -> str:
    """The expression of all `licences` together, each of their terms once."""
    different = tuple(dict.fromkeys(licences))
    if len(different) == 1:
        return different[0]
    terms = dict.fromkeys(term for licence in different for term in split_terms(licence))
    return " AND ".join(terms)


def split_terms(licence: str) -> list[str]:
    """The terms that `licence` joins by AND; all of it in parentheses where it is a choice."""
    is_choice = EITHER.search(PARENTHESIZED.sub("", licence))
    return [f"({licence})"] if is_choice else AND.split(licence)


def is_non_commercial(licence: str) -> bool:
    """Whether a licence, an SPDX expression or words, keeps a library trained on the clip out of
    products.
    """
    return bool(NON_COMMERCIAL.search(licence))
