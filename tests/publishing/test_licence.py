"""The licence of a library follows from those of its clips and of the library it began from."""

from __future__ import annotations

import pytest

from pretrain.publishing.export import join_licences


@pytest.mark.parametrize(
    ("clips", "parent", "joined"),
    [
        (["CC0-1.0", "Zlib", "CC0-1.0"], "", "CC0-1.0 AND Zlib"),
        (["MIT OR Apache-2.0", "Zlib"], "", "(MIT OR Apache-2.0) AND Zlib"),
        (["CC0-1.0"], "CC-BY-NC-4.0", "CC0-1.0 AND CC-BY-NC-4.0"),
        (["CC0-1.0", "Zlib"], "CC0-1.0 AND Zlib", "CC0-1.0 AND Zlib"),
    ],
)
def test_join_licences_keeps_every_term(clips, parent, joined):
    assert join_licences(clips, parent) == joined
