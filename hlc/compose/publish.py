"""Publishes a state machine over controllers as a controller whose goal is its memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor

from hlc.box_goals import BoxGoals
from hlc.compose.behavior import Behavior, check_box, scene_of
from hlc.compose.machine_graph import MachineReference, join_controllers
from hlc.compose.memory import (
    BOX,
    DECISIONS,
    ENDED,
    INDEX,
    NextMemory,
    Stage,
    StageGoals,
    empty_memory,
    memory_layout,
    memory_limits,
)
from hlc.compose.state_machine import StateMachine
from hlc.evaluate import MACHINE, PARENT
from hlc.export import FILE
from hlc.measures import count_control_steps, count_decisions
from hlc.parent import Parent, SimulationConfig
from hlc.tasks.frames import place_from_heading
from hlc.tasks.scene import Scene
from hlc.tasks.task import goal_width
from pretrain.characters.rotations import heading_rotation
from pretrain.evaluation.intervals import interval, rate_interval, share_interval
from pretrain.motion.clip import CONTROL_RATE
from pretrain.publishing.graph_metadata import with_metadata
from pretrain.publishing.lineage import make_lineage
from pretrain.publishing.onnx_graph import check_parity, describe_graph, export
from pretrain.publishing.slices import to_slices
from pretrain.sim.env import CharacterEnv
from skills_store import graph as g
from skills_store import manifest as m
from skills_store.store import Store
from skills_store.version import Version

MEMORY_FILE = "memory.onnx"
Decision = Callable[[Tensor, Tensor], Tensor]
ROWS = 256  # on which the graphs are checked


@dataclass(frozen=True)
class BoundMachine:
    """A machine, the behaviors of its states, and their library."""

    machine: StateMachine
    behaviors: dict[str, Behavior]
    parent: Parent

    @property
    def scene(self) -> Scene:
        return scene_of(self.behaviors)

    def pinned(self) -> StateMachine:
        """The machine, with references to library and controllers that mean the same bytes in any
        store."""
        states = {
            name: behavior.state.model_copy(update={"controller": behavior.version.pinned})
            if behavior.version
            else behavior.state
            for name, behavior in self.behaviors.items()
        }
        skill = self.parent.version.pinned
        return self.machine.model_copy(update={"skill": skill, "states": states})

    @property
    def has_box(self) -> bool:
        return self.scene.box is not None

    @property
    def llc_steps(self) -> int:
        """Control steps per decision, the same for all controllers."""
        return next(iter(self.behaviors.values())).llc_steps


@dataclass(frozen=True)
class JoinedGraphs:
    """The two graphs of a machine, as functions of tensors and as files."""

    memory: Decision  # state (B, S), goal (B, M) -> the next memory (B, M)
    decide: Decision  # state (B, S), goal (B, M) -> z (B, D)
    graphs: dict[str, g.Graph]
    files: dict[str, bytes]


def publish_machine(
    name: str,
    bound: BoundMachine,
    store: Store,
    simulated: SimulationConfig,
    *,
    episodes: int,
    seed: int,
) -> Version:
    """Publish `bound` as the controller `name`, with a card of `episodes` plays.

    Raises ValueError for a planned state or an `on_fall`, which no graph can represent, for
    controllers of different rates, and for a box without a position."""
    rng = torch.Generator().manual_seed(seed)
    joined = join(bound, make_stages(bound), store, rng)
    card = measure_machine(joined, bound, simulated, episodes, rng)
    manifest = _build_manifest(name, bound, joined, card, seed)
    return store.publish(manifest, with_metadata(manifest, joined.files))


def make_stages(bound: BoundMachine) -> tuple[Stage, ...]:
    """The stages of the machine's states. Raises ValueError for a state that cannot be published:
    a planned task, one with `on_fall`, or controllers that decide at different rates."""
    rates = {name: x.llc_steps for name, x in bound.behaviors.items()}
    if len(set(rates.values())) > 1:
        raise ValueError(f"the controllers hold a decision for {rates} control steps, expected one")
    stages: list[Stage] = []
    for name, behavior in bound.behaviors.items():
        state = behavior.state
        if behavior.planner is not None:
            raise ValueError(f"{name}: a planned task cannot be published, expected a controller")
        if state.on_fall is not None:
            raise ValueError(
                f"{name}: on_fall cannot be published: contacts are no input of a graph"
            )
        decisions = None
        if state.seconds is not None:
            decisions = count_decisions(state.seconds, behavior.llc_steps)
        stages.append(Stage(state, behavior.task, behavior.named_goal()[0], decisions))
    return tuple(stages)


def join(
    bound: BoundMachine, stages: tuple[Stage, ...], store: Store, rng: Generator
) -> JoinedGraphs:
    """The graphs of the machine, checked on states of the library's clips."""
    memory = NextMemory(bound.machine, stages, bound.parent.character.skeleton)
    goals = StageGoals(stages)
    widths = [goal_width(stage.task) for stage in stages]
    versions = [x.version for x in bound.behaviors.values() if x.version]
    data = [store.read(x, x.manifest.graphs["controller"].file) for x in versions]
    reference = MachineReference(goals, widths, [x.decide for x in bound.behaviors.values()])
    rows = _draw_rows(memory, bound, rng)
    examples = {key: x[:3] for key, x in rows.items()}
    files = {
        FILE: join_controllers(export(goals, examples, "goals"), widths, data),
        MEMORY_FILE: export(memory, examples, "next_goal"),
    }
    skills = bound.parent.version.manifest
    inputs = (skills.graphs["policy"].input("state"), _declare_memory("goal", bound))
    z = skills.graphs["encoder"].outputs[0]
    parity = check_parity("controller", files[FILE], reference, rows, "z")
    memory_parity = check_parity("memory", files[MEMORY_FILE], memory, rows, "next_goal")
    following = _declare_memory("next_goal", bound)
    graphs = {
        "controller": describe_graph(FILE, inputs, z, parity),
        "memory": describe_graph(MEMORY_FILE, inputs, following, memory_parity),
    }
    return JoinedGraphs(memory, reference, graphs, files)


