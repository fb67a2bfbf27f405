"""One ONNX graph, ready to run. Made from verified bytes, never from a path, which could load files
beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import onnxruntime as ort
from numpy.typing import ArrayLike, NDArray

from skills_store.errors import InvalidInput, UnusableGraph
from skills_store.graph import Graph, Tensor

Array = NDArray[np.float32]
Device = Literal["cpu", "cuda"]


def run_bound(session: ort.InferenceSession, feed: dict[str, Array], output: str) -> Any:
    """`session.run` with IOBinding: one copy to the device, one back, and no other copies through
    the host.
    """
    binding = session.io_binding()
    for name, array in feed.items():
        binding.bind_cpu_input(name, array)
    binding.bind_output(output)
    session.run_with_iobinding(binding)
    return binding.copy_outputs_to_cpu()[0]


@dataclass(frozen=True)
class Net:
    """A pure function of named arrays. `run` may be called from many threads at once.

    Raises InvalidInput for arrays of other shapes, UnusableGraph where ONNX Runtime fails."""

    label: str
    graph: Graph
    session: ort.InferenceSession
    device: Device

    def run(self, **arrays: ArrayLike) -> Array:
        feed = {t.name: self._fit(t, arrays[t.name]) for t in self.graph.inputs}
        if len({len(array) for array in feed.values()}) > 1:
            rows = ", ".join(f"{name} {len(array)}" for name, array in feed.items())
            raise InvalidInput(f"{self.label} needs as many rows in each input, got {rows}")
        output = self.graph.outputs[0].name
        try:
            if self.device == "cuda":
                result = run_bound(self.session, feed, output)
            else:
                result = self.session.run([output], feed)[0]
        except Exception as error:  # ONNX Runtime's own exceptions share no base
            rows = len(next(iter(feed.values())))
            reason = " ".join(str(error).split())[:300]
            raise UnusableGraph(f"{self.label} cannot be run on {rows} rows: {reason}") from error
        return np.asarray(result, dtype=np.float32)

    def _fit(self, tensor: Tensor, values: ArrayLike) -> Array:
        try:
            array = np.ascontiguousarray(values, dtype=np.float32)
        except (ValueError, TypeError) as error:
            raise InvalidInput(f"{self.label} needs numbers for {tensor.name}: {error}") from error
        # Only the first axis is free.
        if array.ndim != len(tensor.shape) or array.shape[1:] != tensor.shape[1:]:
            declared = ", ".join(map(str, tensor.shape))
            raise InvalidInput(
                f"{self.label} needs {tensor.name} of shape ({declared}), got {array.shape}"
            )
        return array


def load_net(label: str, data: bytes, graph: Graph, threads: int, device: Device) -> Net:
    """`label` names this graph in messages."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # A spinning thread pool burns whole cores between the calls of a 30 Hz client.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    try:
        session = ort.InferenceSession(data, options, providers=_providers(device))
    except UnusableGraph:
        raise
    except Exception as error:  # ONNX Runtime's own exceptions share no base
        raise UnusableGraph(
            f"{label} cannot be run here: {' '.join(str(error).split())[:300]}"
        ) from error
    if device == "cuda" and "CUDAExecutionProvider" not in session.get_providers():
        raise UnusableGraph(f"{label} was to run on CUDA, but ONNX Runtime fell back to the CPU")
    declared = {t.name for t in (*graph.inputs, *graph.outputs)}
    names: set[Any] = {v.name for v in (*session.get_inputs(), *session.get_outputs())}
    if names != declared:
        raise UnusableGraph(
            f"{label} has tensors {sorted(names)}, but its manifest says {sorted(declared)}"
        )
    return Net(label, graph, session, device)


def _providers(device: Device) -> list[str]:
    if device == "cpu":
        return ["CPUExecutionProvider"]
    if "CUDAExecutionProvider" not in ort.get_available_providers():
        have = ", ".join(ort.get_available_providers())
        raise UnusableGraph(
            f"no CUDA here; ONNX Runtime offers: {have}. Install repertoire[gpu] in place of [cpu]"
        )
    ort.preload_dlls()  # the CUDA libraries that pip installed are on no library path
    return ["CUDAExecutionProvider", "CPUExecutionProvider"]
