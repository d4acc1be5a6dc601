"""What a search reports: lines, each player's value and cells, drawn places; worked by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from train.search.evaluator import by_player
from train.search.report import draw_place, lines_below, owners_by_player, share_value
from train.search.tree import init_tree
from wallgo_jax.game.actions import NO_ACTION, action_of_slot
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import initial_state


def test_lines_follow_the_most_visits_then_the_highest_value():
    """Node 1 is below slot 2 of the root. Below it slot 0 has less visits, slots 1 and 3 have two
    each, 3 the higher value; nothing is below node 5."""
    state = initial_state(Rules(size=5, players=2, stones=2, start=(), order=(0, 1, 1, 0)))
    one = jax.tree.map(lambda x: jnp.asarray(x)[None], state)
    tree = init_tree(
        jnp.zeros((1, state.num_slots)), jnp.zeros(1, jnp.float32), one.position, nodes=6
    )
    edges = np.array([(0, 2), (1, 0), (1, 1), (1, 3), (4, 4)])
    tree = tree._replace(
        children=tree.children.at[0, edges[:, 0], edges[:, 1]].set(np.arange(1, 6, dtype=np.uint8)),
        positions=jax.tree.map(lambda x: jnp.broadcast_to(x[:, :1], x.shape), tree.positions),
        visits=jnp.array([[7, 6, 1, 2, 2, 1]]),
        qvalues=jnp.array([[0.0, 0.0, 0.9, 0.1, 0.2, 1.0]]),
    )
    lines = jax.jit(lines_below)(tree, one.variant, jnp.array([[2, 7]]))
    expected = [[2, 3, 4], [7]]
    for line, slots in zip(lines[0], expected, strict=True):
        named = [int(action_of_slot(state, jnp.int32(slot))) for slot in slots]
        assert line.tolist() == named + [NO_ACTION] * (8 - len(slots))


def test_shared_values_add_up_to_zero():
    scores = np.array([[0.2, -0.1, -0.1], [0.9, 0.3, 0.3]], np.float32)
    shared = share_value(scores, np.array([0.4, -0.5], np.float32))
    np.testing.assert_allclose(shared, [[0.4, -0.2, -0.2], [-0.5, 0.25, 0.25]], atol=1e-6)
    assert scores[0, 0] == np.float32(0.2)


def test_numbers_are_turned_from_the_movers_side_to_the_players():
    shares = np.array([[[1, 2, 3]], [[4, 5, 6]]])
    assert by_player(shares, np.array([1, 2], np.int8)).tolist() == [[[3, 1, 2]], [[5, 6, 4]]]
    owners = np.array([[[1, 2, 3, 9]]])
    assert owners_by_player(owners, np.array([2])).tolist() == [[[2, 3, 1, 9]]]


@pytest.mark.parametrize(("uniform", "place"), [(0.0, 0), (0.09, 0), (0.11, 2), (0.999999, 2)])
def test_places_are_drawn_by_a_power_of_their_chances(uniform, place):
    assert draw_place(np.array([0.25, 0.0, 0.75]), 0.5, uniform) == place


def test_a_place_without_a_chance_is_never_drawn():
    assert draw_place(np.array([0.0, 1.0]), 1.0, 0.0) == 1
