"""Searches by rounds visit what sequential halving visits, many slots at once."""

import dataclasses

import numpy as np
import pytest

from tests.support.learner import tiny
from tests.support.learner.searching import FOUR_STONES, STANDARD, TRIO, Grown, grown
from train.bench.scripts.dropped_visits import visits_made
from train.config import read_config
from train.runtime.errors import UsageError
from train.search.config import SearchConfig
from train.search.rounds import round_schedule
from train.search.sequential_halving import halving_dues

PLIES = {FOUR_STONES: (24, 1, 12), TRIO: (24, 1, 11), STANDARD: (4, 20, 60)}


def _both(rules, simulations: int, *, explores: bool = False) -> tuple[Grown, Grown]:
    config = SearchConfig(simulations=simulations)
    by_rounds = dataclasses.replace(config, rounds=True)
    return tuple(grown(rules, PLIES[rules], each, explores) for each in (config, by_rounds))


def _has_sixteen(found: Grown) -> np.ndarray:
    """bool[B]: the boards on which as many slots are legal as are considered."""
    return (found.choice.policy > 0).sum(axis=1) >= 16


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


@pytest.mark.parametrize(
    ("rules", "simulations"),
    [
        pytest.param(FOUR_STONES, 16, marks=pytest.mark.slow),
        pytest.param(FOUR_STONES, 4, marks=pytest.mark.slow),
        pytest.param(STANDARD, 16, marks=pytest.mark.slow),
    ],
)
def test_one_round_finds_what_simulations_find(rules, simulations):
    """To the last bit, where the round visits all slots that are considered."""
    one_by_one, by_rounds = _both(rules, simulations)
    same = _has_sixteen(one_by_one)
    assert same.sum() >= 50
    for name in ("root_visits", "node_visits", "parents", "values"):
        np.testing.assert_array_equal(
            getattr(one_by_one, name)[same], getattr(by_rounds, name)[same], err_msg=name
        )
    for ours, theirs in zip(by_rounds.choice[:3], one_by_one.choice[:3], strict=True):
        np.testing.assert_array_equal(ours[same], theirs[same])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rules", "simulations"),
    [(FOUR_STONES, 32), (STANDARD, 64), (TRIO, 64)],
)
def test_several_rounds_seldom_choose_another_move(rules, simulations):
    one_by_one, by_rounds = _both(rules, simulations)
    same = _has_sixteen(one_by_one)
    assert (by_rounds.root_visits[same].sum(axis=1) == simulations).all()
    # Each slot had as many visits as its place in the schedule, whichever slot had the place.
    np.testing.assert_array_equal(
        np.sort(by_rounds.root_visits[same]), np.sort(one_by_one.root_visits[same])
    )
    differ = (by_rounds.choice.slot != one_by_one.choice.slot)[same]
    assert differ.mean() <= 0.1


def test_boards_of_few_legal_slots_keep_to_their_own_schedule():
    _, found = _both(FOUR_STONES, 32)
    legal = (found.choice.policy > 0).sum(axis=1)
    few = (legal > 0) & (legal < 16)
    assert few.sum() >= 50
    schedule = round_schedule(16, 32)
    for visits, slots in zip(found.root_visits[few], legal[few], strict=True):
        dues = halving_dues(int(slots), 32)
        assert 0 < visits.sum() == visits_made(schedule, int(slots)) <= 32
        # A slot was visited when it was due: levels of the schedule, filled in order.
        made = sorted(due for count in visits for due in range(count))
        assert made == sorted(dues[: len(made)])


def test_visits_and_values_add_up():
    """Every node has one visit of its own and those of its children; its value is their mean."""
    _, found = _both(FOUR_STONES, 32)
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


def test_rounds_need_the_native_engine(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text('[search]\nengine = "mctx"\nrounds = true\n')
    with pytest.raises(UsageError, match="rounds must be false for engine 'mctx'"):
        read_config(path)
    assert tiny.config("--search.rounds=true").search.rounds
