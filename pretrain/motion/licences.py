"""What a clip's licence means for a library that learns from it."""

from __future__ import annotations

import re

# CC BY-NC and its kind, and licences that say it in words. CMU's terms allow products.
NON_COMMERCIAL = re.compile(
    r"(?<![a-z])nc(?![a-z])|non[- ]?commercial|research|evaluation only", re.IGNORECASE
)


def is_non_commercial(licence: str) -> bool:
    """Whether a licence, an SPDX expression or words, keeps a library trained on the clip out of
    products.
    """
    return bool(NON_COMMERCIAL.search(licence))
