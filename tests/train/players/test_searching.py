"""Seconds become simulations by timing searches on one board."""

import pytest

from tests.support.learner import tiny
from train.players.searching import PROBE, simulations_in
from train.search.config import MAX_SIMULATIONS


class Machine:
    """A clock that searches of known cost move on; the first call of each compiles."""

    def __init__(self, *, root: float, simulation: float) -> None:
        self.time, self.root, self.simulation = 0.0, root, simulation
        self.asked: list[int] = []

    def clock(self) -> float:
        return self.time

    def make_act(self, simulations: int):
        self.asked.append(simulations)
        calls = []

        def act(variables, states, key):
            assert states.position.ply.shape == (1,)
            self.time += (0 if calls else 100) + self.root + simulations * self.simulation
            calls.append(1)
            return states.position.ply

        return act


def simulations(seconds: float, machine: Machine) -> int:
    return simulations_in(seconds, machine.make_act, (), tiny.RULES, clock=machine.clock)


@pytest.mark.parametrize(
    ("seconds", "root", "expected", "searches"),
    [
        (0.0641, 0.0, 64, 1),  # near the probe: one search is enough
        (0.1005, 0.0, 100, 1),
        (1.0005, 0.0, 1000, 2),
        (1.2999, 0.0, 1200, 2),  # 1299 to two digits
        (0.0121, 0.008, 4, 2),  # the root costs as much as eight simulations
        (0.0001, 0.0, 1, 2),  # never less
        (0.0085, 0.008, 1, 2),
        (600, 0.0, MAX_SIMULATIONS, 2),
    ],
)
def test_seconds_become_simulations(seconds, root, expected, searches):
    machine = Machine(root=root, simulation=0.001)
    assert simulations(seconds, machine) == expected
    assert machine.asked[0] == PROBE
    assert len(machine.asked) == searches
