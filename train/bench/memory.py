"""Memory of a search tree, by formula and by the compiled program's own memory analysis.

A node of `train.search.tree` keeps a prior of four bytes and the number of a child for each slot,
seven words, and its position in words; two words for each slot of the root come on top. A node of
mctx keeps six words for each action, five words, and its position. n simulations make n + 1 nodes.
"""

from collections.abc import Iterator
from typing import NamedTuple

import jax
import numpy as np

from train.bench.search import UNIFORM, make_move, searcher
from train.bench.timing import compile_loop
from train.config import RunConfig
from train.runtime.devices import all_devices
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import initial_state, make_variant, sizes_of

WORD, WORDS_BY_NODE = 4, 7
WORDS_BY_ROOT_SLOT = 2
MCTX_WORDS_BY_ACTION, MCTX_WORDS_BY_NODE = 6, 5
BOARDS, SIMULATIONS, LIMIT = 4096, 64, 2 * 10**9
"""A search of this size is to fit in LIMIT bytes."""


class TreeMemory(NamedTuple):
    """Bytes of a search without a network."""

    boards: int
    simulations: int
    actions: int
    formula: int  # bytes of a node
    measured: float  # bytes that one more simulation of a board adds, by memory analysis
    total: int  # bytes of the whole program, by memory analysis


def position_bytes(rules: Rules, *, unit: int = 1) -> int:
    """Bytes of one position, each of its arrays in whole units."""
    leaves = jax.tree.leaves(jax.eval_shape(lambda: initial_state(rules).position))
    return sum(-(-leaf.dtype.itemsize * leaf.size // unit) * unit for leaf in leaves)


def node_bytes(rules: Rules, simulations: int) -> int:
    """Bytes of one node of the native tree over slots that holds that number of simulations."""
    child = np.min_scalar_type(simulations).itemsize
    by_slot = (WORD + child) * sizes_of(rules).num_slots
    return by_slot + WORD * WORDS_BY_NODE + position_bytes(rules, unit=WORD)


def root_bytes(rules: Rules) -> int:
    """Bytes that a tree over slots keeps for its root in addition to the nodes."""
    return WORD * WORDS_BY_ROOT_SLOT * sizes_of(rules).num_slots


def mctx_node_bytes(rules: Rules, actions: int) -> int:
    """Bytes of one node of mctx's own tree over that number of actions."""
    words = MCTX_WORDS_BY_ACTION * actions + MCTX_WORDS_BY_NODE
    return WORD * words + position_bytes(rules)


def engine_node_bytes(config: RunConfig, simulations: int) -> int:
    """Bytes of one node of the tree over slots that the config's engine grows."""
    if config.search.engine == "mctx":
        return mctx_node_bytes(config.rules, sizes_of(config.rules).num_slots)
    return node_bytes(config.rules, simulations)


def tree_memory(
    config: RunConfig, *, boards: int = BOARDS, simulations: int = SIMULATIONS
) -> TreeMemory:
    """Compile the config's search for all and for half of the simulations; runs neither."""
    state = make_variant(config.rules), initial_state(config.rules).position
    shapes = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct((boards, *np.shape(x)), np.asarray(x).dtype), state
    )
    whole, half = (
        compile_loop(
            make_move(searcher(UNIFORM, config, count).search), ((), *shapes), all_devices(1)
        ).stats.peak_bytes
        for count in (simulations, simulations // 2)
    )
    return TreeMemory(
        boards=boards,
        simulations=simulations,
        actions=sizes_of(config.rules).num_slots,
        formula=engine_node_bytes(config, simulations),
        measured=(whole - half) / boards / (simulations - simulations // 2),
        total=whole,
    )


def memory_lines(tree: TreeMemory) -> Iterator[str]:
    """The memory of a search tree, in words."""
    yield (
        f"search tree: {tree.formula:,} bytes a node by formula, {tree.measured:,.0f} a board "
        "and simulation by memory analysis"
    )
    fits = "within" if tree.total <= LIMIT else "beyond"
    yield (
        f"search of {tree.boards:,} boards and {tree.simulations} simulations: "
        f"{tree.total / 1e9:.2f} GB by memory analysis, {fits} {LIMIT / 1e9:g} GB"
    )
