"""Matches of three: scripted players, games checked by the slow referee, figures and seatings by
hand."""

import jax
import numpy as np
import pytest

from tests.support.learner.matches import legal_player
from tests.support.reference.referee import Game
from train.arena import report
from train.arena.match import MatchOptions, entrants_of, fill_seats, play_match
from train.arena.match_programs import seatings_of
from train.arena.openings import OpeningOptions
from train.arena.result import MatchResult, wilson_interval
from wallgo_jax.game.rules import PRESETS, Rules

TRIO = Rules(size=3, players=3, stones=1, order=(0, 1, 2), walls=4, stay_needs_room=True, tie=())
OPENING = 3


LOW, HIGH = legal_player("low", highest=False), legal_player("high", highest=True)


@pytest.fixture(scope="module")
def scripted_match() -> MatchResult:
    options = MatchOptions(40, 10, OpeningOptions(OPENING))
    return play_match([LOW, HIGH, HIGH], TRIO, options, key=jax.random.key(5))


def test_each_opening_is_played_in_each_seating(scripted_match):
    result = scripted_match
    assert (result.names, len(result.games)) == (("low", "high"), 42)
    assert result.seats.reshape(14, 3, 3).tolist() == 14 * [[[0, 1, 1], [1, 0, 1], [1, 1, 0]]]
    assert result.opening.tolist() == np.repeat(np.arange(14), 3).tolist()
    starts = [game[:OPENING] for game in result.games]
    assert all(starts[3 * n] == starts[3 * n + 1] == starts[3 * n + 2] for n in range(14))
    assert len(set(starts)) > 8


def test_scripted_games_end_as_the_slow_referee_says(scripted_match):
    result = scripted_match
    figures = result.seats, result.rewards, result.cells, result.regions, result.places
    for actions_, seats, rewards, cells, regions, places in zip(
        result.games, *figures, strict=True
    ):
        game, paid = Game(TRIO.to_dict()), [0.0, 0.0, 0.0]
        for ply, action in enumerate(actions_):
            if ply >= OPENING:
                chosen = min(game.legal()) if seats[game.player] == 0 else max(game.legal())
                assert action == chosen
            paid = game.act(action)
        assert game.over
        assert rewards.tolist() == paid
        assert (cells.tolist(), regions.tolist()) == (game.territory(), game.largest())
        ranked = [(-reward, -own) for reward, own in zip(paid, game.territory(), strict=True)]
        assert places.tolist() == [1 + sum(b < a for b in ranked) for a in ranked]
    assert len({tuple(each) for each in result.rewards.tolist()}) > 2


RULES = PRESETS["playwallgo-3p"]
RED_WINS, BLUE_WINS, DRAW = [1, -0.5, -0.5], [-0.5, 1, -0.5], [0.0, 0, 0]
HAND_MADE = MatchResult(
    names=("a", "b"),
    rules=RULES,
    seats=np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]]),
    # Won by a, won by b, drawn, won by a, won by a, won by b.
    rewards=np.stack([RED_WINS, RED_WINS, DRAW, RED_WINS, BLUE_WINS, BLUE_WINS]),
    regions=np.array([[9, 4, 1], [9, 2, 3], [5, 3, 1], [7, 0, 0], [2, 9, 3], [0, 8, 2]]),
    cells=np.array([[9, 4, 2], [9, 2, 3], [5, 5, 1], [7, 0, 0], [3, 9, 3], [0, 8, 2]]),
    opening=np.array([0, 0, 0, 1, 1, 1]),
    games=tuple((number,) * (10 + number) for number in range(6)),
)


