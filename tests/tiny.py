"""The smallest skill library and controller that the store admits: real graphs, random weights."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from skills_store.graph import Graph, Parity, Slice, Tensor
from skills_store.manifest import Character, Latent, Lineage, Manifest, Parent, Task
from skills_store.store import Store, Version

LATENT = 8
WINDOW = 5
GOAL = 3
OPSET = 20
HINGES = ("right_elbow", "left_elbow", "right_knee", "left_knee")
BALLS = (
    "abdomen",
    "neck",
    "right_shoulder",
    "left_shoulder",
    "right_hip",
    "left_hip",
    "right_ankle",
    "left_ankle",
)
JOINTS = (*(f"{ball}_{axis}" for ball in BALLS for axis in "xzy"), *HINGES)
SLICES = (
    Slice(name="root_pos", start=0, stop=3, unit="m", frame="world"),
    Slice(name="root_rot", start=3, stop=7, unit="wxyz", frame="world"),
    Slice(name="root_vel", start=7, stop=10, unit="m/s", frame="world"),
    Slice(name="root_ang_vel", start=10, stop=13, unit="rad/s", frame="world"),
    Slice(name="joint_pos", start=13, stop=13 + len(JOINTS), unit="rad", frame="joint"),
    Slice(
        name="joint_vel",
        start=13 + len(JOINTS),
        stop=13 + 2 * len(JOINTS),
        unit="rad/s",
        frame="joint",
    ),
)
STATE = SLICES[-1].stop

Nodes = list[onnx.NodeProto]
Weights = dict[str, np.ndarray]


def model(nodes: Nodes, weights: Weights, graph: Graph) -> bytes:
    """An ONNX file with exactly the interface that `graph` declares."""

    def values(tensors: tuple[Tensor, ...]) -> list[onnx.ValueInfoProto]:
        return [helper.make_tensor_value_info(t.name, TensorProto.FLOAT, t.shape) for t in tensors]

    body = helper.make_graph(
        nodes,
        "tiny",
        values(graph.inputs),
        values(graph.outputs),
        [numpy_helper.from_array(np.asarray(w), name) for name, w in weights.items()],
    )
    made = helper.make_model(body, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    return made.SerializeToString(deterministic=True)


def graph(
    file: str, inputs: dict[str, tuple[int, ...]], outputs: dict[str, tuple[int, ...]]
) -> Graph:
    def tensors(shapes: dict[str, tuple[int, ...]]) -> tuple[Tensor, ...]:
        return tuple(
            Tensor(
                name=name, shape=("B", *shape), slices=SLICES if name in ("state", "window") else ()
            )
            for name, shape in shapes.items()
        )

    parity = Parity(max_abs_error=0.0, rows=1, batch_sizes=(1,))
    return Graph(
        file=file, opset=OPSET, inputs=tensors(inputs), outputs=tensors(outputs), parity=parity
    )


POLICY = graph("policy.onnx", {"state": (STATE,), "z": (LATENT,)}, {"targets": (len(JOINTS),)})


def windowed(file: str, window: int, outputs: dict[str, tuple[int, ...]]) -> Graph:
    return graph(file, {"window": (window, STATE)}, outputs)


ENCODER = windowed("encoder.onnx", WINDOW, {"z": (LATENT,)})
STYLE = windowed("style.onnx", WINDOW, {"style": ()})


def controlling(goal: int) -> Graph:
    return graph("controller.onnx", {"state": (STATE,), "goal": (goal,)}, {"z": (LATENT,)})


CONTROLLER = controlling(GOAL)


def linear(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    return (rng.standard_normal((rows, columns)) / np.sqrt(rows)).astype(np.float32)


def policy(seed: int = 0) -> bytes:
    rng = np.random.default_rng(seed)
    nodes = [
        helper.make_node("Concat", ["state", "z"], ["obs"], axis=1),
        helper.make_node("Gemm", ["obs", "w0"], ["h"]),
        helper.make_node("Tanh", ["h"], ["a"]),
        helper.make_node("Gemm", ["a", "w1"], ["targets"]),
    ]
    return model(
        nodes, {"w0": linear(rng, STATE + LATENT, 16), "w1": linear(rng, 16, len(JOINTS))}, POLICY
    )


def encoder(seed: int = 0, window: int = WINDOW) -> bytes:
    rng = np.random.default_rng(seed)
    nodes = [
        helper.make_node("Flatten", ["window"], ["flat"], axis=1),
        helper.make_node("Gemm", ["flat", "w"], ["raw"]),
        *normalized("raw"),
    ]
    declared = windowed(ENCODER.file, window, {"z": (LATENT,)})
    return model(nodes, {"w": linear(rng, window * STATE, LATENT), **AXIS}, declared)


def style(seed: int = 0, window: int = WINDOW) -> bytes:
    rng = np.random.default_rng(seed)
    nodes = [
        helper.make_node("Flatten", ["window"], ["flat"], axis=1),
        helper.make_node("Gemm", ["flat", "w"], ["logit"]),
        helper.make_node("Squeeze", ["logit", "axis"], ["score"]),
        helper.make_node("Sigmoid", ["score"], ["style"]),
    ]
    declared = windowed(STYLE.file, window, {"style": ()})
    return model(nodes, {"w": linear(rng, window * STATE, 1), **AXIS}, declared)


def controller(seed: int = 0, goal: int = GOAL) -> bytes:
    rng = np.random.default_rng(seed)
    nodes = [
        helper.make_node("Concat", ["state", "goal"], ["obs"], axis=1),
        helper.make_node("Gemm", ["obs", "w"], ["raw"]),
        *normalized("raw"),
    ]
    weights = {"w": linear(rng, STATE + goal, LATENT), **AXIS}
    return model(nodes, weights, controlling(goal))


MEMORY = graph("memory.onnx", {"state": (STATE,), "goal": (GOAL,)}, {"next_goal": (GOAL,)})


def memory() -> bytes:
    """The graph of a state machine that adds a tenth of the first state values to its memory,
    except to the index of its state, which is a whole number."""
    mix = np.zeros((STATE + GOAL, GOAL), np.float32)
    mix[1:GOAL, 1:] = 0.1 * np.eye(GOAL - 1)
    mix[STATE:] = np.eye(GOAL)
    nodes = [
        helper.make_node("Concat", ["state", "goal"], ["both"], axis=1),
        helper.make_node("Gemm", ["both", "mix"], ["next_goal"]),
    ]
    return model(nodes, {"mix": mix}, MEMORY)


AXIS = {"axis": np.array([1], dtype=np.int64)}


def normalized(name: str) -> Nodes:
    return [
        helper.make_node("ReduceL2", [name, "axis"], ["norm"], keepdims=1),
        helper.make_node("Div", [name, "norm"], ["z"]),
    ]


def character() -> Character:
    n = len(JOINTS)
    return Character(
        name="humanoid",
        skeleton={"placeholder": True, "joints": list(JOINTS)},
        joints=JOINTS,
        kp=(100.0,) * n,
        kd=(10.0,) * n,
        damping=(2.0,) * n,
        torque_limit=(100.0,) * n,
        control_dt=1 / 30,
        mjcf="<mujoco/>",
    )


def skills_manifest(name: str = "humanoid") -> Manifest:
    return Manifest(
        kind="skills",
        name=name,
        character=character(),
        graphs={"policy": POLICY, "encoder": ENCODER, "style": STYLE},
        latent=Latent(dim=LATENT, clips={"walk": (1.0, *[0.0] * (LATENT - 1))}),
        card={"survival": 0.5, "coverage": 0.25, "diversity": {"ratio": 1.0, "repeat": 0.0}},
        lineage=Lineage(config={"latent_dim": LATENT}, seed=0, packages={"onnx": onnx.__version__}),
        licence="CC0-1.0",
    )


def skills_files(seed: int = 0) -> dict[str, bytes]:
    return {"policy.onnx": policy(seed), "encoder.onnx": encoder(seed), "style.onnx": style(seed)}


def controller_manifest(parent: Version, name: str = "reach") -> Manifest:
    bound = Parent(name=parent.name, version=parent.number, digest=parent.digest)
    return Manifest(
        kind="controller",
        name=name,
        character=character(),
        graphs={"controller": CONTROLLER},
        latent=Latent(dim=LATENT),
        task=Task(name="reach", llc_steps=6, parent=bound),
        lineage=Lineage(config={"task": "reach"}, seed=0),
        licence="CC0-1.0",
    )


def publish_tiny(store: Store, name: str = "humanoid", seed: int = 0) -> Version:
    """Another seed gives other weights, so another digest and other outputs."""
    return store.publish(skills_manifest(name), skills_files(seed))


def publish_tiny_controller(
    store: Store, parent: Version, name: str = "reach", seed: int = 0
) -> Version:
    return store.publish(controller_manifest(parent, name), {"controller.onnx": controller(seed)})


def machine_manifest(parent: Version, name: str = "errand") -> Manifest:
    """Its goal has the slices with which the memory of every state machine begins."""
    slices = tuple(
        Slice(name=name, start=i, stop=i + 1, unit="1", frame="scalar")
        for i, name in enumerate(("state_index", "decisions", "ended"))
    )
    goal = CONTROLLER.input("goal").model_copy(update={"slices": slices})
    decision = CONTROLLER.model_copy(update={"inputs": (CONTROLLER.input("state"), goal)})
    manifest = controller_manifest(parent, name)
    return manifest.model_copy(update={"graphs": {"controller": decision, "memory": MEMORY}})


def publish_tiny_machine(store: Store, parent: Version, name: str = "errand") -> Version:
    files = {"controller.onnx": controller(), "memory.onnx": memory()}
    return store.publish(machine_manifest(parent, name), files)
