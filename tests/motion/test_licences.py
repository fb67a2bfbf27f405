"""The licence of a library follows from those of its clips and of the library it began from."""

from __future__ import annotations

import pytest

from pretrain.motion.licences import join_licences


@pytest.mark.parametrize(
    ("licences", "joined"),
    [
        (["MIT OR Apache-2.0"], "MIT OR Apache-2.0"),
        (["CC0-1.0", "Zlib", "CC0-1.0"], "CC0-1.0 AND Zlib"),
        (["MIT OR Apache-2.0", "Zlib"], "(MIT OR Apache-2.0) AND Zlib"),
        (["MIT or Apache-2.0", "Zlib"], "(MIT or Apache-2.0) AND Zlib"),
        (["CC0-1.0", "CC0-1.0 AND MIT"], "CC0-1.0 AND MIT"),
        (["Zlib", "(MIT OR X11) AND Zlib"], "Zlib AND (MIT OR X11)"),
        (["Zlib", "(MIT OR X11) OR Apache-2.0"], "Zlib AND ((MIT OR X11) OR Apache-2.0)"),
    ],
)
def test_join_licences_keeps_every_term_once(licences, joined):
    assert join_licences(licences) == joined
