"""The measures themselves, on motions whose answer is known."""

from __future__ import annotations

import json
import re
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from pretrain.ase.latents import LatentSchedule
from pretrain.ase.style import demonstrations
from pretrain.characters.character import Character
from pretrain.evaluate import clip_embeddings, evaluate, main
from pretrain.evaluation.coverage import Coverage, coverage_targets
from pretrain.evaluation.episodes import (
    Conditions,
    Episodes,
    begun_in,
    nearest_clip,
    random_skill_episodes,
    redrawn,
    world,
)
from pretrain.evaluation.table import NOTHING, table
from pretrain.evaluation.trials import recovery
from pretrain.sim.backend import make_backend
from pretrain.sim.env import CharacterEnv
from pretrain.sim.falls import NOBODY, Protection
from pretrain.training_data import Material, material_of
from skills_store.library import SkillLibrary
from skills_store.store import BUNDLED, Store

WINDOW = 3


def test_playing_the_clips_back_covers_them_and_standing_still_does_not(material, skeleton):
    targets, scale = coverage_targets(material.dataset.clips, material.library, WINDOW)
    assert [target.name for target in targets] == [c.name for c in material.dataset.clips if "mirror" not in c.name]
    played, still = Coverage(targets, scale), Coverage(targets, scale)
    windows = demonstrations(material.library, skeleton, WINDOW, rate=30.0).windows
    played.see(windows)
    still.see(windows[:1].expand(50, -1))
    assert min(played.per_clip().values()) == 1.0
    assert sum(still.per_clip().values()) / len(targets) < 0.3


def test_one_clip_played_covers_itself_more_than_another_kind_of_motion(material, skeleton):
    targets, scale = coverage_targets(material.dataset.clips, material.library, WINDOW)
    coverage = Coverage(targets, scale)
    demos = demonstrations(material.library, skeleton, WINDOW, rate=30.0)
    coverage.see(demos.windows[demos.clip == material.library.names.index("walk")])
    shares = coverage.per_clip()
    assert shares["walk"] == 1.0
    assert shares["run"] < 0.2


def test_seeing_nothing_covers_nothing(material):
    coverage = Coverage(*coverage_targets(material.dataset.clips, material.library, WINDOW))
    coverage.see(torch.empty(0, len(coverage.scale)))
    assert set(coverage.per_clip().values()) == {0.0}


def test_survival_is_told_by_the_clip_an_episode_began_in_mirrored_or_not(material):
    library = material.library
    walk, run = library.names.index("walk"), library.names.index("run")
    images = library.images
    assert images
    clip, survival = torch.tensor([walk, images[walk], walk, run]), torch.tensor([1.0, 0.4, 0.4, 0.25])
    begun = {name: float(shares.mean()) for name, shares in begun_in(clip, survival, library).items()}
    assert begun == pytest.approx({"walk": 0.6, "run": 0.25})
    assert "run" not in begun_in(clip[:3], survival[:3], library)


def test_a_library_is_measured_on_the_body_that_it_carries(material):
    manifest = Store(BUNDLED).resolve("humanoid@1").manifest
    heavier = manifest.character.mjcf.replace('density="2226"', 'density="3000"')
    assert heavier != manifest.character.mjcf
    other = manifest.model_copy(update={"character": manifest.character.model_copy(update={"mjcf": heavier})})
    assert material_of(other, WINDOW).character.mjcf == heavier
    assert material_of(manifest, WINDOW).character.skeleton == material.character.skeleton


def test_a_body_of_another_control_rate_is_refused_not_measured_at_ours():
    manifest = Store(BUNDLED).resolve("humanoid@1").manifest
    faster = manifest.model_copy(update={"character": manifest.character.model_copy(update={"control_dt": 1 / 60})})
    with pytest.raises(ValueError, match=r"'humanoid': control_dt is 0\.0166667 s, expected 0\.0333333"):
        material_of(faster, WINDOW)


