"""Evaluators without a network, positions to search from, and both engines' trees in one form."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mctx
import numpy as np

from train.bench.search import make_uniform_evaluator
from train.network import MASKED
from train.search.config import SearchConfig
from train.search.evaluator import Evaluation, make_play
from train.search.search import make_engine
from train.search.tree import NO_CHILD, Choice, Node, Root
from wallgo_jax import Rules
from wallgo_jax.board.geometry import DOWN, LEFT
from wallgo_jax.game import actions, chance, referee
from wallgo_jax.game.state import State, initial_state

RED, BLUE = 0, 1
DUEL = Rules(size=3, players=2, stones=1, start=(), order=(0, 1))
# The same side moves twice running: two placements, and Red's first move after setup.
FOUR_STONES = Rules(size=3, players=2, stones=2, start=(), order=(0, 1, 1, 0))
TRIO = Rules(size=3, players=3, stones=1, start=(), order=(0, 1, 2))

legal_slots = jax.jit(actions.legal_slots)
play = jax.jit(referee.play)


def repeat(tree: Any, count: int) -> Any:
    """[count, ...]: the same arrays for `count` boards."""
    return jax.tree.map(lambda x: jnp.asarray(np.broadcast_to(x, (count, *x.shape))), tree)


def stack(states: list[State]) -> State:
    return jax.tree.map(lambda *x: jnp.asarray(np.stack(x)), *jax.device_get(states))


@jax.jit
def random_ply(state: State, bits: jax.Array) -> State:
    slot = chance.choose_bit(bits, actions.legal_words(state))
    return referee.play(state, slot)[0]


def game_of(rules: Rules, plies: int) -> list[State]:
    """The first position of a random game and those after each ply."""
    states = [initial_state(rules)]
    for ply in range(plies):
        states.append(random_ply(states[-1], jnp.uint32(0x85EBCA6B * (ply + 1) % 2**32)))
    return states


@functools.cache
def random_states(rules: Rules, games: int, first: int, last: int) -> State:
    """[B]: random games at each ply from the first to the last, over or not, as NumPy arrays."""
    bits = jax.random.bits(jax.random.key(0), (games, last), jnp.uint32)

    def line(row: jax.Array) -> State:
        def ply(state: State, bits: jax.Array) -> tuple[State, State]:
            after = random_ply(state, bits)
            return after, after

        return jax.lax.scan(ply, initial_state(rules), row)[1]

    states = jax.device_get(jax.jit(jax.vmap(line))(bits))
    return jax.tree.map(lambda x: x[:, first - 1 :].reshape(-1, *x.shape[2:]), states)


even_evaluator = make_uniform_evaluator()
"""Every legal slot is as good as the others, and nobody is ahead."""


def random_evaluator(variables: Any, states: State, analysis: Any = None) -> Evaluation:
    """Any logits and values, always the same of the same position, to the bit."""
    del variables, analysis
    legal = jax.vmap(actions.legal_slots)(states)
    leaves = jax.tree.leaves(states.position)
    flat = [x.reshape(len(x), -1).astype(jnp.uint32) for x in leaves]
    numbers = jnp.concatenate(flat, axis=1).T
    # A loop, which compiles sooner than a line for each number.
    seed, _ = jax.lax.scan(
        lambda seed, number: (stir(seed ^ number), None), stir(numbers[0]), numbers[1:]
    )
    draws = jnp.arange(legal.shape[1] + states.position.stones.shape[1], dtype=jnp.uint32)
    uniform = (stir(seed[:, None] + draws[None]) >> 8) / jnp.float32(2**24)
    slots, values = uniform[:, : legal.shape[1]], uniform[:, legal.shape[1] :]
    return Evaluation(jnp.where(legal, 4.0 * slots, MASKED), 2.0 * values - 1.0)


def stir(bits: jax.Array) -> jax.Array:
    """Other bits, that tell nothing of those they come from."""
    bits = (bits ^ (bits >> 16)) * jnp.uint32(0x7FEB352D)
    bits = (bits ^ (bits >> 15)) * jnp.uint32(0x846CA68B)
    return bits ^ (bits >> 16)


# The mover stands on B1, the other on A1. A wall left of B1 shuts the other into one cell: 8 to 1
# at once. To step to C1 and wall its left side shuts the mover into one cell: 1 to 8 at once.
#
#     o X .        o the other   X the mover
#     ---   ---    walls below A1 and below C1
#     . . .
#     . . .
WIN = 0 * 4 + LEFT
LOSS = 4 * 4 + LEFT


@functools.partial(jax.jit, static_argnames="mover")
def drawn_duel(*, mover: int) -> State:
    """The position above, by colours."""
    state = initial_state(DUEL)
    cells = {mover: 1, 1 - mover: 0}
    walls = referee.wall_bits(jnp.int32(0), jnp.int32(DOWN), grid=3)
    walls |= referee.wall_bits(jnp.int32(2), jnp.int32(DOWN), grid=3)
    position = state.position._replace(
        stones=jnp.array([[cells[RED]], [cells[BLUE]]], jnp.int8),
        walls=state.position.walls.at[1 - mover].set(walls),
        player=jnp.int8(mover),
        ply=jnp.int16(4),
    )
    return state._replace(position=position)


def node_of(logits: Any, visits: Any, raw_value: Any = 0.0, qvalues: Any = 0.0) -> Node:
    """A node of each board from its slots' logits, visits and Q-values [B, A]; `value` is 0."""
    shape = np.shape(visits)
    return Node(
        logits=jnp.asarray(logits, jnp.float32),
        raw_value=jnp.broadcast_to(jnp.float32(raw_value), shape[:1]),
        value=jnp.zeros(shape[:1]),
        visits=jnp.asarray(1 + np.sum(visits, axis=1), jnp.int32),
        slot_visits=jnp.asarray(visits, jnp.int32),
        slot_qvalues=jnp.broadcast_to(jnp.asarray(qvalues, jnp.float32), shape),
        is_modelled=None,
    )


