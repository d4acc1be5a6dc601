"""What devices tell one another: nothing in self-play, sums in a step of the learner."""

import re
from collections import Counter

import pytest

from tests.support.learner import tiny
from train.programs.assembly import make_parts, make_programs
from train.runtime.devices import all_devices

_COLLECTIVES = re.compile(
    r" (all-reduce|all-gather|all-to-all|collective-permute|collective-broadcast|reduce-scatter)"
    r"(?:-start)?\("
)


def collectives_of(compiled) -> Counter[str]:
    """The collective operations of a compiled program, by kind."""
    return Counter(_COLLECTIVES.findall(compiled.as_text()))


@pytest.mark.slow
def test_devices_play_alone_and_sum_what_they_learn():
    devices = all_devices(2)
    selfplay = make_parts(tiny.config(), devices).selfplay().lower().compile()
    assert collectives_of(selfplay) == {}
    step = collectives_of(make_programs(tiny.config(), devices).learn_program().compiled)
    # Gradients, losses, and the statistics of each normalisation on the way there and back: no
    # weights, samples or moves are gathered, and no parameter has a sum of its own.
    assert set(step) == {"all-reduce"} and step["all-reduce"] <= 12