def test_who_lies_stands_again_in_the_bundled_library_of_all_clips():
    skills = SkillLibrary.open(Store(BUNDLED), "humanoid-all")
    material = material_of(skills.version.manifest, skills.window_length)
    under, rng = Conditions(episodes=48, threads=1), torch.Generator().manual_seed(0)

    def make_env(n):
        return world(skills, material, n, under, rng)

    like = nearest_clip(skills, make_env(1))
    assert recovery(skills.act, make_env, skills.latent_dim, 48, rng, like)["fall"].mean() > 0.7
    coverage = Coverage(*coverage_targets(material.dataset.clips, material.library, WINDOW))
    episodes = random_skill_episodes(skills, make_env(48), redrawn(skills, under), coverage, rng)
    assert 48 < len(episodes.rose) <= episodes.falls.sum()  # they fall every few seconds, and not all of them lie
    assert episodes.rose.mean() > 0.9


def limp_episodes(clips: Material, humanoid: Character, protection: Protection) -> Episodes:
    """Of 64 worlds that begin upright and hang loose for two seconds."""
    env = CharacterEnv(
        make_backend("mujoco", humanoid, 64, 1),
        humanoid.skeleton,
        clips.library,
        window=WINDOW,
        episode_length=60,
        rng=torch.Generator().manual_seed(0),
        protection=protection,
    )
    upright = clips.library.names.index("walk")
    env.reset = lambda ids: env.begin(ids, torch.full_like(ids, upright), torch.zeros(len(ids)))  # pyright: ignore
    limp: Any = SimpleNamespace(
        act=lambda state, z: state[:, 13:41],
        encode=lambda states: np.zeros((len(states), 8), np.float32),
        embed=lambda states: SimpleNamespace(pooled=np.eye(8, dtype=np.float32)[len(states) % 8]),
        discriminator=None,
    )
    coverage = Coverage(*coverage_targets(clips.dataset.clips, clips.library, WINDOW))
    held = LatentSchedule(8, 100, 100, 0.0)
    return random_skill_episodes(limp, env, held, coverage, torch.Generator().manual_seed(0))


@pytest.mark.parametrize("protected", [False, True])
def test_who_goes_limp_falls_once_whether_it_has_time_to_get_up_or_not(every_clip, material, humanoid, protected):
    protection = Protection(90, share=1.0) if protected else NOBODY
    episodes = limp_episodes(every_clip if protected else material, humanoid, protection)
    assert (episodes.lengths == 60).all() == protected
    assert len(episodes.rose) == 0  # nobody has come up, and nobody's time to is over
    assert (episodes.falls <= 2).all()  # it may bounce
    assert (episodes.falls == 1).float().mean() > 0.8


def test_who_goes_limp_is_never_up_again(every_clip, humanoid):
    episodes = limp_episodes(every_clip, humanoid, Protection(20, share=1.0))
    assert 0.8 * 64 < len(episodes.rose) <= 64
    assert not episodes.rose.any()


def test_a_library_that_does_not_say_what_it_learned_from_is_not_measured():
    manifest = Store(BUNDLED).resolve("humanoid@1").manifest
    silent = manifest.model_copy(update={"lineage": manifest.lineage.model_copy(update={"config": {}})})
    with pytest.raises(ValueError, match="humanoid's lineage names no 'motions'"):
        material_of(silent, WINDOW)


def test_a_library_is_not_measured_on_other_clips_than_it_learned_from():
    manifest = Store(BUNDLED).resolve("humanoid@1").manifest
    first, *rest = manifest.lineage.clips
    edited = manifest.lineage.model_copy(update={"clips": (first.model_copy(update={"name": "jump"}), *rest)})
    with pytest.raises(ValueError, match=f"learned from other clips .*: jump, {first.name} changed"):
        material_of(manifest.model_copy(update={"lineage": edited}), WINDOW)


def test_what_can_be_learned_from_a_dataset_is_in_its_digest(material):
    dataset = material.dataset
    other = replace(dataset.clips[0], digest="sha256:" + "0" * 64)
    edited = replace(dataset, clips=(other, *dataset.clips[1:]))
    weighed = replace(dataset, weights=(2 * dataset.weights[0], *dataset.weights[1:]))
    assert len({dataset.digest, edited.digest, weighed.digest}) == 3
    assert replace(dataset).digest == dataset.digest


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("nosuch", "humanoid"),
        ("skil=x", "there are: skill"),
        ("episodes=many", "episodes=many"),
        ("episodes=1", "at least 2"),
        (f"episodes={'9' * 5000}", "at least 2 and below 2^63"),
        ("seed=-1", "at least 0"),
        ("motions=nosuch", "no dataset recipe 'nosuch'; there are: all,"),
        ("json=yes", "json=yes is neither true nor false"),
    ],
)
def test_a_wrong_argument_is_one_line_that_says_what_is_wanted(argument, said, capsys):
    assert main([argument, f"store={BUNDLED}", "out="]) == 2
    assert said in capsys.readouterr().err


