"""The hours of a million games against sums done by hand.

The tiny run has four boards of eight plies, two simulations and the root, and two steps of eight
samples: a million games of eight plies are six million simulations and half a million steps.
"""

import pytest

from tests.support.learner import tiny
from train.bench import arithmetic
from train.bench.arithmetic import Limits
from train.network import NetworkConfig, census
from wallgo_jax import planes as planes_lib

FAST = Limits(1e12, 1e12)
CYCLES = {"turn_ms_low": 1.0, "turn_ms": 2.0}, {"turn_ms_low": 3.0, "turn_ms": 4.0}
KERNELS = (
    {"turn_ms_low": None, "turn_ms": None, "turn_kernels": 100.0, "turn_reads": 2.0},
    {"turn_ms_low": None, "turn_ms": None, "turn_kernels": 200.0, "turn_reads": 1.0},
)


def predicted(device, figures, *words: str):
    games = arithmetic.million_games(tiny.config(*words), device, *figures, plies_a_game=8)
    assert games is not None
    return games


def test_hours_on_a_tpu_are_those_of_its_cycles():
    games = predicted("v6e", CYCLES)
    assert games.hours == pytest.approx((7_500 / 3600, 14_000 / 3600))
    assert games.simulation_ms == (1.0, 2.0) and games.step_ms == (3.0, 4.0)


def test_work_is_counted_by_hand():
    games = predicted("v6e", CYCLES)
    parts = census(tiny.config().network, planes_lib.channels("B", 2), size=3)
    adds = {part.name: part.multiply_adds for part in parts}
    # Two convolutions of eight channels, three by three, on nine cells.
    assert adds["block 1 R"] == 2 * 9 * 9 * 8 * 8
    read = sum(count for name, count in adds.items() if name != "ownership")
    assert games.operations_an_evaluation == 2 * read
    assert games.selfplay_operations == 6e6 * 4 * 2 * read
    learned = 3 * sum(adds.values()) - adds["stem"]
    assert games.learner_operations == 5e5 * 8 * 2 * learned
    assert games.parameters == sum(part.parameters for part in parts)


def test_on_a_gpu_starts_of_kernels_and_reads_come_before_the_work(monkeypatch):
    """Its work is a thousandth of a microsecond here: of a simulation 220 to 460 µs remain."""
    monkeypatch.setitem(arithmetic.LIMITS, "h100", FAST._replace(operations=1e30, bandwidth=1e30))
    games = predicted("h100", KERNELS)
    assert games.simulation_ms == pytest.approx((0.220, 0.460))
    assert games.step_ms == pytest.approx((0.410, 0.830))
    assert games.hours == pytest.approx((1_525 / 3600, 3_175 / 3600))


@pytest.mark.parametrize("slow", ["operations", "bandwidth"])
def test_on_a_gpu_products_or_memory_decide(monkeypatch, slow):
    """Half of the products, or four fifths of the memory's speed, at the low end."""
    limits = FAST._replace(**{"operations": 1e30, "bandwidth": 1e30} | {slow: 1e6})
    monkeypatch.setitem(arithmetic.LIMITS, "h100", limits)
    games = predicted("h100", KERNELS)
    parts = census(tiny.config().network, planes_lib.channels("B", 2), size=3)
    if slow == "operations":
        work, shares = 4 * games.operations_an_evaluation, (0.5, 0.2)
    else:  # bfloat16: two bytes a number, those of the weights once
        numbers = sum(4 * part.numbers + part.parameters for part in parts)
        work, shares = 2 * numbers, (0.8, 0.5)
    low, high = (1e3 * work / (share * 1e6) for share in shares)
    assert games.simulation_ms == pytest.approx((low + 0.220, high + 0.460))


def test_cheap_searches_evaluate_less():
    words = ("--selfplay.full_search_prob", "0.25", "--selfplay.cheap_simulations", "1")
    games = predicted("v5e", CYCLES, *words)
    assert games.evaluations_a_position == pytest.approx(0.25 * 3 + 0.75 * 2)


@pytest.mark.parametrize(
    ("device", "figures", "words"),
    [
        ("v5e", CYCLES, ("--search.rounds", "true")),
        ("v5e", CYCLES, ("--selfplay.opponent", "random")),
        ("a100", KERNELS, ()),
    ],
)
def test_no_hours_where_a_turn_is_no_simulation_of_all_boards_or_a_gpu_is_unknown(
    device, figures, words
):
    assert arithmetic.million_games(tiny.config(*words), device, *figures, plies_a_game=8) is None


def test_convolutions_read_and_write_the_features():
    config = NetworkConfig(blocks="RT", width=8, heads=2)
    parts = {x.name: x.numbers for x in census(config, planes_lib.channels("B", 2), size=3)}
    assert parts["block 1 R"] == 2 * (2 * 9 * 8)
    # Attention multiplies queries by keys and weights by values: both sides are no weights.
    attention = 2 * (9 * 8 + 9 * 8 + 2 * 9 * 9)
    assert parts["block 2 T"] > attention + 9 * 8 * 4
