"""Minutes to a win rate, on curves that are given."""

import json

import pytest

from tests.support.learner import tiny
from tests.support.learner.commands import command, complaint
from train.runtime.errors import UsageError
from train.study import strength
from train.study.strength import Point, passing


def curve(*rates: float, games: int = 10_000) -> list[Point]:
    """A checkpoint every two minutes."""
    return [Point(10 * n, 2.0 * n, rate, games) for n, rate in enumerate(rates, start=1)]


def test_passing_lies_between_checkpoints():
    """0.3 at minute 2, 0.7 at minute 4: one half at minute 3."""
    found = passing(curve(0.3, 0.7, 0.8), 0.5)
    assert found.minutes == pytest.approx(3.0)
    assert found.low is not None and found.high is not None
    assert 2.9 < found.low < 3.0 < found.high < 3.1


def test_one_lucky_match_does_not_decide():
    """0.6 then 0.2 count as 0.4 twice; 0.8 follows: one half a quarter of the way from there."""
    assert passing(curve(0.1, 0.6, 0.2, 0.8), 0.5).minutes == pytest.approx(6.5)


def test_curve_that_ends_below_has_not_passed():
    assert passing(curve(0.1, 0.2), 0.9) == (0.9, None, None, None)


def test_curve_may_begin_above():
    assert passing(curve(0.95, 0.99), 0.9).minutes == 2.0


def test_fewer_games_tell_less():
    few, many = (passing(curve(0.3, 0.7, games=games), 0.5) for games in (20, 2000))
    assert few.low is not None and many.low is not None and many.high is not None
    assert few.low < many.low and (few.high is None or few.high > many.high)


@pytest.mark.slow
def test_bench_trains_and_measures(monkeypatch, tmp_path):
    """Two checkpoints against `random`; a second call plays nothing anew."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(strength, "OPPONENT", "random")
    monkeypatch.setattr(
        strength.measure, "__kwdefaults__", {"opponent": "random", "simulations": 2}
    )
    monkeypatch.setattr(strength, "_POINTS", 2)
    monkeypatch.setattr(strength, "_RESAMPLES", 100)
    words = ["bench", tiny.PATH, "--what", "strength", "--games", "20", "--json", "s.json"]
    said = command(*words)
    assert said.code == 0, said.err
    points = json.loads((tmp_path / "s.json").read_text())["points"]
    assert [point["iteration"] for point in points] == [3, 6]
    assert 0 < points[0]["minutes"] < points[1]["minutes"]
    assert "50%: " in said.out and "90%: " in said.out
    monkeypatch.setattr(strength.pool, "make_play", lambda *_, **__: pytest.fail("played again"))
    run = tmp_path / "runs" / "tiny-strength"
    again = command("bench", "--what", "strength", "--trained", run, "--games", "20")
    assert again.code == 0, again.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--what", "strength,env"], "bench: --what strength is measured alone"),
        (["--what", "strength", "--games", "3"], "bench: games (3) must be an even number"),
        (["--what", "strength", "--trained", "no-run"], "no-run: not a run directory"),
        (["--trained", "no-run"], "bench: --trained is for --what strength"),
    ],
)
def test_wrong_options_are_one_line(words, said):
    assert complaint(command("bench", *words)).startswith(said)


def test_run_without_metrics_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"metrics.jsonl: cannot be read"):
        strength._minutes(tmp_path)
