"""The policy of a library in int8, published as its next version if it loses little against the
float one.

python -m pretrain.quantize humanoid@1

The encoder and the style graph are unchanged: no control loop runs them.

keys:
  store=          skill store; default $REPERTOIRE_STORE, else as in skills_store/places.py
  episodes=1024   episodes of each measurement
  seed=1234       seed of all random draws
  force=false     publish although a measure got worse
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

import numpy as np
import torch

from pretrain.cli import program
from pretrain.evaluation.card import Card
from pretrain.evaluation.conditions import COMMON, Conditions
from pretrain.evaluation.episodes import random_sampling, random_skill_episodes
from pretrain.evaluation.rollout import Act, random_skill_rollout
from pretrain.evaluation.setup import Setup
from pretrain.evaluation.skill_card import facts_of_run, skill_card
from pretrain.evaluation.table import table
from pretrain.motion.clip import control_steps
from pretrain.options import parse_flag, parse_int, parse_options
from pretrain.publishing.graph_metadata import with_metadata
from pretrain.publishing.int8 import quantize_to_int8
from pretrain.publishing.lineage import describe_clips, make_lineage
from pretrain.training_data import TrainingData, load_published_data
from skills_store.errors import StoreError
from skills_store.graph import Parity
from skills_store.manifest import Manifest
from skills_store.open import open_store
from skills_store.runtime.library import SkillLibrary
from skills_store.runtime.onnx_session import Array, load_net
from skills_store.store import Store
from skills_store.version import Version

WORLDS = 256  # for the ranges of each product's inputs
EVERY = 10  # steps
BATCH_SIZES = (1, 3, 64)
MAX_LOST = 0.01  # of each measure, relative to the float policy

Measures = dict[str, float]


class Refused(ValueError):
    """A library that cannot be quantized, or loses too much."""


@dataclass(frozen=True)
class Quantization:
    skills: SkillLibrary  # with the policy in int8
    policy: bytes
    parity: Parity  # with the float policy
    rows: int  # that it was calibrated on
    before: Measures
    after: Measures

    @property
    def lost(self) -> Measures:
        """Relative loss of each measure; below 0: a gain."""
        return {
            name: 1 - self.after[name] / value for name, value in self.before.items() if value > 0
        }


def quantize(
    store: Store, version: Version, data: TrainingData, conditions: Conditions
) -> Quantization:
    """Quantize the policy to int8, and measure both in the same episodes."""
    if "quantised" in version.manifest.lineage.config:
        raise Refused(
            f"{version.ref} is quantized already; give the float version that it was made of"
        )
    graph = version.manifest.graphs["policy"]
    threads = torch.get_num_threads()
    skills = SkillLibrary.open(store, version, intra_op_num_threads=threads)
    rows = collect_calibration_rows(skills, data, conditions)
    policy = quantize_to_int8(store.read(version, graph.file), rows)
    rounded = replace(skills, policy=load_net("the int8 policy", policy, graph, threads, "cpu"))
    policy_parity = parity(skills.act, rounded.act, rows)
    before, after = (measure(library, data, conditions) for library in (skills, rounded))
    return Quantization(rounded, policy, policy_parity, len(rows["state"]), before, after)


def collect_calibration_rows(
    skills: SkillLibrary, data: TrainingData, conditions: Conditions
) -> dict[str, Array]:
    """Inputs of the policy while standing, state (N, S) and z (N, D), in other episodes than those
    of the measures."""
    rng = torch.Generator().manual_seed(conditions.seed + 1)
    setup = Setup(skills, data, conditions)
    env = setup.make_env(WORLDS, conditions.seconds, rng)
    env.reset(torch.arange(WORLDS))
    rollout = random_skill_rollout(skills.act, env, random_sampling(setup), rng, setup.nearest_clip)
    steps = list(rollout)[::EVERY]
    state = torch.cat([step.state[step.standing] for step in steps])
    z = torch.cat([step.z[step.standing] for step in steps])
    return {"state": state.numpy(), "z": z.numpy()}


def parity(before: Act, after: Act, rows: dict[str, Array]) -> Parity:
    """Largest difference of the two policies, rad, over all rows in batches of each size."""
    state = rows["state"]
    z = rows["z"]
    expected = before(state, z)
    worst = 0.0
    for size in BATCH_SIZES:
        for i in range(0, len(state), size):
            actual = after(state[i : i + size], z[i : i + size])
            worst = max(worst, float(np.abs(actual - expected[i : i + size]).max()))
    return Parity(max_abs_error=worst, rows=len(state), batch_sizes=BATCH_SIZES)


def measure(skills: SkillLibrary, data: TrainingData, conditions: Conditions) -> Measures:
    """The measures that may not be lost, as on the card of the same conditions."""
    rng = torch.Generator().manual_seed(conditions.seed)
    setup = Setup(skills, data, conditions)
    episodes = random_skill_episodes(setup, rng)
    measures = {
        "survival": episodes.lengths / control_steps(conditions.seconds),
        "mean_cosine": episodes.agreement,
    }
    measures |= {} if episodes.style is None else {"style": episodes.style}
    return {name: float(values.mean()) for name, values in measures.items()}


def accept(ref: str, result: Quantization) -> None:
    """Refused where more than MAX_LOST is lost of any measure."""
    if worse := [
        f"{name} by {share:.1%}" for name, share in result.lost.items() if share > MAX_LOST
    ]:
        raise Refused(
            f"{ref} in int8 loses too much: {', '.join(worse)}, of at most {MAX_LOST:.0%} each; "
            "force=true publishes it nevertheless"
        )


def make_manifest(
    version: Version, data: TrainingData, result: Quantization, card: Card, seed: int
) -> Manifest:
    """The manifest of `version` with the int8 policy, its origin and its losses."""
    old = version.manifest
    policy = old.graphs["policy"].model_copy(update={"parity": result.parity})
    rounding = {"before": result.before, "after": result.after, "lost": result.lost}
    origin = {
        "of": version.pinned,
        "weights": "int8",
        "inputs": "uint8",
        "rows": result.rows,
        "seed": seed,
    }
    config = {**old.lineage.config, "quantised": origin}
    new = {
        "graphs": {**old.graphs, "policy": policy},
        "card": {**card, **facts_of_run(old.card), "quantised": rounding},
        "lineage": make_lineage(config, old.lineage.seed, describe_clips(data.dataset)),
        "files": {},
    }
    return old.model_copy(update=new)


def read_files(store: Store, version: Version, policy: bytes) -> dict[str, bytes]:
    """The files of `version`, with `policy` in place of its own."""
    files = {file: store.read(version, file) for file in version.manifest.files}
    return {**files, version.manifest.graphs["policy"].file: policy}


def run(store: Store, ref: str, conditions: Conditions, force: bool) -> Version:
    version = store.resolve(ref)
    if version.manifest.kind != "skills":
        raise Refused(f"{version.ref} is a {version.manifest.kind}, not a skill library")
    window = version.manifest.graphs["encoder"].input("window").shape[1]
    assert isinstance(window, int)
    data = load_published_data(version.manifest, window)
    result = quantize(store, version, data, conditions)
    for name, share in result.lost.items():
        print(
            f"{name}: {result.before[name]:.4f} in float, {result.after[name]:.4f} in int8, lost "
            f"{share:.2%}",
            flush=True,
        )
    if not force:
        accept(version.ref, result)
    card = skill_card(result.skills, data, conditions)
    print(
        table({f"{version.ref} in int8": {**card, **facts_of_run(version.manifest.card)}}),
        flush=True,
    )
    manifest = make_manifest(version, data, result, card, conditions.seed)
    files = with_metadata(manifest, read_files(store, version, result.policy))
    return store.publish(manifest, files)


def main(arguments: list[str]) -> int:
    defaults = {
        "store": "",
        "episodes": str(COMMON.episodes),
        "seed": str(COMMON.seed),
        "force": "false",
    }
    try:
        options = parse_options([a for a in arguments if "=" in a], defaults)
        refs = [a for a in arguments if "=" not in a]
        if len(refs) != 1:
            raise Refused(f"give one library, as humanoid@1; got {', '.join(refs) or 'none'}")
        conditions = Conditions(
            episodes=parse_int(options, "episodes", 2), seed=parse_int(options, "seed", 0)
        )
        published = run(
            open_store(options["store"]), refs[0], conditions, parse_flag(options, "force")
        )
    except (StoreError, ValueError, RuntimeError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"published {published.ref} ({published.digest[:19]})")
    return 0


if __name__ == "__main__":
    sys.exit(program(main, lambda: str(__doc__)))
