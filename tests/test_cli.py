"""Parsing of key=value arguments, their one-line errors, sweeps, and --help of each program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hlc.config import CONFIG_MODEL
from pretrain.cli import command, expand_sweep, program
from pretrain.config import PretrainConfig
from pretrain.help_text import describe_config
from pretrain.motion.recipe import load_recipe
from pretrain.options import name_reference, parse_options, split_arguments
from pretrain.overrides import ConfigError, find_near, load_config
from pretrain.rl.run_folder import lock_run_folder
from skills_store import places

PATHS = (
    "/x/epoch=3/r.yaml",
    "/a, b/[c]/{d}/(e)/r.yaml",
    "/home/zoë/日本/r.yaml",
    "/$HOME/${x}/~/'q\"/r.yaml",
    "\\a\\b:c@d%e#f;g!h*i?j|k<l>m&n",
    " spaces at both ends ",
    "",
    "null",
    "1e5",
)


def pretrain(*overrides: str) -> PretrainConfig:
    return load_config(PretrainConfig, "pretrain.conf", overrides)


def get_error(*overrides: str) -> str:
    with pytest.raises(ConfigError) as error:
        pretrain(*overrides)
    return str(error.value)


@pytest.mark.parametrize("text", PATHS)
@pytest.mark.parametrize("key", ["motions", "runs", "store"])
def test_a_key_of_text_takes_any_text(key: str, text: str) -> None:
    assert getattr(pretrain(f"{key}={text}"), key) == text
    assert pretrain(f"{key}={text}") == PretrainConfig.model_validate(
        pretrain().model_dump() | {key: text}
    )  # and nothing else has changed


@settings(max_examples=20, deadline=None)  # Hydra takes a quarter of a second
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_key_of_text_takes_every_text(text: str) -> None:
    assert load_config(CONFIG_MODEL, "hlc.conf", [f"skill={text}"]).skill == text


@pytest.mark.parametrize("name", ["20240601", "nan", "true", "null", "1e5", "0x10", "inf", "3-4_5"])
def test_name_override_is_kept_as_literal_text(name: str) -> None:
    assert pretrain(f"name={name}").name == name
    # and overrides the preset's name
    assert pretrain("preset=toy", f"name={name}", "num_envs=3").name == name


def test_last_of_repeated_overrides_wins() -> None:
    assert pretrain("runs=/a=1", "runs=/b=2").runs == "/b=2"
    assert pretrain("++runs=/a=1").runs == "/a=1"


def test_other_values_are_in_hydras_grammar() -> None:
    found = pretrain(
        "preset=toy",
        "ppo.hidden=[64,32]",
        "tracking_termination.max_velocity_excess=null",
        "publish=false",
        "enc={lr: 1e-3}",
    )
    assert (
        found.name,
        found.ppo.hidden,
        found.tracking_termination.max_velocity_excess,
        found.publish,
    ) == ("toy", (64, 32), None, False)
    assert (found.enc.lr, found.enc.rows) == (1e-3, 512)
    # a key of text that chooses a file
    assert load_config(CONFIG_MODEL, "hlc.conf", ["task=reach"]).task == "reach"


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("num_env=3", "unknown key num_env; near it: num_envs; --help lists every key"),
        (
            "lr=1e-3",
            "unknown key lr; near it: ppo.lr, disc.lr, enc.lr; --help lists every key",
        ),
        (
            "latent.dim=4",
            "unknown key latent.dim; near it: latent.latent_dim; --help lists every key",
        ),
        (
            "motion=/x/a=b.yaml",
            "unknown key motion; near it: motions; --help lists every key",
        ),
        (
            "latent={latent_time_min: 6.0, latent_time_max: 5.0}",
            "latent: latent_time_min 6.0 is over latent_time_max 5.0",
        ),
        (
            "curriculum.focus=0.5",
            "curriculum.focus: Input should be greater than or equal to 1",
        ),
        ("prest=toy", "unknown key prest; near it: preset; --help lists every key"),
        ("eval.speed=4", "unknown key eval.speed; near it: eval.seed, "),
        (
            "eval.what=4",
            "unknown key eval.what; there are: eval.episodes, eval.seed; --help lists every key",
        ),
        ("+zzz=1", "unknown key zzz; there are: name, character, motions, "),
        ("name=Zoë", "name: String should match pattern"),
        ("ppo.gamma=2", "ppo.gamma: Input should be less than or equal to 1, got 2"),
        ("runs=\udcff", r"runs='\udcff' is not in UTF-8"),
        (
            "preset=toy,all",
            "Ambiguous value for argument 'preset=toy,all'; expected after the =: a number, ",
        ),
        (
            "seed=é",
            "seed=é cannot be read; expected after the =: "
            "a number, true, false, null, a word, or a list as ",
        ),
        ("preset=é", "preset=é cannot be read; expected after the =: "),
        (
            "preset=huge",
            "In 'config': Could not find 'preset/huge'. "
            "Available options in 'preset': all ase everyday locomotion mobility switching toy",
        ),
        ("toy", "toy is not key=value"),
    ],
)
def test_config_error_is_one_short_line(override: str, expected: str) -> None:
    found = get_error(override)
    assert found.startswith(expected)
    assert len(found) < 400
    assert "\n" not in found


def test_a_recipe_is_found_in_any_folder(tmp_path: Path) -> None:
    folder = tmp_path / "Zoë=3, [日本]"
    folder.mkdir()
    (folder / "recipe.yaml").write_text(
        "name: mine\nmotions: [{file: é.txt, source: 'Zoë'}]\n", encoding="utf-8"
    )
    recipe, found = load_recipe(pretrain(f"motions={folder}/recipe.yaml").motions)
    assert (recipe.motions[0].file, recipe.motions[0].source, found) == ("é.txt", "Zoë", folder)


def test_runs_folder_defaults_to_the_environment_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "${mine}, [é]=1"
    monkeypatch.setenv("REPERTOIRE_RUNS", str(mine))
    assert places.runs() == mine
    assert pretrain().runs == load_config(CONFIG_MODEL, "hlc.conf", []).runs == str(mine)


def test_error_of_an_uncreatable_run_folder_names_the_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()

    def run(cfg: PretrainConfig) -> int:
        with lock_run_folder(Path(cfg.runs) / "toy", cfg):
            return 0

    assert command(run, PretrainConfig, "pretrain.conf", [f"runs={tmp_path}/file"]) == 2
    stderr = capsys.readouterr().err
    assert (
        stderr == f"OSError: no run in {tmp_path}/file/toy: Not a directory; "
        "runs= or REPERTOIRE_RUNS names another folder\n"
    )


def test_options_accept_any_text_and_errors_list_known_keys() -> None:
    defaults = {"out": "", "episodes": "256", "store": ""}
    assert parse_options(["out=/a=b/é, [c]"], defaults) == {**defaults, "out": "/a=b/é, [c]"}
    with pytest.raises(ConfigError, match=r"unknown key episode; there are: episodes$"):
        parse_options(["episode=3"], defaults)
    with pytest.raises(ConfigError, match=r"unknown key speed; there are: out, episodes, store$"):
        parse_options(["speed=3"], defaults)


def test_a_path_with_an_equals_sign_is_no_option() -> None:
    arguments = ["/runs/epoch=3/toy", "./epoch=3", "out=/x=y", "humanoid@1"]
    assert split_arguments(arguments) == (
        ["/runs/epoch=3/toy", "./epoch=3", "humanoid@1"],
        ["out=/x=y"],
    )


def test_find_near_matches_whole_keys_or_last_components() -> None:
    assert find_near("lr", ["ppo.lr", "enc.lr", "name"]) == ["ppo.lr", "enc.lr"]
    assert find_near("quite.other", ["ppo.lr", "name"]) == []


PROGRAMS = (
    "pretrain.train",
    "pretrain.tracking",
    "pretrain.evaluate",
    "pretrain.render",
    "pretrain.quantize",
    "hlc.train",
    "hlc.amp",
    "hlc.evaluate",
    "hlc.plan",
    "hlc.compose",
    "serving",
    "serving.keys",
    "skills_store",
    "skills_store.repertoire",
)


def test_ctrl_c_ends_a_program_without_a_traceback(monkeypatch, capsys):
    def interrupt(arguments: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "argv", ["program"])
    assert program(interrupt, str) == 130
    assert capsys.readouterr().err == "stopped\n"


@pytest.mark.parametrize("module", PROGRAMS)
def test_every_program_prints_help(module):
    command = [sys.executable, "-m", module, "--help"]
    run = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert len(run.stdout.splitlines()) > 5


@pytest.mark.parametrize(
    ("kind", "module"), [(PretrainConfig, "pretrain.conf"), (CONFIG_MODEL, "hlc.conf")]
)
def test_the_help_describes_every_key(kind, module):
    lines = describe_config(kind, module, "usage", []).splitlines()
    keys = {line.strip().partition("=")[0]: line for line in lines[lines.index("keys:") + 1 :]}
    for name in kind.model_fields:
        assert any(key == name or key.startswith(f"{name}.") for key in keys)
    for line in keys.values():
        assert len(line.split("  ")[-1].strip()) > 0, line


def test_help_shows_the_values_of_the_chosen_preset():
    described = describe_config(PretrainConfig, "pretrain.conf", "usage", ["preset=toy", "seed=7"])
    chosen = load_config(PretrainConfig, "pretrain.conf", ["preset=toy"])
    assert f"\n  num_envs={chosen.num_envs} " in described
    assert f"\n  latent.latent_dim={chosen.latent.latent_dim} " in described
    assert "\n  seed=7 " in described


def test_error_of_a_group_rule_does_not_print_the_group():
    found = get_error("latent.latent_time_min=6.0", "latent.latent_time_max=5.0")
    assert found.startswith("latent: latent_time_min 6.0 is over latent_time_max 5.0")
    assert "clip_latent_prob" not in found


def test_sweep_expands_to_every_combination_and_keeps_text():
    swept = expand_sweep(
        ["preset=toy", "seed=1,2", "ppo.lr=0.0001,0.0003", "motions=/a b/c=1.yaml"]
    )
    assert len(swept) == 4
    assert swept[0] == ["preset=toy", "seed=1", "ppo.lr=0.0001", "motions=/a b/c=1.yaml"]
    assert [one[1] for one in swept] == ["seed=1", "seed=1", "seed=2", "seed=2"]


def test_a_sweep_with_an_invalid_value_begins_no_run(capsys):
    seeds: list[int] = []

    def run(cfg: PretrainConfig) -> int:
        seeds.append(cfg.seed)
        return 0

    assert command(run, PretrainConfig, "pretrain.conf", ["-m", "seed=1,x"]) == 2
    assert "seed: Input should be a valid integer" in capsys.readouterr().err
    assert not seeds


def test_a_number_in_place_of_a_list_is_refused_in_the_terms_of_the_command_line():
    assert get_error("ppo.hidden=256") == "ppo.hidden: expected a list, as [256,256], got 256"


def test_more_worlds_than_an_engine_can_hold_are_refused():
    assert "num_envs: Input should be less than or equal" in get_error("num_envs=10000000000")


def test_one_reference_may_stand_without_its_key():
    assert name_reference(["a@1", "out=x"], "skill") == ["skill=a@1", "out=x"]
    with pytest.raises(ConfigError, match="a@1 b@2: expected one reference"):
        name_reference(["a@1", "b@2"], "skill")


def test_a_sweep_runs_in_order_and_stops_at_the_first_failure():
    seeds: list[int] = []

    def run(cfg: PretrainConfig) -> int:
        seeds.append(cfg.seed)
        return 1 if cfg.seed == 2 else 0

    assert command(run, PretrainConfig, "pretrain.conf", ["-m", "seed=1,2,3"]) == 1
    assert seeds == [1, 2]
