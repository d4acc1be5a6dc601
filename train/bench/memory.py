"""What a search tree takes, by formula and by the compiled program's own memory analysis.

mctx keeps six arrays of four bytes for each node and action, five for each node, and the position
of each node; n simulations make n + 1 nodes.
"""

from typing import Any, NamedTuple

import jax
import numpy as np

from train.bench.program import compile_program
from train.bench.search import UNIFORM, Searcher, make_moves, searcher
from train.config import RunConfig
from train.devices import BY_BOARD, EVERYWHERE, Devices, all_devices
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import initial_state, make_variant, sizes_of

ARRAYS_BY_ACTION, ARRAYS_BY_NODE, WORD = 6, 5, 4
BOARDS, SIMULATIONS, LIMIT = 4096, 64, 2 * 10**9
"""What is to fit in how many bytes."""


class TreeMemory(NamedTuple):
    """Bytes of a search without network."""

    boards: int
    simulations: int
    actions: int
    formula: int  # a node
    measured: float  # a board and simulation more, by memory analysis
    total: int  # the whole program, by memory analysis


def position_bytes(rules: Rules) -> int:
    """Bytes of one position."""
    leaves = jax.tree.leaves(jax.eval_shape(lambda: initial_state(rules).position))
    return sum(leaf.dtype.itemsize * leaf.size for leaf in leaves)


def node_bytes(rules: Rules, actions: int | None = None) -> int:
    """Bytes of one node of a tree over slots, or over so many actions."""
    actions = sizes_of(rules).num_slots if actions is None else actions
    return WORD * (ARRAYS_BY_ACTION * actions + ARRAYS_BY_NODE) + position_bytes(rules)


def tree_memory(
    config: RunConfig, *, boards: int = BOARDS, simulations: int = SIMULATIONS
) -> TreeMemory:
    """Compile the search twice, for all and for half of the simulations; nothing is run."""
    whole, half = (
        _peak(searcher(UNIFORM, config, count), config.game, boards, all_devices(1))
        for count in (simulations, simulations // 2)
    )
    return TreeMemory(
        boards=boards,
        simulations=simulations,
        actions=sizes_of(config.game).num_slots,
        formula=node_bytes(config.game),
        measured=(whole - half) / boards / (simulations - simulations // 2),
        total=whole,
    )


def _peak(found: Searcher, rules: Rules, boards: int, devices: Devices) -> int:
    program = devices.apart(
        make_moves(found.search, grid=rules.size),
        (EVERYWHERE, BY_BOARD, BY_BOARD, EVERYWHERE, EVERYWHERE),
        (BY_BOARD, EVERYWHERE),
    )

    def shapes(tree: Any) -> Any:
        return jax.tree.map(
            lambda x: jax.ShapeDtypeStruct((boards, *np.shape(x)), np.asarray(x).dtype), tree
        )

    position = initial_state(rules).position
    key = jax.eval_shape(jax.random.key, 0)
    arguments = (found.variables, shapes(make_variant(rules)), shapes(position), key, np.int32(1))
    peak = compile_program(program, arguments, donate=(2,)).stats.peak_bytes
    assert peak is not None
    return peak
