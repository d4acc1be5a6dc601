"""Searches by rounds visit what sequential halving visits, many slots at once."""

import dataclasses

import numpy as np
import pytest

from tests.support.learner import hashed_game
from tests.support.learner.searching import Grown
from train.search.config import SearchConfig
from train.search.gumbel import RoundSchedule, round_schedule, rounds_pay_for_one_board
from train.search.sequential_halving import halving_dues

CONSIDERED, SIMULATIONS, BOARDS = 8, 12, 60


def _both(simulations: int) -> tuple[Grown, Grown]:
    config = SearchConfig(simulations, CONSIDERED)
    by_rounds = dataclasses.replace(config, rounds=True)
    return tuple(
        hashed_game.hashes_grown(each, explores=False, boards=BOARDS)
        for each in (config, by_rounds)
    )


def _legal(found: Grown) -> np.ndarray:
    """int[B]: legal slots of the roots."""
    return (found.choice.policy > 0).sum(axis=1)


def _visits_made(schedule: RoundSchedule, slots: int) -> int:
    """The visits that a board makes of which `slots` are considered."""
    made = 0
    for room, number in schedule.rounds:
        for _ in range(number):
            made += min(int(schedule.left[slots, made]), room)
    return made


def test_rounds_of_a_schedule():
    # Phases of 16, 8, 4 and 2 slots have a quarter of 64 visits each.
    assert round_schedule(16, 64).rounds == ((16, 1), (8, 2), (4, 4), (2, 8))
    assert round_schedule(16, 16).rounds == ((16, 1),)
    assert round_schedule(16, 4).rounds == ((4, 1),)
    assert round_schedule(1, 3).rounds == ((1, 3),)
    schedule = round_schedule(4, 8)
    assert schedule.due[4].tolist() == [*halving_dues(4, 8), 0]
    assert schedule.left[4].tolist() == [4, 3, 2, 1, 2, 1, 2, 1, 0]
    assert schedule.left[0].tolist() == [0] * 9


def test_one_round_finds_what_simulations_find():
    """To the last bit, where the round visits all slots that are considered."""
    one_by_one, by_rounds = _both(CONSIDERED)
    same = _legal(one_by_one) >= CONSIDERED
    assert same.sum() >= 30
    for name in ("root_visits", "node_visits", "parents", "values"):
        np.testing.assert_array_equal(
            getattr(one_by_one, name)[same], getattr(by_rounds, name)[same], err_msg=name
        )
    for ours, theirs in zip(by_rounds.choice[:3], one_by_one.choice[:3], strict=True):
        np.testing.assert_array_equal(ours[same], theirs[same])


@pytest.mark.slow
def test_several_rounds_seldom_choose_another_move():
    one_by_one, by_rounds = _both(SIMULATIONS)
    same = _legal(one_by_one) >= CONSIDERED
    assert same.sum() >= 30
    assert (by_rounds.root_visits[same].sum(axis=1) == SIMULATIONS).all()
    # Each slot had as many visits as its place in the schedule, whichever slot had the place.
    np.testing.assert_array_equal(
        np.sort(by_rounds.root_visits[same]), np.sort(one_by_one.root_visits[same])
    )
    differ = (by_rounds.choice.slot != one_by_one.choice.slot)[same]
    assert differ.mean() <= 0.1


def test_boards_of_few_legal_slots_keep_to_their_own_schedule():
    _, found = _both(SIMULATIONS)
    legal = _legal(found)
    few = legal < CONSIDERED
    assert few.sum() >= 8
    schedule = round_schedule(CONSIDERED, SIMULATIONS)
    for visits, slots in zip(found.root_visits[few], legal[few], strict=True):
        dues = halving_dues(int(slots), SIMULATIONS)
        assert 0 < visits.sum() == _visits_made(schedule, int(slots)) <= SIMULATIONS
        # A slot was visited when it was due: levels of the schedule, filled in order.
        made = sorted(due for count in visits for due in range(count))
        assert made == sorted(dues[: len(made)])


def test_visits_and_values_add_up():
    """Every node has one visit of its own and those of its children; its value is their mean."""
    _, found = _both(SIMULATIONS)
    edges, tree = found.edges, found.choice.tree
    boards, nodes = found.node_visits.shape
    visits, sums = np.zeros((boards, nodes)), np.zeros((boards, nodes))
    np.add.at(visits, (edges.board, edges.node), edges.visits)
    worth = (edges.reward + edges.discount * edges.value) * edges.visits
    np.add.at(sums, (edges.board, edges.node), worth)
    inner = (found.node_visits > 0) & (visits > 0)
    np.testing.assert_array_equal(found.node_visits[inner], 1 + visits[inner])
    means = (tree.raw_values + sums) / np.maximum(found.node_visits, 1)
    np.testing.assert_allclose(found.values[inner], means[inner], atol=1e-5)
    np.testing.assert_array_equal(tree.root_visits, found.root_visits)


def test_rounds_search_one_board_where_the_search_has_them():
    assert rounds_pay_for_one_board(SearchConfig())
    others = {"kind": "puct"}, {"engine": "mctx"}, {"custom": "mine"}, {"opponents": "maxn"}
    assert not any(rounds_pay_for_one_board(SearchConfig(**changes)) for changes in others)
