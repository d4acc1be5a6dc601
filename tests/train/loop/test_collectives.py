"""What devices tell one another in a step of the learner: sums."""

import re

from tests.support.learner import tiny
from train.loop.compiled_step import make_step

_COLLECTIVES = re.compile(
    r" (all-reduce|all-gather|all-to-all|collective-permute|collective-broadcast|reduce-scatter)"
    r"(?:-start)?\("
)


def test_devices_sum_what_they_learn():
    """Gradients, losses, and the statistics of each normalisation on the way there and back: no
    weights, samples or moves are gathered, and no parameter has a sum of its own."""
    step = make_step(tiny.config())
    found = _COLLECTIVES.findall(step.learning.compiled.as_text())
    assert set(found) == {"all-reduce"} and len(found) <= 12
