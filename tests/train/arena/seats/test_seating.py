"""Seatings: every order once, counted by hand; lists of players that do not fit."""

import pytest

from train.arena.seats.seating import fill_seats, seatings_of
from wallgo_jax.game.rules import PRESETS

THREE, FOUR = PRESETS["playwallgo-3p"], PRESETS["playwallgo-4p"]


@pytest.mark.parametrize(
    ("seats", "count"),
    [((1, 1, 1), 6), ((1, 2), 3), ((1, 1, 1, 1), 24), ((1, 3), 4), ((2, 2), 6), ((1, 1, 2), 12)],
)
def test_every_order_comes_once(seats, count):
    found = seatings_of(seats)
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
