"""Setups: all placements are met once, minimax equals exact play, the book opens matches."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.learner import tiny
from train.arena.match_openings import read_openings
from train.experiments import openings, setups
from train.solver.exact_player import tables_of
from wallgo_jax.game import symmetry
from wallgo_jax.game.rules import PRESETS, Rules
from wallgo_jax.game.sizes import first_placement
from wallgo_jax.game.state import make_variant

FOUR = PRESETS["wallzero-4stone"]
TWO = Rules(size=3, stones=2, order=(0, 1, 1, 0))


def exact_scores(rules: Rules, cells: np.ndarray) -> np.ndarray:
    """Red's score after placements, by the solver's tables."""
    masks = [
        (1 << cells[:, np.flatnonzero(np.array(rules.order[: cells.shape[1]]) == player)]).sum(1)
        for player in (0, 1)
    ]
    return (1 + np.asarray(tables_of(rules).setup)[masks[0], masks[1]]) / 2


def test_every_placement_of_four_stones_is_met_once():
    tree = openings.place_by_turns(FOUR, (0, 0), lambda cells: np.zeros(len(cells)))
    assert [len(turn.cells) for turn in tree] == [14, 14 * 946, 556_248]
    assert [turn.player for turn in tree] == [0, 1, 0]
    assert len(np.unique(tree[-1].cells, axis=0)) == 556_248
    taken = {5 * 7 + 1, 7 + 5, 7 + 1, 5 * 7 + 5}
    assert not taken & set(np.unique(tree[-1].cells).tolist())
    assert (tree[-1].cells[:, :3] == tree[1].cells[tree[-1].parent]).all()


@pytest.mark.parametrize("rules", [tiny.RULES, pytest.param(TWO, marks=pytest.mark.slow)])
def test_minimax_of_exact_values_is_the_value_of_the_game(rules):
    value = functools.partial(exact_scores, rules)
    turns = len(openings.turns_of(rules))
    tree = openings.place_by_turns(rules, (0,) * (turns - 1), value)
    leaves = value(tree[-1].cells)
    backed_up = openings.back_up(tree, leaves)
    (start,) = exact_scores(rules, np.zeros((1, 0), int))
    assert backed_up[0].max() == start
    for turn, values in zip(tree, backed_up, strict=True):
        np.testing.assert_array_equal(values, value(turn.cells))
    (line,) = openings.best_lines(tree, leaves, (1,) * turns)
    assert leaves[line] == start
    narrow = openings.place_by_turns(rules, (1,) * (turns - 1), value)
    assert openings.back_up(narrow, value(narrow[-1].cells))[0].tolist() == [start]


def test_a_player_keeps_its_best_choices_of_each_parent():
    parent, red = np.array([0, 0, 0, 1, 1]), np.array([0.2, 0.9, 0.5, 0.4, 0.1])
    assert openings.best_of_each(parent, red, 0, 2).tolist() == [1, 2, 3, 4]
    assert openings.best_of_each(parent, red, 1, 1).tolist() == [0, 4]


def test_a_book_opens_matches_and_holds_no_turned_copies(tmp_path):
    cells = np.array([[16, 17, 18, 19], [30, 31, 32, 33], [2, 3, 4, 9]], np.int32)
    # Half a turn, which keeps the start, and Red's stones in the other order.
    turned = symmetry.turn_cells(jnp.asarray(cells[0]), jnp.int32(2), make_variant(FOUR))
    copy = np.asarray(turned)[[3, 2, 1, 0]]
    distinct = openings.distinct(FOUR, np.stack([*cells, copy]))
    assert distinct.tolist() == cells.tolist()
    path = tmp_path / setups.BOOK
    path.write_text(
        setups.book_lines(FOUR, (distinct + first_placement(7)).tolist(), [0.5, 0.25, 0.5])
    )
    read, made = read_openings(path, FOUR), setups.positions_of(FOUR, distinct)
    assert read.has_games and read.actions.tolist() == (distinct + first_placement(7)).tolist()
    np.testing.assert_equal(read.position._asdict(), made.position._asdict())
