"""The bytes of a search tree by formula are those that both engines allocate."""

import functools

import jax
import numpy as np

from tests.support.learner import tiny
from train.bench import memory, search
from train.search.config import SearchConfig
from train.search.engine import Root
from train.search.evaluator import make_play
from train.search.search import make_engine
from train.search.tree import init_tree
from wallgo_jax import PRESETS
from wallgo_jax.game.state import State, sizes_of


def test_node_of_the_standard_board():
    """208 slots: 5 bytes each, 28 a node; stones 8, walls 32, walls left 4, trail 12, player 1,
    ply 2, end 1, the last three a word each. mctx: 24 bytes an action, 20 a node."""
    rules = PRESETS["wallzero-4stone"]
    assert memory.position_bytes(rules) == 60
    assert memory.node_bytes(rules, 64) == 5 * 208 + 28 + 68
    assert memory.node_bytes(rules, 300) == 6 * 208 + 28 + 68
    assert memory.mctx_node_bytes(rules, 2597) == 24 * 2597 + 20 + 60


def test_node_is_what_a_tree_keeps():
    rules, boards, simulations = tiny.RULES, 3, 300

    def planted():
        states = jax.vmap(lambda variant: State(variant, search.initial_position(variant)))(
            tiny.variants(rules, boards)
        )
        evaluation = search.make_uniform_evaluator(players=2)((), states)
        return init_tree(
            evaluation.logits, evaluation.value[:, 0], states.position, nodes=simulations + 1
        )

    kept = jax.tree.leaves(jax.eval_shape(planted))
    nodes = [x for x in kept if x.shape[:2] == (boards, simulations + 1)]
    at_root = [x for x in kept if x.shape == (boards, sizes_of(rules).num_slots)]
    assert len(nodes) + len(at_root) == len(kept)
    assert _bytes(nodes) == boards * (simulations + 1) * memory.node_bytes(rules, simulations)
    assert _bytes(at_root) == boards * memory.root_bytes(rules)


def test_node_is_what_mctx_keeps():
    boards, config = 3, SearchConfig(simulations=5, engine="mctx")
    evaluate = search.make_uniform_evaluator(players=2)

    def tree(key):
        states = jax.vmap(lambda variant: State(variant, search.initial_position(variant)))(
            tiny.variants(tiny.RULES, boards)
        )
        evaluation = evaluate((), states)
        root = Root(
            evaluation.logits, evaluation.value[:, 0], states.position, evaluation.logits == 0
        )
        game = ((), states.variant, states.position.player)
        play = functools.partial(make_play(evaluate), game)
        return make_engine(config, explores=True)(key, root, play).tree

    found = jax.eval_shape(tree, jax.random.key(0))
    nodes = (boards, config.simulations + 1)
    kept = [x for x in jax.tree.leaves(found) if x.shape[:2] == nodes]
    slots = sizes_of(tiny.RULES).num_slots
    assert _bytes(kept) == np.prod(nodes) * memory.mctx_node_bytes(tiny.RULES, slots)


def _bytes(arrays) -> int:
    return sum(x.dtype.itemsize * x.size for x in arrays)


def test_memory_is_that_of_the_engine():
    native, by_mctx = tiny.config(), tiny.config("--search.engine", "mctx")
    assert memory.engine_node_bytes(native, 4) == memory.node_bytes(tiny.RULES, 4)
    assert memory.engine_node_bytes(by_mctx, 4) == memory.mctx_node_bytes(tiny.RULES, 52)
