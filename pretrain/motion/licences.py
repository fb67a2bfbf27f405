"""Effects of clips' licences on a library trained on them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

# CC BY-NC and its kind, and licences in words. CMU's terms allow products.
NON_COMMERCIAL = re.compile(
    r"(?<![a-z])nc(?![a-z])|non[- ]?commercial|research|evaluation only", re.IGNORECASE
)

UNKNOWN = "unknown"  # of a recipe's clip whose licence is stated nowhere
MOST_NAMES = 5  # listed
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


def describe_unknown(licences: Mapping[str, str]) -> tuple[str, ...]:
    """One line on all clips whose licence is unknown, or none; `licences` by the clips' names."""
    names = [name for name, licence in licences.items() if UNKNOWN in split_terms(licence)]
    if not names:
        return ()
    left = len(names) - MOST_NAMES
    more = f" and {left} more" if left > 0 else ""
    return (f"licence unknown: state `licence:` of {', '.join(names[:MOST_NAMES])}{more}",)


def is_non_commercial(licence: str) -> bool:
    """Whether a licence, an SPDX expression or words, keeps a library trained on the clip out of
    products.
    """
    return bool(NON_COMMERCIAL.search(licence))