def test_a_library_may_be_measured_by_other_clips_and_its_card_says_so():
    """Jerk is told against the clips' own, of which the smoothed run has less."""
    skills = SkillLibrary.open(Store(BUNDLED), "humanoid@1")
    own = skills.version.manifest.card
    card = evaluate(skills, Conditions(episodes=16, seconds=2.0, threads=1), "locomotion_smooth")
    assert card["caveats"][0] == "measured by the clips of 'locomotion_smooth', whatever it learned from"
    assert card["smoothness"] > 1.1 * own["smoothness"]
    assert card["cost"] == own["cost"]


def test_clips_that_a_library_never_saw_have_latents_too(every_clip):
    skills = SkillLibrary.open(Store(BUNDLED), "humanoid@1")
    assert "backflip" not in skills.version.manifest.latent.clips
    env = world(skills, every_clip, 1, Conditions(threads=1), torch.Generator().manual_seed(0))
    names = every_clip.library.names
    latents = clip_embeddings(skills, every_clip.dataset.clips)
    found = nearest_clip(skills, env)(torch.tensor(np.stack([latents[name] for name in names])))
    assert found is not None
    assert sum(names[i] == name for i, name in zip(found.tolist(), names, strict=True)) >= len(names) - 4


def test_two_libraries_of_other_clips_are_compared_by_all_of_them():
    few, many = (Store(BUNDLED).resolve(ref) for ref in ("humanoid@1", "humanoid-all@1"))
    one, other = table({few.ref: few.manifest.card, many.ref: many.manifest.card}), table({few.ref: few.manifest.card})
    (backflip,) = (line for line in one.splitlines() if line.startswith("  backflip") and line.count(" m") == 0)
    assert backflip.split()[1] == NOTHING
    assert float(backflip.split()[2]) == pytest.approx(many.manifest.card["coverage_per_clip"]["backflip"], abs=0.006)
    assert "backflip" not in other
    assert f"{NOTHING}: nothing to measure" in one.splitlines()


def test_what_cannot_be_read_or_written_is_said_before_the_others_are_measured(capsys, monkeypatch):
    monkeypatch.setattr("pretrain.evaluate.skill_card", lambda *_: pytest.fail("a library was measured"))
    assert main(["humanoid@1", "nosuch@1", f"store={BUNDLED}"]) == 2
    assert "nosuch" in capsys.readouterr().err
    assert main(["humanoid@1", f"store={BUNDLED}", "out=pyproject.toml"]) == 2
    assert "pyproject.toml" in capsys.readouterr().err


@pytest.fixture(scope="module")
def two_clips(tmp_path_factory) -> str:
    """A recipe of a clip that humanoid@1 has learned from and of one that it has never seen."""
    recipe = tmp_path_factory.mktemp("recipe") / "two.yaml"
    files = "".join(f'  - {{file: "pybullet:humanoid3d_{name}.txt"}}\n' for name in ("walk", "backflip"))
    recipe.write_text(f"name: two\nmirror: false\nmotions:\n{files}")
    return str(recipe)


@dataclass(frozen=True)
class Said:
    """What a command has written to `folder`, and said."""

    folder: Path
    out: str
    err: str

    def page(self, ref: str) -> Path:
        """Of two episodes by the recipe `two`, which its folder says."""
        return self.folder / "cards" / f"{ref}-two-2" / "CARD.md"

    @property
    def refs(self) -> list[str]:
        """The libraries of the table."""
        return self.out.splitlines()[0].split()


@pytest.fixture(scope="module")
def side_by_side(tmp_path_factory, two_clips) -> Said:
    """Two libraries, measured in little time, as typed in an empty folder."""
    folder, out, err = tmp_path_factory.mktemp("side_by_side") / "Zoë=3, [日本]", StringIO(), StringIO()
    folder.mkdir()
    asked = [f"store={Path(BUNDLED).resolve()}", f"motions={two_clips}", "episodes=2"]
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setenv("PYTHONPATH", str(Path.cwd()))
        patch.setenv("REPERTOIRE_CARDS", f"{folder}/cards")
        patch.chdir(folder)
        assert main(["humanoid@1", "humanoid-all@1", *asked]) == 0, err.getvalue()
    return Said(folder, out.getvalue(), err.getvalue())


