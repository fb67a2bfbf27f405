"""The graph of a published state machine: the graphs of its controllers, joined by the goals of the
stages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import torch
from onnx import GraphProto, ModelProto, NodeProto, compose, helper, numpy_helper
from torch import Tensor, nn

from hlc.compose.memory import StageGoals
from hlc.rollouts import Decide

GOALS = "goals"


class MachineReference(nn.Module):
    """Reference for `join_controllers`: runs each controller's own graph."""

    def __init__(self, goals: StageGoals, widths: Sequence[int], controllers: Sequence[Decide]):
        super().__init__()
        self._goals = goals
        self._widths = list(widths)
        self._controllers = controllers

    def forward(self, state: Tensor, goal: Tensor) -> Tensor:
        joined = self._goals(state, goal)
        *goals, present = joined.split([*self._widths, len(self._widths)], -1)
        decisions = [
            torch.from_numpy(decide(state.numpy(), x.contiguous().numpy()))
            for decide, x in zip(self._controllers, goals, strict=True)
        ]
        return sum(
            (present[:, i : i + 1] * z for i, z in enumerate(decisions)),
            torch.zeros_like(decisions[0]),
        )


def join_controllers(goals: bytes, widths: Sequence[int], controllers: Sequence[bytes]) -> bytes:
    """Join `goals`, the exported `StageGoals` with goals of `widths`, and one controller graph per
    stage to a graph state (B, S), goal (B, M) -> z (B, D).

    Raises ValueError for controllers of another opset."""
    model = onnx.load_from_string(goals)
    graph = model.graph
    weighted: list[str] = []
    start = 0
    for i, (width, data) in enumerate(zip(widths, controllers, strict=True)):
        controller = _prefix(data, f"stage{i}_")
        _check_opset(model, controller)
        _slice(graph, f"stage{i}_goal", start, start + width)
        _slice(graph, f"stage{i}_present", sum(widths) + i, sum(widths) + i + 1)
        start += width
        graph.initializer.extend(controller.graph.initializer)
        graph.node.extend(controller.graph.node)
        z = controller.graph.output[0].name
        graph.node.append(_node("Mul", [z, f"stage{i}_present"], f"stage{i}_share"))
        weighted.append(f"stage{i}_share")
    graph.node.append(_node("Sum", weighted, "z"))
    interface = onnx.load_from_string(controllers[0]).graph
    _replace(graph.input, "state", interface.input)  # unused by the goals
    _replace(graph.output, GOALS, interface.output)
    del graph.value_info[:]  # intermediate shapes, optional
    return model.SerializeToString(deterministic=True)


def _prefix(data: bytes, prefix: str) -> ModelProto:
    """A controller's model whose names begin with `prefix`, except for its input `state`."""
    model = compose.add_prefix(onnx.load_from_string(data), prefix)
    for node in model.graph.node:
        for i, name in enumerate(node.input):
            if name == f"{prefix}state":
                node.input[i] = "state"
    return model


def _replace(values: Any, name: str, others: Any) -> None:
    """Replace `name` by the one of `others` that is not called `goal`."""
    (new,) = (value for value in others if value.name != "goal")
    index = [value.name for value in values].index(name)
    values[index].CopyFrom(new)


def _check_opset(model: ModelProto, controller: ModelProto) -> None:
    expected = {x.domain: x.version for x in model.opset_import}
    opsets = {x.domain: x.version for x in controller.opset_import}
    if opsets != expected:
        raise ValueError(f"a controller has the opsets {opsets}, expected {expected}")


def _slice(graph: GraphProto, name: str, start: int, stop: int) -> None:
    """Columns `start` to `stop` of the goals, under `name`."""
    bounds = {"start": start, "stop": stop, "axis": 1}
    for key, value in bounds.items():
        array = np.array([value], np.int64)
        graph.initializer.append(numpy_helper.from_array(array, f"{name}_{key}"))
    inputs = [GOALS, *(f"{name}_{key}" for key in bounds)]
    graph.node.append(_node("Slice", inputs, name))


def _node(operator: str, inputs: list[str], output: str) -> NodeProto:
    return helper.make_node(operator, inputs, [output], name=output)
