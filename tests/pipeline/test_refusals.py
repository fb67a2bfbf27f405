"""Errors of a training are one line, and the run can be repeated afterwards."""

from __future__ import annotations

import json
import re

import pytest

from pretrain.assembly import build_training
from pretrain.config import PretrainConfig
from pretrain.motion.fetch import fetched
from pretrain.overrides import load_config
from pretrain.rl import checkpoint
from pretrain.rl.learner import Diverged
from pretrain.rl.run_folder import lock_run_folder
from pretrain.rl.training import CHECKPOINT
from pretrain.train import main, train
from pretrain.training_data import load_training_data
from skills_store import places
from tests.pipeline.small import SMALL, learned, toy
from tests.rl.nan_loss import spoil_value_loss
from tests.skills_store.full import files_of_at_most, run_with_files_of_at_most


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["preset=huge"],
            "Available options in 'preset': all ase everyday",
        ),
        (["ppo.learning_rate=1"], "ppo.lr"),
        (["ppo.lr=0.01"], "ppo.lr: Input should be less than or equal to 0.001, got 0.01"),
        (["motions=swimming"], "locomotion"),
        (["character=dragon"], "humanoid"),
        (["engine=bullet"], "mujoco"),
        (["seed=many"], "seed"),
    ],
)
def test_invalid_configuration_error_lists_valid_values(arguments, message, capsys, tmp_path):
    assert main(["preset=toy", f"runs={tmp_path}", f"store={tmp_path}/store", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_store_that_cannot_be_written_is_refused_before_training(tmp_path, capsys):
    (tmp_path / "store").write_text("a file")
    assert main(["preset=toy", f"runs={tmp_path}/runs", f"store={tmp_path}/store"]) == 2
    assert "it is a file, or lies in one; name a folder" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
    with files_of_at_most(0):
        assert main(["preset=toy", f"runs={tmp_path}/runs", f"store={tmp_path}/full"]) == 2
    assert "toy cannot be published: File too large" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_unreadable_number_error_names_file_and_frame(tmp_path, capsys):
    motion = json.loads((fetched(places.clips()) / "humanoid3d_walk.txt").read_text())
    motion["Frames"][7][3] = "HERE"
    (tmp_path / "long.txt").write_text(json.dumps(motion).replace('"HERE"', "9" * 5000))
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("name: mine\nmotions: [{file: long.txt}]\n")
    capsys.readouterr()  # a first use prints that it fetches the clips
    assert (
        main(
            ["preset=toy", f"motions={recipe}", f"runs={tmp_path}/runs", f"store={tmp_path}/store"]
        )
        == 2
    )
    (line,) = capsys.readouterr().err.splitlines()
    assert (
        line == "ClipError: long.txt: frame 7 column 3 is inf, expected a finite number below 1e6"
    )


def test_a_store_that_cannot_be_opened_fails_before_training(tmp_path, capsys):
    assert main(["preset=toy", "store=ftp://x/y", f"runs={tmp_path}"]) == 2
    assert "ftp://x/y" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_clip_shorter_than_a_window_is_refused():
    with pytest.raises(ValueError, match=r"walk\w* has \d+ frames; a style window needs 9999"):
        load_training_data("humanoid", "locomotion", 9999)


TOY = ("preset=toy", "warm.encoder_steps=1", "warm.clone_steps=1")
ASE = ("preset=ase", *SMALL, "num_disc_obs_steps=3", "ppo.horizon=8", "ppo.minibatch=256")


@pytest.mark.parametrize("preset", [TOY, ASE], ids=["toy", "ase"])
def test_nan_gradients_stop_the_run_and_keep_its_checkpoint(tmp_path, preset):
    cfg = load_config(PretrainConfig, "pretrain.conf", [*preset, "samples=512"])
    data = load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    training = build_training(cfg, data)
    assert train(cfg, training, tmp_path)
    saved = (tmp_path / CHECKPOINT).read_bytes()
    training.objective = spoil_value_loss(training.objective)
    with pytest.raises(Diverged, match=r"value: .* gradient steps were not finite"):
        train(cfg.model_copy(update={"samples": 2048}), training, tmp_path)
    assert (tmp_path / CHECKPOINT).read_bytes() == saved


@pytest.mark.parametrize(
    ("preset", "most", "unwritten"),
    [
        pytest.param(TOY, 1000, r"config\.json", id="toy-config"),
        pytest.param(TOY, 4000, r"metrics\.jsonl", id="toy-metrics"),
        pytest.param(TOY, 100_000, r"checkpoint\.pt", id="toy-checkpoint"),
        pytest.param(ASE, 1000, r"config\.json", id="ase-config"),
        pytest.param(ASE, 100_000, r"checkpoint\.pt", id="ase-checkpoint"),
    ],
)
def test_full_disk_error_names_the_file_and_the_rerun_resumes(tmp_path, preset, most, unwritten):
    """A real short write: the kernel limits files to `most` bytes."""
    how = [*preset, "publish=false", "samples=2048", f"runs={tmp_path}", "threads=1"]
    filled = run_with_files_of_at_most(most, "pretrain.train", how)
    assert filled.returncode == 2
    (line,) = filled.stderr.splitlines()
    assert re.match(rf"OSError: .*{unwritten}\b.*(File too large|the disk may be full)", line)
    (folder,) = tmp_path.iterdir()
    assert {file.name for file in folder.iterdir()} <= {
        "config.json",
        "lock",
        "metrics.jsonl",
        "tensorboard",
    }
    assert main(how) == 0
    assert [row["iteration"] for row in learned(folder)] == [1, 2, 3, 4]


def test_the_same_run_is_not_trained_twice_at_once(tmp_path, capsys):
    how = ["preset=toy", "publish=false", f"runs={tmp_path}"]
    assert main([*how, "samples=512"]) == 0
    (folder,) = tmp_path.iterdir()
    with lock_run_folder(folder, toy()):
        assert main([*how, "samples=1024"]) == 2
        assert "another process trains there" in capsys.readouterr().err
    assert main([*how, "samples=1024"]) == 0


def test_foreign_checkpoint_is_refused(tmp_path):
    checkpoint.save(tmp_path / "checkpoint.pt", {"weights": 1})
    cfg = toy()
    training = build_training(
        cfg, load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    )
    with pytest.raises(
        ValueError, match=r"checkpoint\.pt is no checkpoint of this run: KeyError\('nets'\)"
    ):
        training.resume(tmp_path, cfg.samples)


def test_checkpoint_of_other_layers_is_refused(tmp_path):
    made, other = (
        build_training(cfg, load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps))
        for cfg in (toy("disc.hidden=[32,32]"), toy())
    )
    checkpoint.save(tmp_path / "checkpoint.pt", made.snapshot())
    with pytest.raises(
        ValueError,
        match=r"checkpoint\.pt is no checkpoint of this run: its layers or worlds are not .*, "
        "the run begins anew$",
    ):
        other.resume(tmp_path, 2048)
