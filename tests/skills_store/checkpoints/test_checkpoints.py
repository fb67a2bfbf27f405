"""Checkpoints of ASE and MimicKit are imported as libraries that compute the same."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from skills_store.__main__ import main
from skills_store.admission import contract
from skills_store.checkpoints.bodies import BODIES
from skills_store.checkpoints.importer import publish
from skills_store.checkpoints.tensors import load
from skills_store.errors import CheckpointRefusal, WrongKind
from skills_store.runtime.library import SkillLibrary
from skills_store.store import Store
from tests import tiny

Checkpoint = dict[str, Any]
LATENT = 64
# body: (hinges, ASE observation, ASE window, MimicKit observation, MimicKit window)
WIDTHS = {
    "humanoid": (28, 223, 1250, 140, 1420),
    "humanoid_sword_shield": (31, 253, 1400, 158, 1600),
}


def dense(made: Checkpoint, name: str, inputs: int, outputs: int, rng: np.random.Generator) -> None:
    bound = 1 / np.sqrt(inputs)  # as torch initializes a layer
    made[f"{name}.weight"] = torch.from_numpy(
        rng.uniform(-bound, bound, (outputs, inputs)).astype(np.float32)
    )
    made[f"{name}.bias"] = torch.from_numpy(rng.uniform(-bound, bound, outputs).astype(np.float32))


def ase(body: str) -> Checkpoint:
    """Names and shapes of an ASE checkpoint, with what its trainer saves beside the networks."""
    joints, obs, window, *_ = WIDTHS[body]
    rng = np.random.default_rng(1)
    net: Checkpoint = {"a2c_network.sigma": torch.full((joints,), -2.9)}
    for name, inputs, outputs in (
        ("actor_mlp._style_mlp.0", LATENT, 512),
        ("actor_mlp._style_mlp.2", 512, 256),
        ("actor_mlp._style_dense", 256, 64),
        ("actor_mlp._dense_layers.0", obs + 64, 1024),
        ("actor_mlp._dense_layers.1", 1024, 1024),
        ("actor_mlp._dense_layers.2", 1024, 512),
        ("mu", 512, joints),
        ("critic_mlp._mlp.0", obs + LATENT, 1024),
        ("value", 512, 1),
        ("_disc_mlp.0", window, 1024),
        ("_disc_mlp.2", 1024, 1024),
        ("_disc_mlp.4", 1024, 512),
        ("_disc_logits", 512, 1),
        ("_enc", 512, LATENT),
    ):
        dense(net, f"a2c_network.{name}", inputs, outputs, rng)
    for number in (0, 2, 4):  # the encoder shares the discriminator's trunk
        for part in ("weight", "bias"):
            net[f"a2c_network._enc_mlp.{number}.{part}"] = net[
                f"a2c_network._disc_mlp.{number}.{part}"
            ]

    def norm(width: int) -> Checkpoint:
        # ASE saves float64.
        return {
            "running_mean": torch.from_numpy(rng.standard_normal(width)),
            "running_var": torch.from_numpy(rng.uniform(0.01, 4, width)),
            "count": torch.tensor(1.0, dtype=torch.float64),
        }

    return {
        "model": net,
        "running_mean_std": norm(obs),
        "reward_mean_std": norm(1),
        "amp_input_mean_std": norm(window),
        "optimizer": {"state": {0: {"step": 3}}, "param_groups": [{"lr": 2e-5}]},
        "epoch": 10,
        "frame": 1000,
        "last_mean_rewards": np.float32(0.5),
        "env_state": None,
    }


def mimickit(body: str) -> Checkpoint:
    """Names and shapes of a MimicKit checkpoint."""
    joints, *_, obs, window = WIDTHS[body]
    rng = np.random.default_rng(2)
    made: Checkpoint = {"_model._action_dist._logstd_net": torch.full((joints,), -3.0)}
    for name, inputs, outputs in (
        ("_actor_layers.0", obs + LATENT, 1024),
        ("_actor_layers.2", 1024, 1024),
        ("_actor_layers.4", 1024, 512),
        ("_action_dist._mean_net", 512, joints),
        ("_critic_layers.0", obs + LATENT, 1024),
        ("_critic_out", 512, 1),
        ("_disc_layers.0", window, 1024),
        ("_disc_layers.2", 1024, 1024),
        ("_disc_layers.4", 1024, 512),
        ("_disc_logits", 512, 1),
        ("_enc_layers.0", window, 1024),
        ("_enc_layers.2", 1024, 512),
        ("_enc_out", 512, LATENT),
    ):
        dense(made, f"_model.{name}", inputs, outputs, rng)
    for name, width in (("_obs_norm", obs), ("_a_norm", joints), ("_disc_obs_norm", window)):
        made[f"{name}._count"] = torch.tensor([1000], dtype=torch.int64)
        made[f"{name}._mean"] = torch.from_numpy(rng.standard_normal(width).astype(np.float32))
        made[f"{name}._std"] = torch.from_numpy(rng.uniform(0.1, 2, width).astype(np.float32))
    made["_obs_norm._std"][3] = 0.0  # a constant feature
    return made


MAKERS: dict[str, Callable[[str], Checkpoint]] = {"ase": ase, "mimickit": mimickit}


def test_known_bodies_have_the_documented_joint_counts() -> None:
    assert {name: len(body.hinges) for name, body in BODIES.items()} == {
        n: w[0] for n, w in WIDTHS.items()
    }


# A forward pass that shares no code with the importer.


def apply(net: Checkpoint, name: str, x: np.ndarray) -> np.ndarray:
    return x @ net[f"{name}.weight"].numpy().astype(np.float64).T + net[f"{name}.bias"].numpy()


def hidden(net: Checkpoint, name: str, numbers: tuple[int, ...], x: np.ndarray) -> np.ndarray:
    for number in numbers:
        x = np.maximum(apply(net, f"{name}.{number}", x), 0)
    return x


def ase_forward(
    made: Checkpoint, body: str, state: np.ndarray, z: np.ndarray, window: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    def normal(x: np.ndarray, norm: Checkpoint) -> np.ndarray:
        mean = norm["running_mean"].float().numpy()
        var = norm["running_var"].float().numpy()
        return np.clip((x - mean) / np.sqrt(var + 1e-5), -5, 5)

    net = {name.removeprefix("a2c_network."): x for name, x in made["model"].items()}
    style = np.tanh(
        apply(net, "actor_mlp._style_dense", hidden(net, "actor_mlp._style_mlp", (0, 2), z))
    )
    both = np.concatenate([normal(state, made["running_mean_std"]), style], axis=-1)
    a = np.clip(apply(net, "mu", hidden(net, "actor_mlp._dense_layers", (0, 1, 2), both)), -1, 1)
    newest_first = np.concatenate([window[:, t] for t in reversed(range(10))], axis=1)
    trunk = hidden(net, "_disc_mlp", (0, 2, 4), normal(newest_first, made["amp_input_mean_std"]))
    enc = apply(net, "_enc", trunk)
    return (
        ase_targets(body, a),
        enc / np.sqrt((enc**2).sum(-1, keepdims=True)),
        1 / (1 + np.exp(-apply(net, "_disc_logits", trunk)[:, 0])),
    )


def ase_targets(body: str, a: np.ndarray) -> np.ndarray:
    """By ASE's joint limits in degrees and its rule for targets, joint by joint."""
    hand = [[90]] if body == "humanoid_sword_shield" else []
    arm: list[Any] = [[180], (-160, 0)]
    leg: list[Any] = [[140], (0, 160), [55]]
    # Three axes by their widest limit, one by its range.
    groups = [
        [90],
        [60],
        *arm,
        *hand,
        *arm,
        *leg,
        *leg,
    ]
    out = []
    at = 0
    for group in groups:
        if isinstance(group, list):
            scale = min(1.2 * np.radians(group[0]), np.pi)
            out.append(scale * a[:, at : at + 3])
            at += 3
        else:
            low, high = np.radians(group)
            out.append((low + high) / 2 + 0.7 * (high - low) * a[:, at : at + 1])
            at += 1
    assert at == a.shape[1]
    return np.concatenate(out, axis=1)


