"""Minutes to a win rate, on curves that are given."""

import json
from pathlib import Path

import pytest

from tests.support.learner import tiny
from train.arena.figures import Counts
from train.checkpoints import exported
from train.checkpoints.weights import TrainedNetwork
from train.experiments import strength
from train.experiments.strength import StrengthPoint, passing
from train.loop.first_weights import _stages
from train.loop.run_directory import CURVE_FILE, STAGES_FILE, STARTS_FILE
from train.metrics.rows import METRICS_FILE
from train.network import Variables
from train.ratings import pool
from train.ratings.pool import Entrant
from train.ratings.results_cache import ResultsCache
from wallgo_jax import __version__


def curve(*rates: float, games: int = 10_000) -> list[StrengthPoint]:
    """A checkpoint every two minutes."""
    return [StrengthPoint(10 * n, 2.0 * n, rate, games) for n, rate in enumerate(rates, start=1)]


def test_passing_lies_between_checkpoints():
    """0.3 at minute 2, 0.7 at minute 4: one half at minute 3."""
    found = passing(curve(0.3, 0.7, 0.8), 0.5)
    assert found.minutes == pytest.approx(3.0)
    assert found.low is not None and found.high is not None
    assert 2.9 < found.low < 3.0 < found.high < 3.1


def test_one_lucky_match_does_not_decide():
    """0.6 then 0.2 count as 0.4 twice; 0.8 follows: one half a quarter of the way from there."""
    assert passing(curve(0.1, 0.6, 0.2, 0.8), 0.5).minutes == pytest.approx(6.5)


def test_a_curve_may_begin_above_or_end_below():
    assert passing(curve(0.95, 0.99), 0.9).minutes == 2.0
    assert passing(curve(0.1, 0.2), 0.9) == (0.9, None, None, None)


def test_fewer_games_tell_less():
    few, many = (passing(curve(0.3, 0.7, games=games), 0.5) for games in (20, 2000))
    assert few.low is not None and many.low is not None and many.high is not None
    assert few.low < many.low and (few.high is None or few.high > many.high)


ROWS = [
    {"iteration": 1, "selfplay_seconds": 60.0, "learn_seconds": 30.0, "compile_seconds": 24.0},
    {"iteration": 2, "selfplay_seconds": 50.0, "learn_seconds": 40.0, "compile_seconds": 0.0},
]
"""Three minutes of training."""


def make_run(run: Path, stages: list[dict] | None = None) -> Path:
    """A run's directory with metrics, and the stages before it."""
    run.mkdir()
    (run / METRICS_FILE).write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    if stages is not None:
        (run / STAGES_FILE).write_text(json.dumps(stages))
    return run


def measured(run: Path, monkeypatch) -> strength.StrengthCurve:
    """The curve of a run whose two checkpoints win 1 and 3 games of 4."""
    config = tiny.config()
    found = [Entrant(f"run-{n}", f"id-{n}", None, "run", n) for n in (1, 2)]
    monkeypatch.setattr(strength.pool, "entrants_of_run", lambda *_, **__: found)
    other = Entrant("other", "id", None)
    monkeypatch.setattr(strength.pool, "entrant_of_name", lambda *_, **__: other)
    settings = pool.settings_of(config.rules, opening_plies=0, seed=config.seed)
    cache = ResultsCache(run / strength.CACHE_FILE, settings | {"games": 4})
    for entrant, wins in zip(found, (1.0, 3.0), strict=True):
        players = (entrant.identity, "id")
        cache.add(Counts(players, (wins, 4 - wins), 2, ((0.5, -0.5), (-0.5, 0.5))))

    def on_match(entrant, number, count):
        pytest.fail("all matches are known")

    return strength.measure(run, config, games=4, opening_plies=0, on_match=on_match)


def stage_of(run: Path) -> dict:
    """A run as a stage, as the next one writes it."""
    about = {"run": run.name, "iteration": 2}
    trained = TrainedNetwork(tiny.config(), Variables({}, {}), run.name, str(run), run, about)
    return _stages(trained)[-1]


def test_minutes_of_earlier_stages_count(tmp_path, monkeypatch):
    """A run of three minutes after one as long: its first checkpoint comes at minute 4.5."""
    run = make_run(tmp_path / "one")
    git = {"revision": "a" * 40, "dirty": False}
    starts = [{"versions": {"wallgo-jax": __version__}, "git": git}]
    (run / STARTS_FILE).write_text(json.dumps({"starts": starts}))
    alone = measured(run, monkeypatch)
    assert [point.minutes for point in alone.points] == [1.5, 3.0]
    assert strength.time_line(alone) == (
        f"training 3.00 min, compiling 0.40 min, by the code {__version__} at {'a' * 12}"
    )
    run = make_run(tmp_path / "two", [stage_of(tmp_path / "one")])
    found = measured(run, monkeypatch)
    assert [point.minutes for point in found.points] == pytest.approx([4.5, 6.0])
    assert found.minutes == pytest.approx(6.0)
    assert (alone.passings[0].minutes, found.passings[0].minutes) == pytest.approx((2.25, 5.25))
    assert strength.time_line(found) == (
        "training 6.00 min, compiling 0.80 min, by the code not recorded; the stages before the "
        "run took 3.00 min of the training and 0.40 min of the compiling"
    )
    kept = json.loads((run / CURVE_FILE).read_text())
    assert kept["earlier"]["minutes"] == pytest.approx(3.0) and kept["earlier"]["unrecorded"] == []
    sentence = "minutes are those of self-play and learning, 3.00 of them in stages before."
    assert sentence in "".join(exported._time_to_strength(kept))


def test_a_stage_without_hours_is_told(tmp_path, monkeypatch):
    stages = [{"run": "old", "source": "runs/old", "hours": None}, {"run": None, "source": "m/x"}]
    stages.append({"run": "new", "hours": {"training": 0.1, "compiling": 0.0, "all": 0.2}})
    found = measured(make_run(tmp_path / "run", stages), monkeypatch)
    assert [point.minutes for point in found.points] == pytest.approx([7.5, 9.0])
    assert strength.time_line(found).endswith("; not counted, for no hours are recorded: old, m/x")
