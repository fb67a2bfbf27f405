"""Quantizing a policy to int8: its error, independence of rows, and the limit on lost scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnxruntime
import pytest

from pretrain.evaluation.conditions import Conditions
from pretrain.evaluation.skill_card import facts_of_run
from pretrain.publishing.int8 import quantize_to_int8
from pretrain.quantize import Quantization, accept, main, make_manifest, quantize, read_files
from skills_store.admission import gate
from skills_store.runtime.library import SkillLibrary
from skills_store.store import BUNDLED, Store
from tests import tiny


def rows(count: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(count)
    return {
        name: rng.standard_normal((count, n)).astype(np.float32)
        for name, n in (("state", tiny.STATE), ("z", 8))
    }


def run_graph(graph: bytes, inputs: dict[str, np.ndarray]) -> np.ndarray:
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(["targets"], inputs)[0])


@pytest.fixture(scope="module")
def int8() -> bytes:
    return quantize_to_int8(tiny.policy(), rows(512))


def test_int8_graph_approximates_float_and_passes_the_gate(int8):
    inputs = rows(64)
    expected = run_graph(tiny.policy(), inputs)
    error = np.abs(run_graph(int8, inputs) - expected)
    assert 0 < error.mean() < 0.02 * expected.std()
    gate.admit("policy", int8, tiny.POLICY)


def test_rows_are_independent_of_outlier_rows(int8):
    inputs = rows(64)
    with_outliers = {name: np.concatenate([x, 1e6 * x]) for name, x in inputs.items()}
    np.testing.assert_array_equal(run_graph(int8, with_outliers)[:64], run_graph(int8, inputs))
    alone = [
        run_graph(int8, {name: x[i : i + 1] for name, x in inputs.items()})[0] for i in range(64)
    ]
    np.testing.assert_array_equal(alone, run_graph(int8, inputs))


def test_the_same_rows_give_the_same_bytes(int8):
    assert quantize_to_int8(tiny.policy(), rows(512)) == int8


def test_quantizing_a_graph_with_one_matmul_is_refused():
    with pytest.raises(ValueError, match="1 matrix products"):
        quantize_to_int8(
            tiny.encoder(), {"window": np.zeros((4, tiny.WINDOW, tiny.STATE), np.float32)}
        )


@pytest.fixture(scope="module")
def result(training_data) -> Quantization:
    store = Store(BUNDLED)
    return quantize(
        store, store.resolve("humanoid@1"), training_data, Conditions(episodes=8, seconds=1.0)
    )


def test_quantized_manifest_records_source_and_lost_measures(result, training_data, tmp_path):
    original = Store(BUNDLED).resolve("humanoid@1")
    bundled = Store(BUNDLED)
    store = Store(tmp_path)
    version = store.publish(
        make_manifest(original, training_data, result, {"survival": 0.9}, 1),
        read_files(bundled, original, result.policy),
    )
    manifest = version.manifest
    before = original.manifest
    rounding = manifest.card["quantised"]
    assert manifest.card == {"survival": 0.9, **facts_of_run(before.card), "quantised": rounding}
    assert rounding["lost"].keys() == {"survival", "mean_cosine", "style"}
    assert manifest.lineage.config["quantised"]["of"] == original.pinned
    assert (
        manifest.lineage.config.items() > before.lineage.config.items()
    )  # its noise and its clips are the same
    assert 1e-5 < manifest.graphs["policy"].parity.max_abs_error < 0.2
    assert manifest.graphs["encoder"] == before.graphs["encoder"]
    assert manifest.files["policy.onnx"].size < 0.5 * before.files["policy.onnx"].size
    inputs = np.eye(1, 69, 3), np.ones((1, before.latent.dim))
    np.testing.assert_array_equal(
        SkillLibrary.open(store, version).act(*inputs), result.skills.act(*inputs)
    )
    with pytest.raises(ValueError, match="humanoid@1 is quantized already"):
        quantize(store, version, training_data, Conditions())


def test_quantization_that_loses_over_one_percent_is_refused(result):
    accept(
        "humanoid@1",
        replace(
            result, before={"survival": 1.0, "style": 0.5}, after={"survival": 0.991, "style": 0.6}
        ),
    )
    with pytest.raises(
        ValueError, match=r"humanoid@1 in int8 loses too much: style by 1\.2%, of at most 1% each"
    ):
        accept(
            "humanoid@1",
            replace(
                result, before={"survival": 1, "style": 0.5}, after={"survival": 1, "style": 0.494}
            ),
        )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "give one library, as humanoid@1; got none"),
        (["humanoid@1", "humanoid@2"], "got humanoid@1, humanoid@2"),
        (["nosuch@1"], "humanoid"),
        (["humanoid@1", "episodes=1"], "at least 2"),
        (["humanoid@1", "forse=true"], "there are: force"),
    ],
)
def test_wrong_argument_is_a_one_line_error(arguments, expected, capsys):
    assert main([*arguments, f"store={BUNDLED}"]) == 2
    error = capsys.readouterr().err
    assert expected in error
    assert error.count("\n") == 1
