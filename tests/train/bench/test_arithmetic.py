"""The arithmetic of a run against sums done by hand."""

import dataclasses
import functools
import json

import jax
import jax.numpy as jnp
import pytest

from tests.support.learner import tiny
from train.bench import arithmetic
from train.bench.arithmetic import Limits, Stage
from train.cli.bench import Bench
from train.network import NetworkConfig, census
from train.runtime.errors import UsageError
from wallgo_jax import planes as planes_lib
from wallgo_jax.board.loops import loop_until_done

FAST = Limits("fast", 100.0, 10.0, 50.0, 4.0, 2.0, 8, "nobody")


@functools.cache
def found(*words: str):
    return arithmetic.arithmetic_of(tiny.config(*words), plies_a_game=8)


def stage(arithmetic_found, name: str) -> Stage:
    (one,) = (each for each in arithmetic_found.stages if each.name == name)
    return one


def test_an_iteration_is_counted_by_hand():
    """Four boards of eight plies, two simulations and the root; two steps of eight samples."""
    one = found()
    assert (one.positions, one.games) == (32, 4.0)
    assert one.evaluations == 32 * 3
    parts = census(tiny.config().network, planes_lib.channels("B", 2), size=3)
    adds = {part.name: part.multiply_adds for part in parts}
    assert one.parameters == sum(part.parameters for part in parts)
    # Two convolutions of eight channels, three by three, on nine cells.
    assert adds["block 1 R"] == 2 * 9 * 9 * 8 * 8
    read = sum(count for name, count in adds.items() if name != "ownership")
    assert stage(one, "network").products == 2 * 96 * read
    learned = 3 * sum(adds.values()) - adds["stem"]
    assert stage(one, "learner").products == 2 * 16 * learned
    assert stage(one, "optimizer").bytes == 2 * 9 * 4 * one.parameters


def test_cheap_searches_evaluate_less():
    words = ("--selfplay.full_search_prob", "0.25", "--selfplay.cheap_simulations", "1")
    assert found(*words).evaluations == pytest.approx(32 * (0.25 * 3 + 0.75 * 2))


def test_convolutions_read_and_write_the_features():
    config = NetworkConfig(blocks="RT", width=8, heads=2)
    parts = {x.name: x.numbers for x in census(config, planes_lib.channels("B", 2), size=3)}
    assert parts["block 1 R"] == 2 * (2 * 9 * 8)
    # Attention multiplies queries by keys and weights by values: both sides are no weights.
    attention = 2 * (9 * 8 + 9 * 8 + 2 * 9 * 9)
    assert parts["block 2 T"] > attention + 9 * 8 * 4


def test_numbers_of_a_program_are_those_of_the_platform():
    """Twelve turns in pairs of an addition and a product on an accelerator; one on a CPU."""

    def f(x):
        y = loop_until_done(lambda c: (c < 9.0).all(), lambda c: (c + 1.0) * 2.0, x, most=12)
        return -y

    program = jax.make_jaxpr(f)(jnp.zeros(3)).jaxpr
    # One more is the number of the platform.
    assert arithmetic.count_numbers(program) == 12 * 6 + 3 + 1


@pytest.mark.parametrize(
    ("work", "seconds", "limit"),
    [
        (Stage("x", 200.0, 0, 0, ""), 10.0, "products"),
        (Stage("x", 200.0, 110.0, 0, ""), 11.0, "words"),
        (Stage("x", 200.0, 110.0, 60.0, ""), 12.0, "memory"),
    ],
)
def test_the_slowest_limit_decides(work, seconds, limit):
    assert arithmetic.time_of(work, FAST) == pytest.approx((seconds, limit))


def test_sums_of_gradients_cost_more_beyond_a_node():
    one = found()._replace(parameters=8)
    shares = [arithmetic.collective_seconds(one, FAST, count) for count in (1, 2, 16)]
    latency = 1e-5
    assert shares == pytest.approx(
        [0.0, 2 * (2 * 0.5 * 32 / 4 + 2 * latency), 2 * (2 * 15 / 16 * 32 / 2 + 8 * latency)]
    )


def test_devices_share_the_work_but_not_the_sums():
    one = found()
    alone, many = (arithmetic.hours_for_a_million(one, FAST, count) for count in (1, 8))
    assert alone.collectives == 0.0
    assert many.hours * (1 - many.collectives) == pytest.approx(alone.hours / 8)


def test_the_command_prints_and_writes(tmp_path, capsys):
    path = tmp_path / "a.json"
    bench = Bench(tiny.PATH, what="arithmetic", json=path)
    assert bench.run([]) == 0
    said = capsys.readouterr().out
    assert "An iteration of tiny" in said
    assert "a million games, H100: " in said
    written = json.loads(path.read_text())
    assert [x["name"] for x in written["stages"]][:3] == ["network", "game", "tree"]
    assert [x["devices"] for x in written["hours_for_a_million_games"]["v5e"]] == [1, 8, 64]
    for options in ({"plies_a_game": 0.5}, {"what": "env,arithmetic"}):
        with pytest.raises(UsageError, match="--"):
            dataclasses.replace(bench, **options).run([])
