"""What a search says of positions: its roots, lines of play, and each player's value and cells.

B boards, A slots, K lines, D plies of a line, P players.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.network import MASKED
from train.search.arrays.entries import Boards
from train.search.tree import NO_CHILD, ROOT, Node, Tree
from wallgo_jax.game import actions
from wallgo_jax.game.actions import NO_ACTION
from wallgo_jax.game.state import State, Variant

LINE_PLIES = 8
"""D."""
Numbers = np.ndarray | jax.Array
"""An array on the host; records of device arrays keep their type when they are fetched."""


class RootReport(NamedTuple):
    """The roots of some trees after a search. Values are the mover's."""

    slot: jax.Array  # int32[B], the chosen one
    policy: jax.Array  # float32[B, A], 0 at illegal slots
    value: jax.Array  # float32[B]
    visits: jax.Array  # int32[B]
    scores: jax.Array  # float32[B, P], as evaluated before the search, the player to move first
    prior: jax.Array  # float32[B, A], chances, 0 at illegal slots
    slot_visits: jax.Array  # int32[B, A]
    slot_qvalues: jax.Array  # float32[B, A], 0 where not visited
    actions: jax.Array  # int32[B, A], public ids of the slots
    legal: jax.Array  # bool[B, A]


def report_roots(
    root: Node, states: State, scores: jax.Array, slot: jax.Array, policy: jax.Array
) -> RootReport:
    """Make the report of roots.

    Args:
      root: of each tree.
      states: [B], at the roots.
      scores: float32[B, P], as evaluated, the player to move first.
      slot: int32[B], the search's choice.
      policy: float32[B, A], of the search.
    """
    legal = root.logits > MASKED
    return RootReport(
        slot=slot,
        policy=policy,
        value=root.value,
        visits=root.visits,
        scores=scores,
        prior=jnp.where(legal, jax.nn.softmax(root.logits, axis=1), 0.0),
        slot_visits=root.slot_visits,
        slot_qvalues=root.slot_qvalues,
        actions=jax.vmap(_public_actions)(states),
        legal=legal,
    )


def _public_actions(state: State) -> jax.Array:
    return jax.vmap(actions.action_of_slot, in_axes=(None, 0))(state, jnp.arange(state.num_slots))


_Walk = tuple[jax.Array, jax.Array, jax.Array]
"""Nodes, slots and whether the lines go on."""


def lines_below(tree: Tree, variant: Variant, slots: jax.Array, boards: Boards = None) -> jax.Array:
    """int32[B, K, D]: public actions of slots of the roots, each followed by those of the most
    visits, of equal visits that of the highest value; NO_ACTION behind the end of a line.

    Args:
      tree: its positions are those of the game.
      variant: [B].
      slots: int32[B, K].
      boards: int32[B], the tree's boards; all in turn by default.
    """
    rows = (jnp.arange(len(slots)) if boards is None else boards)[:, None]
    variants = jax.tree.map(
        lambda x: jnp.broadcast_to(x[:, None], (*slots.shape, *x.shape[1:])), variant
    )

    def step(walk: _Walk, _: None) -> tuple[_Walk, jax.Array]:
        node, slot, goes_on = walk
        there = State(variants, tree.positions[rows, node])
        action = jax.vmap(jax.vmap(actions.action_of_slot))(there, slot)
        child = tree.children[rows, node, slot].astype(jnp.int32)
        below = tree.children[rows, child].astype(jnp.int32)  # [B, K, A]
        visits = jnp.where(below != NO_CHILD, tree.visits[rows[..., None], below], 0)
        most = visits.max(axis=-1, keepdims=True)
        value = jnp.where(visits == most, tree.qvalues[rows[..., None], below], -jnp.inf)
        # Nothing is below the end of a game.
        further = (child != NO_CHILD) & (most[..., 0] > 0)
        walk = child, value.argmax(axis=-1).astype(slot.dtype), goes_on & further
        return walk, jnp.where(goes_on, action, NO_ACTION)

    start = jnp.full_like(slots, ROOT), slots, jnp.ones(slots.shape, jnp.bool_)
    return jnp.moveaxis(jax.lax.scan(step, start, None, length=LINE_PLIES)[1], 0, -1)


def share_value(scores: Numbers, value: Numbers) -> np.ndarray:
    """float32[B, P]: each player's value, once a search has found the mover's, which comes first.

    Rewards add up to zero. A search of more than two players knows the mover's alone: the others
    share the change equally.

    Args:
      scores: float32[B, P], as evaluated before the search, the mover first.
      value: float32[B], the mover's after it.
    """
    shares = np.array(scores)
    shares[:, 0] = value
    shares[:, 1:] -= shares.sum(axis=1, keepdims=True) / (shares.shape[1] - 1)
    return shares


def by_player(shares: Numbers, mover: Numbers) -> np.ndarray:
    """[B, ..., P]: numbers of players from the movers [B] on, turned so that player 0 is first."""
    players = shares.shape[-1]
    place = (np.arange(players) - np.asarray(mover, int)[:, None]) % players
    place = place.reshape(len(place), *[1] * (shares.ndim - 2), players)
    return np.take_along_axis(np.asarray(shares), place, axis=-1)


def owners_by_player(owners: Numbers, mover: Numbers) -> np.ndarray:
    """[B, ..., P + 1]: chances of owners from the movers [B] on, nobody last, by `by_player`."""
    return np.concatenate([by_player(owners[..., :-1], mover), owners[..., -1:]], axis=-1)


def draw_place(policy: Numbers, temperature: float, uniform: float) -> int:
    """A place with chances policy^(1 / temperature), [A], by a number from 0 to below 1."""
    policy = np.asarray(policy, np.float64)
    logits = np.log(np.maximum(policy, 1e-300)) / temperature
    chances = np.where(policy > 0, np.exp(logits - logits.max()), 0.0)
    below = (chances / chances.sum()).cumsum()
    return int((below / below[-1]).searchsorted(uniform, side="right"))
