"""The tree grows as one drawn by hand does, board by board, and holds no more than it must."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.support.equations import equations_of
from tests.support.learner.searching import FOUR_STONES, random_evaluator
from train.runtime.devices import BY_BOARD, ROWS_BY_BOARD, all_devices
from train.search.config import SearchConfig
from train.search.search import make_search
from train.search.simulation import simulate
from train.search.tree import NO_CHILD, ROOT, Node, Step, Tree, init_tree, node_view, root_view
from wallgo_jax.game.state import initial_state, sizes_of

pytestmark = pytest.mark.usefixtures("as_users_compile")


@pytest.mark.parametrize("kind", ["gumbel", "puct"])
def test_nothing_chooses_between_whole_trees(kind):
    """No select and no cond over nodes times slots but that of the platform, which a compiler
    knows, and two arrays of that size from one simulation to the next."""
    state = jax.eval_shape(lambda: initial_state(FOUR_STONES))
    states = jax.tree.map(lambda x: jax.ShapeDtypeStruct((24, *x.shape), x.dtype), state)
    config = SearchConfig(simulations=20, kind=kind)
    search = make_search(random_evaluator, config, explores=True)
    program = jax.make_jaxpr(search)((), states, jax.random.key(0))
    shape = (24, 21, sizes_of(FOUR_STONES).num_slots)
    kept = []
    for equation in equations_of(program.jaxpr, "cpu"):
        sizes = [getattr(x.aval, "shape", ()) for x in equation.outvars]
        if equation.primitive.name in ("select_n", "cond"):
            assert shape not in sizes or "branches_platforms" in equation.params
        if equation.primitive.name in ("scan", "while") and shape in sizes:
            kept.append(sizes.count(shape))
    assert kept == [2]


@pytest.mark.parametrize(("nodes", "number"), [(2, "uint8"), (256, "uint8"), (257, "uint16")])
def test_children_are_counted_in_no_more_bytes_than_needed(nodes, number):
    make = functools.partial(init_tree, nodes=nodes)
    tree = jax.eval_shape(make, jnp.zeros((3, 5)), jnp.zeros(3), jnp.zeros(3))
    assert tree.children.dtype == number
    assert tree.logits.shape == tree.children.shape == (3, nodes, 5)


# Two slots: "end" pays 1 and ends the game; "pass" hands the turn over in a position worth 1/4.
END, PASS = 0, 1


def _play(slot: jax.Array, position: jax.Array) -> Step:
    is_end = slot == END
    return Step(
        reward=jnp.where(is_end, 1.0, 0.0),
        discount=jnp.where(is_end, 0.0, -1.0),
        logits=jnp.zeros((len(slot), 2)),
        value=jnp.where(is_end, 0.0, 0.25),
        position=2 * position + slot,
        returns=None,
        is_modelled=None,
    )


def _least_visited(keys: jax.Array | None, node: Node) -> jax.Array:
    return node.slot_visits.argmin(axis=1).astype(jnp.int32)


def test_a_tree_by_hand():
    """Four visits of one board, each to the least visited slot of each node:

        end            node 1, worth 1:    root (1/2 + 1) / 2
        pass           node 2, worth -1/4: root (3/2 - 1/4) / 3
        end            node 1 again:       root (5/4 + 1) / 4
        pass, end      node 4, worth 1:    node 2 (1/4 + 1) / 2, root (9/4 - 1) / 5

    Node 3 is left out: the third visit ended where the first had.
    """

    @jax.jit
    def grow(logits: jax.Array) -> tuple[Tree, Node, Node, Node]:
        tree = init_tree(logits, jnp.array([0.5]), jnp.array([1]), nodes=5)
        tree = simulate(
            tree, jax.random.key(0), at_root=_least_visited, below=_least_visited, play=_play
        )
        views = root_view(tree), node_view(tree, jnp.array([ROOT])), node_view(tree, jnp.array([2]))
        return tree, *views

    grown, root, same, second = jax.device_get(grow(jnp.zeros((1, 2))))
    assert grown.visits.tolist() == [[5, 2, 2, 0, 1]]
    assert grown.parents.tolist() == [[ROOT, ROOT, ROOT, ROOT, 2]]
    assert grown.children[0].tolist() == [[1, 2], [0, 0], [4, 0], [0, 0], [0, 0]]
    assert NO_CHILD == 0
    np.testing.assert_allclose(grown.values, [[0.25, 0.0, 0.625, 0.0, 0.0]])
    np.testing.assert_allclose(grown.qvalues[0, 1:], [1.0, -0.625, 0.0, 1.0])
    assert grown.positions[...].tolist() == [[1, 2, 3, 0, 6]]
    jax.tree.map(np.testing.assert_array_equal, root, same)
    assert root.slot_visits.tolist() == [[2, 2]]
    assert root.slot_qvalues.tolist() == [[1.0, -0.625]]
    assert second.slot_visits.tolist() == [[1, 0]]


def test_boards_do_not_see_one_another_nor_the_program_around_them():
    """Boards of different depth in one batch grow as each does alone, and so they do where half of
    the boards are on each device, in a branch that is taken or is not, in turn."""
    starts = np.array([1, 7, 100, 30], np.int32)

    def least_by_taste(keys: jax.Array | None, node: Node) -> jax.Array:
        taste = jnp.where(node.raw_value[:, None] > 0.5, jnp.array([[0, 9]]), jnp.array([[9, 0]]))
        return (node.slot_visits + taste).argmin(axis=1).astype(jnp.int32)

    def grown(starts: jax.Array) -> Tree:
        value = starts / 100.0
        tree = init_tree(jnp.zeros((len(starts), 2)), value, starts, nodes=13)
        return simulate(
            tree, jax.random.key(0), at_root=least_by_taste, below=least_by_taste, play=_play
        )

    def in_turn(starts: jax.Array) -> Tree:
        nothing = jax.tree.map(jnp.zeros_like, jax.eval_shape(grown, starts))

        def search(count: jax.Array, _: None) -> tuple[jax.Array, Tree]:
            return count + 1, jax.lax.cond(count != 1, grown, lambda _: nothing, starts)

        return jax.lax.scan(search, jnp.int32(0), length=3)[1]

    search = jax.jit(grown)
    together = jax.device_get(search(starts))
    for board in range(3):
        alone = search(starts[board : board + 1])
        own = jax.tree.map(lambda x, b=board: x[b : b + 1], together)
        jax.tree.map(np.testing.assert_array_equal, alone, own)
    assert len({tuple(row) for row in together.parents.tolist()}) > 1
    per_device = all_devices(1).per_device(in_turn, (BY_BOARD,), ROWS_BY_BOARD)
    expected = jax.tree.map(lambda x: np.stack([x, np.zeros_like(x), x]), together)
    jax.tree.map(np.testing.assert_array_equal, jax.jit(per_device)(starts), expected)