def _declare_memory(name: str, bound: BoundMachine) -> g.Tensor:
    """The manifest entry of a memory tensor (B, M)."""
    layout = memory_layout(bound.has_box)
    return g.Tensor(name=name, shape=("B", layout[-1].stop), slices=to_slices(layout))


def _draw_rows(memory: NextMemory, bound: BoundMachine, rng: Generator) -> dict[str, Tensor]:
    """States of the clips, with memories of machines that begin, run and have ended."""
    frames = bound.parent.clips.frames
    states = frames[torch.randint(len(frames), (ROWS,), generator=rng)]
    memories = memory(states, empty_memory(ROWS, bound.has_box))
    stages = len(bound.behaviors)
    memories[:, INDEX] = torch.randint(1, stages + 1, (ROWS, 1), generator=rng).float()
    memories[:, DECISIONS] = torch.randint(0, 100, (ROWS, 1), generator=rng).float()
    memories[: ROWS // 4, ENDED] = 1.0
    memories[: ROWS // 8] = empty_memory(ROWS // 8, bound.has_box)
    later = frames[torch.randint(len(frames), (ROWS,), generator=rng)]
    return {"state": later, "goal": memories}


def measure_machine(
    joined: JoinedGraphs,
    bound: BoundMachine,
    simulated: SimulationConfig,
    episodes: int,
    rng: Generator,
) -> dict[str, Any]:
    """Share of plays that reach `end` before a fall, their duration (s), and falls a minute, each
    with its 95 % interval under `detail`."""
    length = count_control_steps(bound.machine.seconds, bound.llc_steps)
    plays = SimulationConfig(length, simulated.engine, simulated.threads)
    env = bound.parent.simulation(episodes, bound.scene, plays, rng)
    env.reset(torch.arange(episodes))
    _place_boxes(bound, env)
    tasks = [behavior.task for behavior in bound.behaviors.values()]
    boxes = [BoxGoals(task, env.skeleton, env.backend) for task in tasks]
    may_lie = torch.tensor([task.scene().lying for task in tasks])
    standing = torch.ones(episodes, dtype=torch.bool)
    took = torch.full((episodes,), torch.nan)  # s, from the first step to the end of the machine
    minutes = 0.0
    memory = empty_memory(episodes, bound.has_box)
    z = torch.zeros(episodes, bound.parent.skills.latent_dim)
    for step in range(length + 1):
        state = env.state().flatten()
        if step % bound.llc_steps == 0:
            if env.backend.box is not None:
                memory[:, BOX] = env.backend.box.state()
            memory = joined.memory(state, memory)
            z = joined.decide(state, memory)
            arrived = standing & took.isnan() & (memory[:, ENDED][:, 0] > 0.5)
            took[arrived] = step / CONTROL_RATE
        if step == length:  # a decision's end: only transitions were left
            break
        targets = bound.parent.skills.act(state.numpy(), z.numpy())
        outcome = env.step(torch.from_numpy(targets))
        present = memory[:, INDEX][:, 0].round().long() - 1
        fell = env.touches() & ~may_lie[present]  # as `play_machine`
        failed = fell | outcome.broken | _illegal_contact(boxes, env, memory)
        standing = standing & ~failed
        minutes += float((standing & took.isnan()).sum()) / CONTROL_RATE / 60
    ended = ~took.isnan()
    detail = {
        "ended": share_interval(ended.float()),
        "seconds": interval(took[ended]),
        "falls_per_minute": rate_interval(int((~standing & ~ended).sum()), minutes, episodes),
    }
    means = {key: measure["mean"] for key, measure in detail.items()}
    return {"task": MACHINE, **means, "detail": detail}


def _illegal_contact(boxes: list[BoxGoals], env: CharacterEnv, memory: Tensor) -> Tensor:
    """Worlds in which a body that the present state forbids touched the box, (N,) bool; one of
    `boxes` per state."""
    illegal = torch.zeros(env.num_envs, dtype=torch.bool)
    if env.backend.box is None:
        return illegal
    for number, allowed in enumerate(boxes, 1):
        present = (memory[:, INDEX][:, 0] - number).abs() < 0.5
        illegal |= present & allowed.illegal_contact(env.state(), env.backend.box.state())
    return illegal


def _place_boxes(bound: BoundMachine, env: CharacterEnv) -> None:
    """Put the box at `machine.box`, relative to each character's heading."""
    check_box(bound.machine, bound.scene)
    if bound.scene.box is None or env.backend.box is None or bound.machine.box is None:
        return
    state = env.state()
    ahead, left = (torch.full((env.num_envs,), x) for x in bound.machine.box)
    height = torch.full((env.num_envs, 1), bound.scene.box.size[2] / 2)
    still = torch.zeros(env.num_envs, 6)
    place = place_from_heading(state, ahead, left)
    rows = torch.cat([place, height, heading_rotation(state.root_rot), still], -1)
    env.backend.box.place(torch.arange(env.num_envs), rows)


def _build_manifest(
    name: str, bound: BoundMachine, joined: JoinedGraphs, card: dict[str, Any], seed: int
) -> m.Manifest:
    """Body and licence are those of the skills; the lineage has the machine's file."""
    version = bound.parent.version
    skills = version.manifest
    config = {MACHINE: bound.pinned().model_dump(mode="json"), PARENT: skills.lineage.config}
    parent = m.Parent(name=version.name, version=version.number, digest=version.digest)
    limits = memory_limits(len(bound.machine.states))
    task = m.Task(name=MACHINE, llc_steps=bound.llc_steps, parent=parent, goal_limits=limits)
    return m.Manifest(
        kind="controller",
        name=name,
        character=skills.character,
        graphs=joined.graphs,
        latent=m.Latent(dim=skills.latent.dim),
        task=task,
        card=card,
        lineage=make_lineage(config, seed, skills.lineage.clips),
        licence=skills.licence,
    )
