"""Matches are read back from the games that files keep."""

import pytest

from train.api.games import series
from train.runtime.errors import UsageError
from wallgo_jax.formats import records
from wallgo_jax.formats.records import Record
from wallgo_jax.game.rules import Rules

SMALL = Rules(size=3, stones=1, order=(0, 1))
# A1, C3, then walls that shut Red in: 1 cell against 8.
BLUE_WINS = (468, 476, 1, 416, 2)


def test_a_series_is_told_by_opponent_and_colour(tmp_path):
    me, weak, strong = "a person", "machine (novice)", "machine (strong)"
    games = [(weak, me), (me, strong), (strong, me), (me, weak)]
    for number, players in enumerate(games[:3]):
        record = Record(SMALL, BLUE_WINS, players=players)
        records.write(tmp_path / f"{number}.jsonl", [record])
    records.write(tmp_path / "3.jsonl", [Record(SMALL, BLUE_WINS[:3], players=games[3])])
    read = series(sorted(tmp_path.glob("*.jsonl")))
    assert read.unfinished == 1
    against = {match.names: match for match in read.matches}
    assert list(against) == [(me, weak), (me, strong)]
    of_weak, of_strong = against.values()
    assert (of_weak.wins, of_weak.losses, of_weak.territory_ratio) == (1, 0, 8.0)
    assert (of_strong.wins, of_strong.losses, of_strong.territory_ratio) == (1, 1, 1.0)
    assert [of_strong.win_rate_at(seat) for seat in (0, 1)] == [0.0, 1.0]
    assert of_weak.regions.tolist() == [[1, 8]]
    (table,) = read.shown()
    assert [column for column in table.heads] == ["", f"against {weak}", f"against {strong}"]


def test_files_without_a_finished_game_are_refused(tmp_path):
    records.write(tmp_path / "a.jsonl", [Record(SMALL, BLUE_WINS[:3])])
    with pytest.raises(UsageError, match="none of 1 games is over"):
        series([tmp_path / "a.jsonl"])
