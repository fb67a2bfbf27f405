"""The program: arguments, tables, and the files that it writes."""

from __future__ import annotations

import json
import re
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
import torch
from PIL import Image

from pretrain.evaluate import main
from pretrain.evaluation.film_strip import BAR, HEIGHT, PER_ROW, TITLE, WIDTH
from skills_store.store import BUNDLED


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("nosuch", "humanoid"),
        ("skil=x", "there are: skill"),
        ("episodes=many", "episodes=many"),
        ("episodes=1", "at least 2"),
        (f"episodes={'9' * 5000}", "at least 2 and below 2^63"),
        ("seed=-1", "at least 0"),
        ("motions=nosuch", "no dataset recipe 'nosuch'; there are: all,"),
        ("json=yes", "json=yes is neither true nor false"),
        ("quick=yes", "quick=yes is neither true nor false"),
        ("quick=true", "out= has no effect with quick=true"),
    ],
)
def test_invalid_argument_error_names_the_expected_value(argument, message, capsys):
    assert main([argument, f"store={BUNDLED}", "out="]) == 2
    assert message in capsys.readouterr().err


def test_unreadable_or_unwritable_paths_fail_before_measuring(capsys, monkeypatch):
    monkeypatch.setattr("pretrain.evaluate.measure", lambda *_: pytest.fail("it was measured"))
    assert main(["humanoid@1", "nosuch@1", f"store={BUNDLED}"]) == 2
    assert "nosuch" in capsys.readouterr().err
    assert main(["humanoid@1", f"store={BUNDLED}", "out=pyproject.toml"]) == 2
    assert "pyproject.toml" in capsys.readouterr().err


@pytest.fixture(scope="module")
def two_clips(tmp_path_factory) -> str:
    """A recipe of a clip that humanoid@1 was trained on and of one that it was not."""
    recipe = tmp_path_factory.mktemp("recipe") / "two.yaml"
    walk = '{file: "pybullet:humanoid3d_walk.txt"}'
    edits = "[hold: {at: 1.8, seconds: 6}, sway: {size: 0.012}]"
    stand = f'{{name: stand, file: "everyday:cmu_02_10.npz", edits: {edits}}}'
    recipe.write_text(f"name: two\nmirror: false\nmotions:\n  - {walk}\n  - {stand}\n")
    return str(recipe)


@dataclass(frozen=True)
class Output:
    """What a command has written to `folder` and printed."""

    folder: Path
    out: str
    err: str

    def page(self, ref: str) -> Path:
        """The page of an evaluation with recipe `two` and two episodes, as its folder is named."""
        return self.folder / "cards" / f"{ref}-motions-two-episodes-2" / "CARD.md"

    @property
    def refs(self) -> list[str]:
        """The libraries of the table."""
        return self.out.splitlines()[0].split()


@pytest.fixture(scope="module")
def side_by_side(tmp_path_factory, two_clips) -> Output:
    """Two libraries, measured in little time by a command in an empty folder."""
    folder = tmp_path_factory.mktemp("side_by_side") / "Zoë=3, [日本]"
    folder.mkdir()
    out = StringIO()
    err = StringIO()
    arguments = [f"store={Path(BUNDLED).resolve()}", f"motions={two_clips}", "episodes=2"]
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setenv("PYTHONPATH", str(Path.cwd()))
        patch.setenv("REPERTOIRE_CARDS", f"{folder}/cards")
        patch.chdir(folder)
        patch.setattr("pretrain.evaluation.robustness.TRIAL_SECONDS", 1.0)
        assert main(["humanoid@1", "mobility@8", *arguments]) == 0, err.getvalue()
    return Output(folder, out.getvalue(), err.getvalue())


def test_two_libraries_give_two_table_columns_and_two_folders(side_by_side):
    refs = ["humanoid@1", "mobility@8"]
    files = [side_by_side.page(ref).parent / "card.json" for ref in refs]
    cards = [json.loads(file.read_text()) for file in files]
    assert side_by_side.refs == refs
    folders = {path.name for path in (side_by_side.folder / "cards").iterdir()}
    assert folders == {f"{ref}-motions-two-episodes-2" for ref in refs}
    (line,) = (x for x in side_by_side.out.splitlines() if x.startswith("coverage"))
    shown = [float(x) for x in line.split()[-2:]]
    assert shown == pytest.approx([card["coverage"] for card in cards], abs=0.006)
    assert cards[0]["coverage"] != cards[1]["coverage"]


def test_card_page_has_the_table_and_all_linked_pictures(side_by_side):
    for ref in side_by_side.refs:
        folder = side_by_side.page(ref).parent
        text = side_by_side.page(ref).read_text()
        assert text.startswith(f"# {ref}\n")
        assert "falls a minute, own z of upright clips" in text
        pictures = re.findall(r"\]\((.+?\.png)\)", text)
        assert {"clips.png", "switches.png", "latents.png"} <= set(pictures)
        for name in pictures:
            assert (folder / name).read_bytes().startswith(b"\x89PNG")
        assert f"wrote {side_by_side.page(ref)}" in side_by_side.err


def test_skills_picture_shows_each_clip_and_random_skills(side_by_side):
    if "no rendering here" in side_by_side.err:
        pytest.skip(side_by_side.err)
    for ref, clips in (("humanoid@1", 1), ("mobility@8", 2)):
        folder = side_by_side.page(ref).parent
        assert "![skills](skills.png)" in side_by_side.page(ref).read_text()
        with Image.open(folder / "skills.png") as picture:
            assert picture.size == (PER_ROW * WIDTH, (clips + 3) * (TITLE + HEIGHT + BAR))
            assert len(picture.convert("RGB").getcolors(1 << 20) or ()) > 50


@pytest.fixture
def measured(monkeypatch) -> None:
    """Replace the measurement by a fixed card."""
    card = {
        "time_on_clip": {"mean": 0.5, "least": 0.5, "per_clip": {"walk": 0.5}},
        "coverage_per_clip": {"walk": 0.5},
        "switch_success": {"mean": None, "matrix": {}},
        "caveats": [],
    }
    monkeypatch.setattr("pretrain.evaluate.measure", lambda *_: card)


@pytest.mark.usefixtures("measured")
def test_card_is_written_without_rendering_and_a_notice_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MUJOCO_GL", "disabled")
    assert main(["humanoid@1", f"store={BUNDLED}", f"out={tmp_path}/card"]) == 0
    (notice,) = capsys.readouterr().err.splitlines()
    page = tmp_path / "card" / "CARD.md"
    reason = "no picture of the skills: no rendering here (MUJOCO_GL=disabled: "
    assert notice.startswith(f"wrote {page}; {reason}")
    assert notice.endswith("; install libegl1, or libosmesa6 and set MUJOCO_GL=osmesa")
    assert json.loads((tmp_path / "card" / "card.json").read_text())["time_on_clip"]
    assert {path.name for path in page.parent.glob("*.png")} == {"clips.png", "latents.png"}
    assert "skills.png" not in page.read_text()


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize("argument", ["out=", "quick=true"])
def test_evaluate_without_output_writes_no_files(argument, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REPERTOIRE_CARDS", f"{tmp_path}/cards")
    assert main(["humanoid@1", f"store={BUNDLED}", argument]) == 0
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr().out.split()[0] == "humanoid@1"
