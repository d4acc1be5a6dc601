"""The harness counts plies, games, operations and time; its game is one counted by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.learner import tiny
from tests.support.learner.counting_game import counting_game
from train.bench import games, timing, trainer
from train.bench.timing import CHECKSUM
from train.network.parts import sum_equations
from train.runtime.devices import all_devices
from wallgo_jax import planes as planes_lib


def test_compiled_program_tells_what_it_needs():
    array = jnp.zeros((256,), jnp.float32)
    call, stats = timing.compile_traced(lambda: jax.jit(lambda x: x + 1).trace(array))
    assert stats.peak_bytes is not None and stats.peak_bytes >= 2 * 4 * 256
    np.testing.assert_array_equal(call(array), np.ones(256))
    jitted = jax.jit(lambda x: x + 1, donate_argnums=0)
    donated = timing.compile_traced(lambda: jitted.trace(array)).stats
    assert donated.peak_bytes == stats.peak_bytes - 4 * 256


def test_runs_take_turns_and_give_medians(monkeypatch):
    """A clock that the benches push: 1 s a unit, or 2 s, and one slow run of each."""
    clock, order = [0.0], []

    def bench(name: str, unit: float) -> timing.Benchmark:
        def run(length: int) -> dict[str, float]:
            order.append(name)
            slow = 10 if order.count(name) == 4 else 1
            clock[0] += unit * length * slow
            return {"plies": 6.0 * length, CHECKSUM: 2**32 - 1}

        return timing.Benchmark(name, 1, run, None)

    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock[0])
    first, second = timing.take_turns([bench("a", 1.0), bench("b", 2.0)], seconds=1.0, repeats=3)
    assert (first.length, second.length) == (1, 1)
    assert order == ["a"] * 2 + ["b"] * 2 + ["a", "b"] * 3
    assert (first.rates, second.rates) == ({"plies": 6.0}, {"plies": 3.0})
    assert first.seconds == (1.0, 10.0, 1.0)
    assert first.checksum == (3 * (2**32 - 1)) % 2**32


def test_run_lasts_as_long_as_asked(monkeypatch):
    clock = [0.0]

    def run(length: int) -> dict[str, float]:
        clock[0] += 0.01 * length
        return {"plies": 1.0, CHECKSUM: 0}

    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock[0])
    (found,) = timing.take_turns([timing.Benchmark("a", 1, run, None)], seconds=0.5, repeats=1)
    assert 50 <= found.length <= 56


@pytest.mark.parametrize("length", [5, 65, 20_000])
def test_every_set_entry_is_counted(length):
    array = np.random.default_rng(length).random(length) < 0.9
    assert int(jax.jit(timing.count_set)(array)) == array.sum()


def test_the_count_of_many_boards_is_a_small_program():
    # The plies of an iteration of 1,024 boards; compiling a slice for each 64 of them took 10 GB.
    plies = jax.ShapeDtypeStruct((8, 1024, 53 * 49), bool)
    assert sum_equations(jax.make_jaxpr(timing.count_set)(plies), lambda equation: 1) < 2000


def test_plies_games_and_checksum_are_those_played():
    assert all_devices().count == 2
    for devices in (all_devices(1), all_devices()):
        bench = games.make_bench(counting_game(), 4, devices)
        # 4 boards, 7 plies: each ends 2 games, and stands one ply into its third.
        assert bench.run(7) == {"plies": 28, "games": 8, CHECKSUM: 7 * 28}
        # It goes on from there: after 2 more plies the third game is over.
        assert bench.run(2) == {"plies": 8, "games": 4, CHECKSUM: 7 * 8}


def test_plies_that_were_not_played_are_refused():
    """A game that makes two steps at once is found out by its own count."""
    bench = games.make_bench(counting_game(per_step=2), 4, all_devices(1))
    with pytest.raises(RuntimeError, match="counting: 16 plies were played, not 8"):
        bench.run(2)


def test_operations_are_those_of_the_layers():
    """Counts by hand for 9 cells and a width of 8: convolutions of 9 taps, heads per cell and on
    pooled features. The search does not read ownership; a step costs three times all layers, but
    for the stem, whose planes need no gradient."""
    config = tiny.config()
    planes = len(planes_lib.channels("B", 2))
    stem, block = 81 * planes * 8, 2 * 81 * 8 * 8
    policy, value, ownership = 9 * 8 * 53 + 16 * 53, 16 * 8 + 8, 9 * 8 * 3 + 16 * 3
    assert trainer.forward_operations(config) == 2 * (stem + block + policy + value)
    every = stem + block + policy + value + ownership
    assert trainer.step_operations(config) == 2 * (3 * every - stem)
