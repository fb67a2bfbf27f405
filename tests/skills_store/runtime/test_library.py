"""The runtime: numpy in and out, verified graphs, no state, and no import of training code."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from skills_store.errors import (
    CorruptBlob,
    InvalidInput,
    UnknownGraph,
    UnknownParent,
    UnusableGraph,
    WrongKind,
)
from skills_store.runtime.library import Controller, SkillLibrary, pool
from skills_store.store import Store
from tests import tiny


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("store"))
    tiny.publish_tiny_controller(store, tiny.publish_tiny(store))
    tiny.publish_tiny(store, seed=1)
    return store


@pytest.fixture(scope="module")
def library(store: Store) -> SkillLibrary:
    return SkillLibrary.open(store, "humanoid@1")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_outputs_have_the_declared_shapes_and_types(
    library: SkillLibrary, rng: np.random.Generator
) -> None:
    for rows in (1, 3):
        window = rng.standard_normal((rows, tiny.WINDOW, tiny.STATE))  # float64 is accepted
        z = library.encode(window)
        targets = library.act(window[:, -1], z)
        assert (z.shape, targets.shape) == ((rows, tiny.LATENT), (rows, len(tiny.JOINTS)))
        assert library.style(window).shape == (rows,)
        assert z.dtype == targets.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(z, axis=1), 1, atol=1e-6)
    assert (library.latent_dim, library.state_width, library.window_length) == (8, 69, 5)


def test_act_is_a_function_of_state_and_z(library: SkillLibrary, rng: np.random.Generator) -> None:
    state = rng.standard_normal((4, tiny.STATE))
    z = rng.standard_normal((4, tiny.LATENT))
    together = library.act(state, z)
    assert np.array_equal(together, library.act(state, z))
    np.testing.assert_allclose(
        np.concatenate([library.act(state[i : i + 1], z[i : i + 1]) for i in range(4)]),
        together,
        atol=1e-6,
    )
    assert not np.allclose(together, library.act(state, -z))


def test_versions_give_different_actions(store: Store, library: SkillLibrary) -> None:
    state = np.ones((1, tiny.STATE))
    z = np.ones((1, tiny.LATENT))
    assert not np.allclose(
        library.act(state, z), SkillLibrary.open(store, "humanoid").act(state, z)
    )


def test_embed_slides_over_a_motion(library: SkillLibrary, rng: np.random.Generator) -> None:
    motion = rng.standard_normal((2000, tiny.STATE)).astype(np.float32)
    embedding = library.embed(motion)
    assert embedding.windows.shape == (1996, tiny.LATENT)
    np.testing.assert_allclose(
        embedding.windows[1500], library.encode(motion[None, 1500:1505])[0], atol=1e-6
    )
    np.testing.assert_allclose(np.linalg.norm(embedding.pooled), 1, atol=1e-6)
    assert library.embed(motion, stride=10).windows.shape == (200, tiny.LATENT)
    assert library.embed(motion[: tiny.WINDOW]).windows.shape == (1, tiny.LATENT)
    with pytest.raises(InvalidInput, match="at least 5 states, got 4"):
        library.embed(motion[:4])
    with pytest.raises(InvalidInput, match=r"\(T, 69\)"):
        library.embed(motion[:, :3])


def test_pooled_is_unit_even_when_rows_cancel_out() -> None:
    z = np.array([[1, 0], [-1, 0]], dtype=np.float32)
    assert np.linalg.norm(pool(z)) == pytest.approx(1)


@pytest.mark.parametrize(
    ("state", "z"),
    [
        (np.zeros((1, 68)), np.zeros((1, 8))),
        (np.zeros(69), np.zeros(8)),
        (np.zeros((2, 69)), np.zeros((1, 8))),
        ([["x"] * 69], np.zeros((1, 8))),
        ([[1.0], [1.0, 2.0]], np.zeros((1, 8))),
    ],
    ids=["width", "rank", "rows", "text", "ragged"],
)
def test_wrong_input_error_names_the_graph_and_the_version(
    library: SkillLibrary, state: object, z: np.ndarray
) -> None:
    with pytest.raises(InvalidInput, match="policy of humanoid@1 needs"):
        library.act(state, z)  # type: ignore[arg-type]


def test_controller_opens_the_library_it_was_trained_on(
    store: Store, rng: np.random.Generator
) -> None:
    controller = Controller.open(store, "reach")
    state = rng.standard_normal((3, tiny.STATE))
    z = controller.decide(state, rng.standard_normal((3, tiny.GOAL)))
    assert z.shape == (3, tiny.LATENT)
    assert controller.library.version.ref == "humanoid@1"  # by digest, though @2 is latest
    assert controller.library.act(state, z).shape == (3, len(tiny.JOINTS))
    assert (controller.goal_width, controller.llc_steps) == (3, 6)


def test_controller_shares_a_library_only_with_its_parent(
    store: Store, library: SkillLibrary
) -> None:
    assert Controller.open(store, "reach", library=library).library is library
    with pytest.raises(WrongKind, match="parent of reach@1"):
        Controller.open(store, "reach", library=SkillLibrary.open(store, "humanoid@2"))


def test_controller_without_its_parent_is_refused(tmp_path: Path) -> None:
    store = Store(tmp_path)
    tiny.publish_tiny_controller(store, tiny.publish_tiny(store))
    (tmp_path / "skills/humanoid").rename(tmp_path / "gone")
    with pytest.raises(UnknownParent, match="there are: reach"):
        Controller.open(store, "reach")


def test_opening_the_wrong_kind_is_refused(store: Store) -> None:
    with pytest.raises(WrongKind):
        SkillLibrary.open(store, "reach")
    with pytest.raises(WrongKind):
        Controller.open(store, "humanoid")


def test_style_call_without_a_style_graph_is_refused(tmp_path: Path) -> None:
    store = Store(tmp_path)
    manifest = tiny.skills_manifest()
    files = tiny.skills_files()
    graphs = {name: graph for name, graph in manifest.graphs.items() if name != "style"}
    store.publish(
        manifest.model_copy(update={"graphs": graphs}),
        {k: v for k, v in files.items() if k != "style.onnx"},
    )
    with pytest.raises(UnknownGraph, match="encoder, policy"):
        SkillLibrary.open(store, "humanoid").style(np.zeros((1, 5, 69)))


def test_a_corrupt_graph_is_never_opened(tmp_path: Path) -> None:
    store = Store(tmp_path)
    version = tiny.publish_tiny(store)
    path = (
        tmp_path
        / "blobs/sha256"
        / version.manifest.files["style.onnx"].digest.removeprefix("sha256:")
    )
    path.chmod(0o644)
    path.write_bytes(tiny.style(7))  # a valid graph, but not the published one
    with pytest.raises(CorruptBlob):
        SkillLibrary.open(store, "humanoid")


@pytest.mark.parametrize("rows", [1, 5])
def test_io_binding_changes_no_bit_of_the_output(
    library: SkillLibrary, rng: np.random.Generator, rows: int
) -> None:
    """The input and output binding of a GPU session, run on the CPU."""
    widths = {"state": tiny.STATE, "z": tiny.LATENT}
    feed = {name: rng.standard_normal((rows, width), np.float32) for name, width in widths.items()}
    bound = replace(library.policy, device="cuda")
    np.testing.assert_array_equal(bound.run(**feed), library.policy.run(**feed))


def test_cuda_is_refused_where_there_is_none(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: ["CPUExecutionProvider"])
    with pytest.raises(UnusableGraph, match="no CUDA here"):
        SkillLibrary.open(store, "humanoid", device="cuda")


def test_runtime_imports_no_training_code() -> None:
    code = (
        "import sys, skills_store.store, skills_store.__main__;"
        "skills_store.__main__.make_parser();"
        "assert not {'onnxruntime', 'numpy'} & set(sys.modules);"
        "import skills_store.runtime.library;"
        "heavy = {'torch', 'onnx', 'mujoco', 'pretrain', 'hlc', 'serving', 'google.protobuf'};"
        "heavy &= set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run(
        [sys.executable, "-c", code], check=True, timeout=60, cwd=Path(__file__).parents[3]
    )
