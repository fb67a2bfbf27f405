"""Only for a lone client that asks again at once does the loop stay awake, and never for longer than a moment."""

import pytest

from serving import vigil
from serving.vigil import MOMENT, Vigil


class Turns:
    """An event loop, turned by hand."""

    def __init__(self):
        self.due = []

    def call_soon(self, call, *arguments):
        self.due.append((call, arguments))

    def turn(self):
        due, self.due = self.due, []
        for call, arguments in due:
            call(*arguments)
        return bool(due)


@pytest.fixture
def clock(monkeypatch):
    at = [100.0]
    monkeypatch.setattr(vigil, "perf_counter", lambda: at[0])
    return at


def served(kept, loop, client):
    kept.asked(client)
    kept.answered(client, loop)


def test_a_lone_prompt_client_is_looked_out_for_until_the_moment_is_over(clock):
    kept, loop = Vigil(), Turns()
    for _ in range(3):
        served(kept, loop, "a")
        clock[0] += MOMENT / 2
    assert loop.turn()
    assert loop.turn()
    clock[0] += MOMENT
    assert loop.turn()
    assert not loop.turn()


def test_it_ends_when_the_client_asks_and_is_kept_once(clock):
    kept, loop = Vigil(), Turns()
    for _ in range(5):
        served(kept, loop, "a")
        assert len(loop.due) <= 1
    assert loop.due
    kept.asked("a")
    loop.turn()
    assert not loop.turn()


@pytest.mark.parametrize("clients", [["a"], ["a", "b"]])
def test_slow_clients_and_several_cost_nothing(clock, clients):
    kept, loop = Vigil(), Turns()
    for i in range(10):
        served(kept, loop, clients[i % len(clients)])
        clock[0] += 0 if len(clients) > 1 else 1 / 30
    assert not loop.due