def mctx_tree_of(node: Node) -> Any:
    """mctx's tree of one board that holds this node alone; the Q-values stand as rewards."""
    make_tree: Any = mctx.Tree  # a chex dataclass, whose fields type checkers do not see
    by_slot = jnp.zeros((1, *node.logits.shape))
    return make_tree(
        node_visits=node.visits[None],
        raw_values=node.raw_value[None],
        node_values=node.value[None],
        parents=jnp.zeros(1, jnp.int32),
        action_from_parent=jnp.zeros(1, jnp.int32),
        children_index=by_slot,
        children_prior_logits=node.logits[None],
        children_visits=node.slot_visits[None],
        children_rewards=node.slot_qvalues[None],
        children_discounts=by_slot,
        children_values=by_slot,
        embeddings=(),
        root_invalid_actions=by_slot[0],
        extra_data=None,
    )


class Edges(NamedTuple):
    """The steps of a grown tree, one entry each."""

    board: np.ndarray
    node: np.ndarray
    slot: np.ndarray
    child: np.ndarray
    visits: np.ndarray
    reward: np.ndarray
    discount: np.ndarray
    value: np.ndarray  # of the child


class Grown(NamedTuple):
    """An engine's choices and trees from some states."""

    choice: Choice
    root_visits: np.ndarray  # int[B, A]
    node_visits: np.ndarray  # int[B, N]
    parents: np.ndarray  # int[B, N]
    values: np.ndarray  # float[B, N]
    positions: Any  # [B, N, ...]
    edges: Edges


@functools.cache
def grown(rules: Rules, plies: tuple[int, int, int], config: SearchConfig, explores: bool) -> Grown:
    """Search from `random_states` by `random_evaluator` with a config's engine."""

    def run(states: State, key: jax.Array) -> Choice:
        evaluation, legal = random_evaluator((), states), jax.vmap(actions.legal_slots)(states)
        root = Root(evaluation.logits, evaluation.value[:, 0], states.position, legal)
        game = ((), states.variant, states.position.player)
        step = functools.partial(make_play(random_evaluator), game)
        return make_engine(config, explores=explores)(key, root, step)

    return grown_of(jax.jit(run)(random_states(rules, *plies), jax.random.key(11)), config)


def grown_of(choice: Choice, config: SearchConfig) -> Grown:
    """An engine's choice with its tree in the form of both."""
    return (_from_mctx if config.engine == "mctx" else _from_native)(jax.device_get(choice))


def _from_mctx(choice: Choice) -> Grown:
    tree = choice.tree
    board, node, slot = at = np.nonzero(tree.children_index >= 0)
    child = tree.children_index[at]
    kept = (tree.children_visits, tree.children_rewards, tree.children_discounts)
    of_each = [*(x[at] for x in kept), tree.node_values[board, child]]
    edges = Edges(board, node, slot, child, *of_each)
    visits = tree.children_visits[:, 0], tree.node_visits
    parents = np.maximum(tree.parents, 0)
    return Grown(choice, *visits, parents, tree.node_values, tree.embeddings, edges)


def _from_native(choice: Choice) -> Grown:
    tree = choice.tree
    board, node, slot = at = np.nonzero(tree.children != NO_CHILD)
    child = tree.children[at]
    kept = (tree.visits, tree.rewards, tree.discounts, tree.values)
    edges = Edges(board, node, slot, child, *(x[board, child] for x in kept))
    root_visits = np.zeros(tree.root_visits.shape, int)
    at_root = node == 0
    root_visits[board[at_root], slot[at_root]] = edges.visits[at_root]
    positions = jax.device_get(tree.positions[...])
    return Grown(choice, root_visits, tree.visits, tree.parents, tree.values, positions, edges)
