"""README's list of the files that a clip's data passes through."""

from __future__ import annotations

from benchmarks.dataflow import find_named_files


def test_every_file_that_readme_names_exists():
    named = find_named_files()
    assert named[0].name == "dataset.py"
    assert {"ppo.py", "skill_card.py", "act.py", "onnx_session.py"} <= {file.name for file in named}
