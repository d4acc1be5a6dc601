"""Sequential halving visits the slots that are due, the best of them first, one by one or by
rounds."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from tests.support.learner import hashed_game
from tests.support.learner.searching import Grown, mctx_tree_of, node_of
from train.search.config import SearchConfig
from train.search.gumbel import RoundSchedule, round_schedule, rounds_pay_for_one_board
from train.search.sequential_halving import (
    are_largest,
    best_due,
    completed_values,
    first_largest,
    halving_dues,
    halving_schedule,
    slot_below,
    visits_due,
)
from train.search.tree import Node


@pytest.mark.parametrize(
    ("considered", "dues"),
    [
        (0, range(16)),
        (1, range(16)),
        # All 16 on two slots, in turn.
        (2, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7]),
        # Two halvings of 8 simulations: twice on each of four, then four times on the better two.
        (4, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]),
        # Three halvings of 5 simulations: once on each of six, of three, then on two to the end.
        (6, [0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5]),
    ],
)
def test_schedule_halves_the_slots(considered, dues):
    schedule = halving_schedule(6, 16)
    assert schedule.shape == (7, 16)
    assert schedule[considered].tolist() == list(dues)


def test_root_visits_the_best_of_those_due():
    """Four legal slots of five. After four visits those once visited are due again, by their score
    of draw, prior and value; the illegal one never is."""
    gumbel = jnp.array([[0.0, 0.0, 0.5, 0.0, 9.0]])
    legal = jnp.array([[True, True, True, True, False]])
    schedule = halving_schedule(16, 16)
    logits, completed = jnp.array([[1.0, 0, 0, 0, 0]]), jnp.array([[0.0, 2.0, 0, 0, 0]])

    @jax.jit
    def best(had: jax.Array) -> jax.Array:
        due = visits_due(1 + had.sum(axis=1), legal, schedule)
        return best_due(node_of(logits, had), completed, due, gumbel=gumbel, legal=legal)

    for visits, slot in (
        ([0, 0, 0, 0, 0], 1),
        ([0, 1, 0, 0, 0], 0),
        ([1, 1, 0, 0, 0], 2),
        ([1, 1, 1, 0, 0], 3),
        ([1, 1, 1, 1, 0], 1),
    ):
        had = np.array([visits])
        assert best(had).tolist() == [slot]


def test_visits_below_follow_the_improved_policy():
    """Chances 5/8, 2/8, 1/8: 80 visits fall into shares that are at most one visit away."""
    logits = jnp.log(jnp.array([[0.5, 0.25, 0.25]]))
    completed = jnp.log(jnp.array([[10 / 8, 1.0, 0.5]]))
    visits, slot = np.zeros((1, 3), np.int32), jax.jit(slot_below)
    for _ in range(80):
        visits[0, int(slot(node_of(logits, visits), completed)[0])] += 1
    assert np.abs(visits[0] - [50, 20, 10]).max() <= 1


def test_visits_below_follow_the_policy_of_a_modelled_opponent():
    """Two boards of the same node: where the opponent is modelled its values do not count."""
    logits = jnp.log(jnp.array([[0.6, 0.4], [0.6, 0.4]]))
    completed = jnp.array([[0.0, 50.0], [0.0, 50.0]])
    node = node_of(logits, np.zeros((2, 2), np.int32))
    node = node._replace(is_modelled=jnp.array([True, False]))
    assert jax.jit(slot_below)(node, completed).tolist() == [0, 1]


@pytest.mark.parametrize(
    "config",
    [
        SearchConfig(),
        SearchConfig(value_scale=1.0, visit_offset=20.0),
        SearchConfig(value_scale=0.5, rescale_values=False),
        SearchConfig(least_spread=1.5),
    ],
)
def test_completed_values_are_mctxs(config):
    """Nodes of no visits, of few and of many; in one of them the visited slots have no prior."""
    draw = np.random.default_rng(0)
    chance = np.array([0.0, 0.05, 0.5, 1.0] * 8)[:, None]
    visits = (draw.random((32, 9)) < chance) * draw.integers(1, 40, (32, 9))
    logits, qvalues = draw.normal(0, 3, (32, 9)), draw.uniform(-1, 1, (32, 9))
    logits[2] = np.where(visits[2] > 0, -1e9, 0.0)
    node = node_of(logits, visits, draw.uniform(-1, 1, 32), np.where(visits > 0, qvalues, 0.0))

    @jax.jit
    @jax.vmap
    def by_mctx(node: Node) -> jax.Array:
        found = mctx.qtransform_completed_by_mix_value(
            mctx_tree_of(node),
            0,
            value_scale=config.value_scale,
            maxvisit_init=config.visit_offset,
            rescale_values=config.rescale_values,
            epsilon=config.spread,
        )
        return jnp.asarray(found)

    expected = np.asarray(by_mctx(node))
    assert np.ptp(expected) > 1
    found = jax.jit(functools.partial(completed_values, config=config))(node)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)


def test_first_of_the_largest_is_taken():
    low = -np.inf
    scores = np.array([[0.0, 3.0, 3.0], [low, low, low], [low, -1.0, low], [2.0, 2.0, 1.0]])
    assert jax.jit(first_largest)(scores).tolist() == [1, 0, 1, 0]


def test_all_of_the_largest_are_found_and_none_that_is_near_them():
    low = -np.inf
    scores = np.array([[0.0, 3.0, 3.0], [low] * 3, [1.0, 1.0 + 2e-7, low]], np.float32)
    assert jax.jit(are_largest)(scores).tolist() == [
        [False, True, True],
        [True] * 3,
        [False, True, False],
    ]


def test_completed_values_by_hand():
    """Two slots of 3 and 1 visits, one without any; the raw value is 0.5, the prior is even."""
    node = node_of(np.zeros((1, 3)), np.array([[3, 1, 0]]), np.array([0.5]), [[0.6, -0.2, 0.0]])
    mixed = (0.5 + 4 * (0.6 - 0.2) / 2) / 5
    values = np.array([0.6, -0.2, mixed])
    complete = jax.jit(completed_values, static_argnums=1)
    for config, expected in (
        (SearchConfig(), 0.1 * 53 * (values + 0.2) / 0.8),
        (SearchConfig(least_spread=1.6), 0.1 * 53 * (values + 0.2) / 1.6),
        (SearchConfig(rescale_values=False), 0.1 * 53 * values),
        (SearchConfig(value_scale=1.0, rescale_values=False), 53 * values),
        (SearchConfig(visit_offset=0.0, rescale_values=False), 0.3 * values),
    ):
        np.testing.assert_allclose(complete(node, config)[0], expected, rtol=1e-5)


# Rounds visit what sequential halving visits, many slots at once.

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


@pytest.mark.parametrize("found", [0, 1], ids=["one by one", "by rounds"])
def test_visits_and_values_add_up(found):
    """Every node has one visit of its own and those of its children; its value is their mean."""
    found = _both(SIMULATIONS)[found]
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