def test_figures_by_hand():
    result = HAND_MADE
    first, second = result.of(0), result.of(1)
    assert (first.wins, result.draws, first.losses) == (3, 1, 2)
    assert (second.wins, second.losses) == (2, 3)
    assert result.outcome.tolist() == [1, -1, 0, 1, 1, -1]
    assert result.win_rate == first.win_rate == pytest.approx((3 + 1 / 3) / 6)
    # Two seats share b's wins; the win rates of three seats are 1 together.
    assert second.win_rate == pytest.approx((2 + 2 / 3) / 12)
    assert first.decided_rate == pytest.approx(3 / 5)
    assert result.places.tolist() == [
        [1, 2, 3],
        [1, 3, 2],
        [1, 1, 3],
        [1, 2, 2],
        [2, 1, 2],
        [3, 1, 2],
    ]
    assert first.place_shares == pytest.approx([3 / 6, 1 / 6, 2 / 6])
    assert first.win_rate_at(0) == 1.0
    assert first.win_rate_at(2) == pytest.approx(1 / 6)
    assert result.seat_win_rate(0) == pytest.approx((3 + 1 / 3) / 6)
    assert first.mean_territory[0] == pytest.approx((9 + 2 + 1 + 7 + 9 + 2) / 6)
    assert result.territory[:2].tolist() == [[9, 6], [2, 12]]
    # Means of the openings: (1 - 1/2 + 0) / 3 and (1 + 1 - 1/2) / 3.
    reward, error = first.reward
    assert reward == pytest.approx((1 / 6 + 1 / 2) / 2)
    assert error == pytest.approx(1.959964 * np.std([1 / 6, 1 / 2], ddof=1) / np.sqrt(2))


def test_an_interval_is_of_the_games_that_one_of_the_seats_wins():
    """b has two seats, and 2 2/3 of six games: Wilson's of the share of games, by its seats."""
    first, second = HAND_MADE.of(0), HAND_MADE.of(1)
    low, high = wilson_interval((2 + 2 / 3) / 6, 6)
    assert second.interval == pytest.approx((low / 2, high / 2))
    assert first.interval == wilson_interval(first.win_rate, 6)
    # Where there are but two entrants, the one's games are what the other leaves.
    low, high = first.interval
    assert second.interval == pytest.approx(((1 - high) / 2, (1 - low) / 2))


def test_tables_and_records_say_the_same():
    record = report.match_record(HAND_MADE)
    assert (record["first"], record["second"]) == ("a", "2 b")
    assert (record["wins"], record["draws"], record["losses"]) == (3, 1, 2)
    assert [entrant["seats"] for entrant in record["entrants"]] == [1, 2]
    assert record["entrants"][0]["win_rate_by_seat"] == pytest.approx([1, 2 / 4, 1 / 6])
    assert "a against 2 b: 55.6% (" in report.match_line(HAND_MADE, seconds=1.0)
    kept = HAND_MADE.of_games(np.array([0, 2]))
    assert kept.games == (HAND_MADE.games[0], HAND_MADE.games[2])


def test_players_of_one_name_are_one_entrant():
    entrants = entrants_of([HIGH, LOW, HIGH])
    assert [player.name for player in entrants.players] == ["high", "low"]
    assert entrants.seats == (2, 1)


THREE, FOUR = PRESETS["playwallgo-3p"], PRESETS["playwallgo-4p"]


@pytest.mark.parametrize(
    ("seats", "count"),
    [((1, 1, 1), 6), ((1, 2), 3), ((1, 1, 1, 1), 24), ((1, 3), 4), ((2, 2), 6), ((1, 1, 2), 12)],
)
def test_every_order_comes_once(seats, count):
    found = list(map(tuple, seatings_of(seats).entrants.tolist()))
    assert len(set(found)) == len(found) == count
    for seating in found:
        assert [seating.count(entrant) for entrant in range(len(seats))] == list(seats)
    for entrant, held in enumerate(seats):
        # Each entrant has each seat equally often.
        at = [sum(seating[seat] == entrant for seating in found) for seat in range(sum(seats))]
        assert at == sum(seats) * [count * held // sum(seats)]


def test_two_names_fill_all_seats():
    assert fill_seats(["a", "b"], THREE) == ["a", "b", "b"]
    assert fill_seats(["a", "b"], FOUR) == ["a", "b", "b", "b"]
    assert fill_seats(["a", "b", "a"], THREE) == ["a", "b", "a"]


@pytest.mark.parametrize(("names", "rules"), [("a", THREE), ("abc", FOUR), ("abcd", THREE)])
def test_other_numbers_of_players_are_refused(names, rules):
    with pytest.raises(ValueError, match=f"{len(names)} players are named, the rules are for"):
        fill_seats(list(names), rules)
