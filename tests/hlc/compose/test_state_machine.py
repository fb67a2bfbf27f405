"""Files of state machines are validated before anything is simulated."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlc.compose.state_machine import load_machine
from pretrain.overrides import ConfigError

EXAMPLES = Path(__file__).parents[3] / "examples"
STAND = "states: {a: {task: stand, goal: {place: [0, 0]}, %s}}"


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: file.stem)
def test_the_examples_are_state_machines(file: Path) -> None:
    machine = load_machine(file)
    assert machine.first == next(iter(machine.states))
    reachable = {machine.first}
    for _ in machine.states:
        following = [machine.states[name].transitions() for name in reachable if name != "end"]
        reachable |= {name for names in following for name in names}
    assert reachable == {*machine.states, "end"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("states: {}", "states: Dictionary should have at least 1 item"),
        ("states: {a: {}}", "states.a: expected either controller or task"),
        ("states: {a: {task: stand, controller: reach@1}}", "either controller or task"),
        ("states: {a: {task: fly}}", "no task 'fly'; there are: reach"),
        (STAND % "on_success: b", "a: no state 'b'; there are: a, end"),
        (STAND % "seconds: 1", "seconds and on_time go together"),
        (STAND % "on_time: end", "seconds and on_time go together"),
        (STAND % "seconds: 0.01, on_time: a", "states.a.seconds"),
        (STAND % "frame: root", "states.a.frame"),
        (STAND % "speed: 1", "states.a.speed"),
        ("states: {end: {task: stand}}", "'end' ends the machine"),
        (
            "states: {a: {task: stand, goal: {place: [.nan, 0]}}}",
            "states.a.goal.place.0: Input should be a finite number, got nan",
        ),
        ("states: [", "is no YAML"),
        ("", "got None"),
        ("states: !!python/object:builtins.object {}", "is no YAML"),
    ],
)
def test_invalid_machine_file_is_a_one_line_error(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "machine.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as found:
        load_machine(file)
    assert message in str(found.value)
    assert len(str(found.value).splitlines()) == 1


def test_oversized_machine_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "machine.yaml"
    file.write_bytes(b"#" * (2**20 + 1))
    with pytest.raises(ConfigError, match="more than 1048576 bytes"):
        load_machine(file)
