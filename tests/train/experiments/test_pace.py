"""Budgets in minutes as iterations, on paces that are given."""

import dataclasses

import pytest

from tests.support.learner import tiny
from train.experiments import pace as pace_lib
from train.loop.stages import BOOTSTRAP
from train.runtime.errors import UsageError


@pytest.fixture
def uncompiled(monkeypatch):
    """Runs that are timed compile nothing and compute nothing."""
    monkeypatch.setattr(pace_lib, "compile_run", lambda *arguments, **options: 7.0)
    monkeypatch.setattr(pace_lib, "init", lambda *arguments: None)


def test_stages_of_equal_length_share_the_budget():
    """Half of a run takes 1 s an iteration, half 3 s: 60 s hold 30, of which 15 are in each."""
    config = tiny.config("--search.simulations", "4", "--search.first_simulations", "2")
    pace = {2: 1.0, 4: 3.0}
    assert pace_lib.iterations_within(config, pace, 60.0) == 30
    assert pace_lib.iterations_within(config, pace, 59.9) == 29  # 15 of 1 s, 14 of 3 s: 57 s


def test_bootstrap_has_its_own_pace():
    config = tiny.config("--selfplay.bootstrap_iterations", "3")
    pace = {BOOTSTRAP: 5.0, 2: 1.0}
    assert pace_lib.iterations_within(config, pace, 25.0) == 13


def test_too_short_a_budget_is_refused():
    with pytest.raises(UsageError, match=r"too short: one iteration takes 2 s"):
        pace_lib.iterations_within(tiny.config(), {2: 2.0}, 1.9)


def test_pace_times_each_stage_with_full_steps(monkeypatch, uncompiled):
    """Iterations before the first full one are not timed; compiling is apart."""
    config = tiny.config("--search.simulations", "4", "--search.first_simulations", "2")
    rows, asked = iter([0, 1, *[2] * 10]), []

    def iterate(timed, iteration):
        asked.append(iteration)
        return next(rows), 1.5 if iteration == 0 else 3.5

    monkeypatch.setattr(pace_lib._Timed, "_play_and_learn", iterate)
    pace = pace_lib.measure_pace(config)
    assert pace.seconds == {2: 1.5, 4: 3.5}
    assert pace.compile_seconds == 7.0
    assert len(asked) == pace.iterations == 3 + 2 * pace_lib.TIMED
    assert pace.iterations <= pace_lib.most_iterations(dataclasses.replace(config, iterations=2))


def test_a_pace_beside_another_does_not_feel_the_machine(monkeypatch, uncompiled):
    """The machine slows down all the time; the change takes twice the base's time in every turn."""
    base = tiny.config()
    change = tiny.config("--network.width", "16")
    speed = iter(range(1, 1000))

    def iterate(timed, iteration):
        slow = (1 + next(speed)) // 2  # the same for both of a turn
        return 10**9, slow * (2.0 if timed.config.network.width == 16 else 1.0)

    monkeypatch.setattr(pace_lib._Timed, "_play_and_learn", iterate)
    monkeypatch.setattr(pace_lib, "_most_warm_up", lambda config: 1)
    found = pace_lib.measure_pace(change, base, {2: 1.5})
    assert found.seconds == {2: 3.0}
    assert found.iterations == 1 + pace_lib.TURNS


@pytest.mark.parametrize(
    ("words", "equal"),
    [
        (["--learner.learning_rate", "1e-4", "--learner.warmup", "7"], True),
        (["--selfplay.cheap_policy_weight", "1.0", "--search.value_scale", "1.0"], True),
        (["--learner.steps", "3"], False),
        (["--selfplay.opening_plies", "2"], False),
    ],
)
def test_which_changes_take_equal_time(words, equal):
    assert pace_lib.take_equal_time(tiny.config(), tiny.config(*words)) is equal