def test_two_libraries_are_two_columns_of_a_table_and_a_folder_each(side_by_side):
    refs = ["humanoid@1", "humanoid-all@1"]
    cards = [json.loads((side_by_side.page(ref).parent / "card.json").read_text()) for ref in refs]
    assert side_by_side.refs == refs
    assert {path.name for path in (side_by_side.folder / "cards").iterdir()} == {f"{ref}-two-2" for ref in refs}
    (line,) = (line for line in side_by_side.out.splitlines() if line.startswith("coverage"))
    assert [float(x) for x in line.split()[1:]] == pytest.approx([card["coverage"] for card in cards], abs=0.006)
    assert cards[0]["coverage"] != cards[1]["coverage"]


def test_a_card_is_a_page_with_the_table_and_every_picture_that_it_shows(side_by_side):
    for ref in side_by_side.refs:
        folder = side_by_side.page(ref).parent
        text = side_by_side.page(ref).read_text()
        assert text.startswith(f"# {ref}\n")
        assert "skill recovery" in text
        pictures = re.findall(r"\]\((.+?\.png)\)", text)
        assert {"coverage.png", "latents.png", "falls.png"} <= set(pictures)
        assert all((folder / name).read_bytes().startswith(b"\x89PNG") for name in pictures)
        assert f"wrote {side_by_side.page(ref)}" in side_by_side.err


def test_the_clips_that_a_library_has_learned_from_are_drawn_and_no_others(side_by_side):
    if "no rendering here" in side_by_side.err:
        pytest.skip(side_by_side.err)
    for ref, drawn in (("humanoid@1", "walk"), ("humanoid-all@1", "walk,backflip")):
        folder = side_by_side.page(ref).parent
        assert f"drawn side by side: {drawn}\n" in side_by_side.page(ref).read_text()
        with Image.open(folder / "clips.png") as picture:
            assert picture.size == (900, 240 * len(drawn.split(",")))
            assert len(picture.convert("RGB").getcolors(1 << 20) or ()) > 50


@pytest.fixture
def measured(monkeypatch) -> None:
    """A library's card is the published one, at once."""
    monkeypatch.setattr(
        "pretrain.evaluate.evaluate", lambda skills, *_: {**skills.version.manifest.card, "caveats": []}
    )


@pytest.mark.usefixtures("measured")
def test_where_nothing_can_be_drawn_a_line_says_so_and_the_card_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MUJOCO_GL", "disabled")
    assert main(["humanoid@1", f"store={BUNDLED}", f"out={tmp_path}/card"]) == 0
    (said,) = capsys.readouterr().err.splitlines()
    page = tmp_path / "card" / "CARD.md"
    assert said.startswith(f"wrote {page}; no picture of the clips: no rendering here (MUJOCO_GL=disabled: ")
    assert said.endswith("; install libegl1, or libosmesa6 and set MUJOCO_GL=osmesa")
    assert json.loads((tmp_path / "card" / "card.json").read_text())["survival"] > 0.9
    assert {path.name for path in page.parent.glob("*.png")} >= {"coverage.png", "latents.png", "falls.png"}
    assert "clips.png" not in page.read_text()


@pytest.mark.usefixtures("measured")
def test_nothing_is_written_where_nowhere_is_asked_for(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["humanoid@1", f"store={BUNDLED}", "out="]) == 0
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr().out.split()[0] == "humanoid@1"


def test_a_clips_own_latent_belongs_to_it(every_clip):
    """A manifest names its clips in the order of the alphabet, a recipe in its own."""
    skills = SkillLibrary.open(Store(BUNDLED), "humanoid-all@1")
    env = world(skills, every_clip, 1, Conditions(threads=1), torch.Generator().manual_seed(0))
    names, published = every_clip.library.names, skills.version.manifest.latent.clips
    found = nearest_clip(skills, env)(torch.tensor([published[name] for name in names]))
    assert found is not None
    itself = sum(names[i] == name for i, name in zip(found.tolist(), names, strict=True))
    assert itself >= len(names) - 4  # a few share their latent with their mirror image
