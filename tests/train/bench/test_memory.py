"""The bytes of a node of a search tree, as both engines allocate it."""

import functools

import jax
import pytest

from tests.support.learner import tiny
from train.bench import search
from train.search.config import SearchConfig
from train.search.evaluator import make_play
from train.search.search import make_engine
from train.search.tree import Root, init_tree
from wallgo_jax import PRESETS
from wallgo_jax.game.state import State, sizes_of

RULES, BOARDS = PRESETS["wallzero-4stone"], 3


def node_bytes(make_tree, nodes: int) -> float:
    """Bytes of the arrays [BOARDS, nodes, ...] of a tree, a node; others are of the roots."""
    arrays = [
        x for x in jax.tree.leaves(jax.eval_shape(make_tree)) if x.shape[:2] == (BOARDS, nodes)
    ]
    return sum(x.dtype.itemsize * x.size for x in arrays) / BOARDS / nodes


def roots():
    states = jax.vmap(lambda variant: State(variant, search.initial_position(variant)))(
        tiny.variants(RULES, BOARDS)
    )
    return states, search.make_uniform_evaluator()((), states)


@pytest.mark.parametrize(("simulations", "child"), [(64, 1), (300, 2)])
def test_a_node_keeps_a_prior_and_a_child_for_each_slot(simulations, child):
    """208 slots of a prior of four bytes and a child's number; seven words a node; of the position
    stones 8, walls 32, walls left 4, trail 12, and player, ply, end a word each."""

    def tree():
        states, evaluation = roots()
        value = evaluation.value[:, 0]
        return init_tree(evaluation.logits, value, states.position, nodes=simulations + 1)

    assert node_bytes(tree, simulations + 1) == (4 + child) * 208 + 28 + 68


def test_a_node_of_mctx_keeps_six_words_for_each_action():
    """Five words a node; the position's player, ply and end are 1, 2 and 1 bytes."""
    config = SearchConfig(simulations=5, engine="mctx")
    evaluate = search.make_uniform_evaluator()

    def tree():
        states, (logits, value) = roots()
        root = Root(logits, value[:, 0], states.position, logits == 0)
        play = functools.partial(make_play(evaluate), ((), states.variant, states.position.player))
        return make_engine(config, explores=True)(jax.random.key(0), root, play).tree

    assert sizes_of(RULES).num_slots == 208
    assert node_bytes(tree, 6) == 24 * 208 + 20 + 60