def mimickit_forward(
    made: Checkpoint, _: str, state: np.ndarray, z: np.ndarray, window: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    def normal(x: np.ndarray, name: str) -> np.ndarray:
        std = np.maximum(made[f"{name}._std"].numpy(), 1e-4)
        return np.clip((x - made[f"{name}._mean"].numpy()) / std, -10, 10)

    net = {name.removeprefix("_model."): x for name, x in made.items()}
    both = np.concatenate([normal(state, "_obs_norm"), z], axis=-1)
    a = apply(net, "_action_dist._mean_net", hidden(net, "_actor_layers", (0, 2, 4), both))
    mean = made["_a_norm._mean"].numpy()
    std = made["_a_norm._std"].numpy()
    seen = normal(window.reshape(len(window), -1), "_disc_obs_norm")
    enc = apply(net, "_enc_out", hidden(net, "_enc_layers", (0, 2), seen))
    logit = apply(net, "_disc_logits", hidden(net, "_disc_layers", (0, 2, 4), seen))[:, 0]
    return (
        np.clip(a * std + mean, mean - std, mean + std),
        enc / np.sqrt((enc**2).sum(-1, keepdims=True)),
        1 / (1 + np.exp(-logit)),
    )


FORWARDS = {"ase": ase_forward, "mimickit": mimickit_forward}


@pytest.mark.parametrize("body", list(WIDTHS))
@pytest.mark.parametrize("peer", list(MAKERS))
def test_imported_library_matches_the_peer_network(tmp_path: Path, peer: str, body: str) -> None:
    made = MAKERS[peer](body)
    torch.save(made, tmp_path / "model")
    store = Store(tmp_path / "store")
    version = publish(store, tmp_path / "model", "knight", "see the peer's licence")
    library = SkillLibrary.open(store, "knight")
    manifest = version.manifest
    assert (manifest.observations, manifest.character.name) == (peer, body)
    assert (manifest.licence, library.latent_dim, library.window_length) == (
        "see the peer's licence",
        LATENT,
        10,
    )
    state, window = (
        graph.inputs[0] for graph in (manifest.graphs["policy"], manifest.graphs["encoder"])
    )
    assert (
        (state.width, 10 * window.width) == WIDTHS[body][1:3]
        if peer == "ase"
        else WIDTHS[body][3:5]
    )

    rng = np.random.default_rng(3)
    rows = 3 * rng.standard_normal((32, state.width))  # wide enough to reach every clamp
    windows = 3 * rng.standard_normal((32, 10, window.width))
    rows, windows = (x.astype(np.float32).astype(np.float64) for x in (rows, windows))
    z = rng.standard_normal((32, LATENT)).astype(np.float32).astype(np.float64)
    on_the_sphere = z / np.sqrt((z**2).sum(1, keepdims=True))  # where the peers draw it
    targets, encoded, style = FORWARDS[peer](made, body, rows, on_the_sphere, windows)
    np.testing.assert_allclose(library.act(rows, z), targets, atol=1e-5)
    np.testing.assert_allclose(library.encode(windows), encoded, atol=1e-5)
    np.testing.assert_allclose(library.style(windows), style, atol=1e-5)
    assert np.abs(targets).std() > 0.01  # not constant
    assert store.verify() == ()


@pytest.fixture(scope="module")
def knight(tmp_path_factory: pytest.TempPathFactory) -> SkillLibrary:
    folder = tmp_path_factory.mktemp("knight")
    torch.save(ase("humanoid_sword_shield"), folder / "model.pth")
    store = Store(folder / "store")
    (folder / "body.xml").write_text("<mujoco model='mine'/>")
    publish(store, folder / "model.pth", "knight", "X", folder / "body.xml")
    return SkillLibrary.open(store, "knight")


def test_the_manifest_names_the_peers_observations(knight: SkillLibrary) -> None:
    manifest = knight.version.manifest
    parts = {
        part.name: (part.stop - part.start, part.frame)
        for part in manifest.graphs["policy"].inputs[0].slices
    }
    assert parts["root_rot"] == (6, "world")  # global in every published configuration
    assert parts["body_vel"] == (51, "heading")
    frame = {
        part.name: part.stop - part.start for part in manifest.graphs["encoder"].inputs[0].slices
    }
    assert frame == {
        "root_height": 1,
        "root_rot": 6,
        "root_vel": 3,
        "root_ang_vel": 3,
        "joint_rot": 78,
        "joint_vel": 31,
        "key_pos": 18,
    }
    assert manifest.character.mjcf == "<mujoco model='mine'/>"
    assert manifest.lineage.config["checkpoint"]["peer"] == "ase"
    assert manifest.lineage.config["checkpoint"]["digest"].startswith("sha256:")
    assert contract.find_breaches(manifest) == []


def test_window_width_must_match_state_for_own_observations(knight: SkillLibrary) -> None:
    ours = knight.version.manifest.model_copy(update={"observations": "repertoire"})
    assert contract.find_breaches(ours) == ["encoder.window is 140 wide, but policy.state is 253"]


def test_controller_observations_must_match_its_parent(knight: SkillLibrary) -> None:
    parent = knight.version.manifest
    controller = tiny.controller_manifest(knight.version)
    assert any(
        "'repertoire', but its parent's are those of 'ase'" in each
        for each in contract.find_breaches(controller, parent)
    )


def test_embedding_raw_states_is_refused_for_peer_observations(knight: SkillLibrary) -> None:
    with pytest.raises(WrongKind, match="ase observations"):
        knight.embed(np.zeros((20, knight.state_width)))


class Called:
    """Pickled as a call of `print`."""

    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("a checkpoint ran code",)


def without(name: str) -> Callable[[Checkpoint], object]:
    return lambda made: made["model"].pop(f"a2c_network.{name}")


def replaced(name: str, tensor: torch.Tensor) -> Callable[[Checkpoint], None]:
    def change(made: Checkpoint) -> None:
        made["model"][f"a2c_network.{name}"] = tensor

    return change


SPOILED: dict[str, tuple[Callable[[Checkpoint], object], str]] = {
    "code": (
        lambda made: made.update(env_state=Called()),
        "not plain tensors: it asks for .*print",
    ),
    "no style": (
        without("actor_mlp._style_dense.weight"),
        "not an ASE checkpoint of a supported project",
    ),
    "no mu": (without("mu.weight"), r"no tensor model\.a2c_network\.mu\.weight"),
    "a gap": (without("actor_mlp._dense_layers.1.weight"), r"layers \[0, 2\]"),
    "another width": (
        replaced("mu.weight", torch.zeros(30, 512)),
        "30 rows of weights, but 31 biases",
    ),
    "integers": (replaced("mu.bias", torch.zeros(31, dtype=torch.int64)), "int64"),
    "not finite": (replaced("mu.bias", torch.full((31,), torch.nan)), "not finite"),
    "an infinity on the way to float32": (
        replaced("mu.bias", torch.full((31,), 1e300, dtype=torch.float64)),
        "finite",
    ),
    "no axes": (replaced("mu.bias", torch.tensor(1.0)), "needs 1 axes"),
    "negative variance": (
        lambda made: made["running_mean_std"]["running_var"].fill_(-1),
        "variances",
    ),
    "another body": (
        lambda made: made["running_mean_std"].update(running_mean=torch.zeros(254)),
        "variances|wide",
    ),
}


@pytest.mark.parametrize("how", list(SPOILED))
def test_undocumented_network_layout_is_refused(
    tmp_path: Path, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made = ase("humanoid_sword_shield")
    spoil, reason = SPOILED[how]
    spoil(made)
    torch.save(made, tmp_path / "model.pth")
    store = Store(tmp_path / "store")
    with pytest.raises(CheckpointRefusal, match=reason) as refused:
        publish(store, tmp_path / "model.pth", "knight", "X")
    assert "\n" not in str(refused.value)
    assert not store.root.exists()
    assert "ran code" not in capsys.readouterr().out


def test_checkpoint_at_a_cap_is_read_and_beyond_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.pth"
    torch.save({"x": torch.arange(9.0), "wide": torch.ones(1).expand(9)}, path)
    size = path.stat().st_size
    for name in ("x", "wide"):
        assert load(path, max_bytes=size, max_elements=9).vector(name).shape == (9,)
        with pytest.raises(CheckpointRefusal, match=rf"{name} has shape \[9\].*1 to 8 numbers"):
            load(path, max_elements=8).vector(name)
    with pytest.raises(CheckpointRefusal, match=f"it has {size} bytes, over the cap of {size - 1}"):
        load(path, max_bytes=size - 1)


def test_unknown_body_widths_error_lists_the_known_ones(tmp_path: Path) -> None:
    made = mimickit("humanoid")
    made["_obs_norm._mean"] = torch.zeros(139)
    made["_obs_norm._std"] = torch.ones(139)
    dense(made, "_model._actor_layers.0", 139 + LATENT, 1024, np.random.default_rng(0))
    torch.save(made, tmp_path / "model.pt")
    with pytest.raises(
        CheckpointRefusal, match=r"139, 1420 and 28 wide.*humanoid 140, 1420 and 28"
    ):
        publish(Store(tmp_path / "store"), tmp_path / "model.pt", "knight", "X")


def test_file_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    for data in (b"", b"not a checkpoint", b"\x80\x02.", b"PK\x03\x04" + b"x" * 100):
        (tmp_path / "model.pt").write_bytes(data)
        with pytest.raises(CheckpointRefusal):
            publish(Store(tmp_path / "store"), tmp_path / "model.pt", "knight", "X")


def test_checkpoint_with_scalars_of_an_older_numpy_is_read(tmp_path: Path) -> None:
    """ASE was trained with numpy 1.21, whose scalars name a module that has moved since."""
    torch.save(ase("humanoid"), tmp_path / "new.pth")
    with (
        zipfile.ZipFile(tmp_path / "new.pth") as new,
        zipfile.ZipFile(tmp_path / "old.pth", "w") as old,
    ):
        for entry in new.namelist():
            data = new.read(entry)
            assert not entry.endswith("data.pkl") or b"numpy._core.multiarray" in data
            old.writestr(entry, data.replace(b"numpy._core.multiarray", b"numpy.core.multiarray"))
    assert publish(Store(tmp_path / "store"), tmp_path / "old.pth", "knight", "X").number == 1


def test_import_checkpoint_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save(mimickit("humanoid"), tmp_path / "model.pt")
    argv = [
        "--store",
        str(tmp_path / "store"),
        "import-checkpoint",
        str(tmp_path / "model.pt"),
        "--name",
        "mime",
    ]
    assert main([*argv, "--licence", "Apache-2.0", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["ref"], shown["observations"], shown["character"]) == (
        "mime@1",
        "mimickit",
        "humanoid",
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--name", "../x"], "'../x' cannot name a skill"),
        (
            ["--name", "mime", "--mjcf", "body.xml"],
            "body.xml is refused: as an MJCF it must be text in UTF-8, but byte 2",
        ),
        (["--name", "mime", "--licence", "\udcff"], "is not in UTF-8"),
    ],
)
def test_invalid_import_options_are_a_one_line_error(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    expected: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save(mimickit("humanoid"), "model.pt")
    Path("body.xml").write_bytes(b"<a\xff/>")
    assert (
        main(["--store", "store", "import-checkpoint", "model.pt", "--licence", "X", *options]) == 2
    )
    err = capsys.readouterr().err
    assert expected in err
    assert err.count("\n") == 1
    assert not Path("store").exists()
