"""Effects of clips' licences on a library trained on them."""

from __future__ import annotations

import re
from collections.abc import Iterable

# CC BY-NC and its kind, and licences in words. CMU's terms allow products.
NON_COMMERCIAL = re.compile(
    r"(?<![a-z])nc(?![a-z])|non[- ]?commercial|research|evaluation only", re.IGNORECASE
)

EITHER = re.compile(r"\bor\b", re.IGNORECASE)  # binds less than AND


def join_licences(licences: Iterable[str]) -> str:
    """The expression of all `licences` together, each once."""
    different = tuple(dict.fromkeys(licences))
    if len(different) == 1:
        return different[0]
    return " AND ".join(f"({part})" if EITHER.search(part) else part for part in different)


def is_non_commercial(licence: str) -> bool:
    """Whether a licence, an SPDX expression or words, keeps a library trained on the clip out of
    products.
    """
    return bool(NON_COMMERCIAL.search(licence))
