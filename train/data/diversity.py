"""Diversity of self-play: entropies of its policies, and numbers of openings that differ.

T plies, B boards, A slots, P players, S stones a player, W words of a set of cells.
"""

from collections.abc import Callable
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from train.game import MOVE_OFFSETS, NUM_MOVES, NUM_SIDES, PLAYS_PER_STONE, Position, State, Variant

OPENING_PLIES = 8
"""Games that differ after this many plies have different openings."""
MIDDLE_PLY, LATE_PLY = 16, 32
"""First plies of the middle and of the late phase of play."""
_CLASSES = ("stay", "one_step", "two_steps")
"""Names of moves of 0, 1 and 2 steps."""


class Mean(NamedTuple):
    """A mean in parts, which add up over plies and devices."""

    total: jax.Array  # float32[...]
    weight: jax.Array  # float32[...]


def policy_figures(policy: jax.Array, states: State) -> dict[str, Mean]:
    """Figures of policies float32[B, A] in states [B], each over the plies that it is about.

    Returns:
      By the names of a row of metrics: entropies in nats of whole policies (`policy_entropy`); of
      placements, and of plays up to MIDDLE_PLY, between it and LATE_PLY, and after it
      (`_placement`, `_opening`, `_middle`, `_late`); of a play's number of `_steps`, and of its
      `_wall`, given stone and move; of plays of one class, given that a play is one, weighed by
      their share (`_stay`, `_one_step`, `_two_steps`); and these shares (`policy_share_stay`, ...).
      By the chain rule the entropy of a play is that of stone and move and that of the wall, given
      them.
    """
    chex.assert_rank(policy, 2)
    ply, placements = states.position.ply, states.variant.num_placements
    nats, is_play = entropy(policy), ply >= placements
    stones = states.position.stones.shape[-1]
    plays = policy[:, : stones * PLAYS_PER_STONE].reshape(-1, stones, NUM_MOVES, NUM_SIDES)
    moves = plays.sum(axis=-1)
    shares = plays.sum(axis=(1, 3)) @ _make_steps_of_moves()
    walls = nats - entropy(moves.reshape(-1, stones * NUM_MOVES))
    # Within each class: -sum p log p of its plays, then of them as shares of the class.
    bits = -(plays * jnp.log(jnp.maximum(plays, 1e-12)))
    by_class = bits.sum(axis=(1, 3)) @ _make_steps_of_moves()
    by_class += shares * jnp.log(jnp.maximum(shares, 1e-12))

    def where(is_about: jax.Array, nats: jax.Array = nats) -> Mean:
        weight = is_about.astype(jnp.float32)
        return Mean(weight * nats, weight)

    entropies = {
        "": where(jnp.ones_like(is_play)),
        "_placement": where(~is_play),
        "_opening": where(is_play & (ply < MIDDLE_PLY)),
        "_middle": where(is_play & (ply >= MIDDLE_PLY) & (ply < LATE_PLY)),
        "_late": where(is_play & (ply >= LATE_PLY)),
        "_steps": where(is_play, entropy(shares)),
        "_wall": where(is_play, walls),
    }
    figures = {f"policy_entropy{name}": mean for name, mean in entropies.items()}
    for steps, name in enumerate(_CLASSES):
        share = shares[:, steps]
        figures[f"policy_entropy_{name}"] = Mean(is_play * by_class[:, steps], is_play * share)
        figures[f"policy_share_{name}"] = where(is_play, share)
    return figures


def entropy(policy: jax.Array) -> jax.Array:
    """float32[...] nats, of distributions float32[..., A]."""
    return -(policy * jnp.log(jnp.maximum(policy, 1e-12))).sum(axis=-1)


def _make_steps_of_moves() -> np.ndarray:
    """float32[13, 3]: 1 at the number of steps of each move."""
    steps = [abs(row) + abs(column) for row, column in MOVE_OFFSETS]
    return np.eye(len(_CLASSES), dtype=np.float32)[steps]


class OpeningDiversity(NamedTuple):
    """Numbers of some games by their openings, float32[]."""

    games: jax.Array
    distinct: jax.Array  # openings
    mode: jax.Array  # games with the most frequent opening


def opening_diversity(
    variant: Variant,
    position: Position,
    gather: Callable[[jax.Array], jax.Array] = lambda own: own,
) -> tuple[OpeningDiversity, OpeningDiversity]:
    """Count the openings of an iteration that differ, by hashes of 31 bits.

    Positions count, not orders of plies; stones of a player are alike.

    Args:
      variant: [B].
      position: [T, B], before each ply.
      gather: joins the arrays of several devices.

    Returns:
      Counts of the positions after the last placement, empty where there is none, and of those
      after OPENING_PLIES plies, of the games that were played up to there.
    """
    number, setup = position_hash(position), variant.num_placements[None]  # [T, B], [1, B]
    ends_setup = (position.ply == setup) & (setup > 0)
    ends_opening = position.ply == OPENING_PLIES
    setups, openings = (_count(gather(_mark(number, x))) for x in (ends_setup, ends_opening))
    return setups, openings


_NO_GAME = np.uint32(0xFFFFFFFF)


def _mark(number: jax.Array, is_game: jax.Array) -> jax.Array:
    """uint32[T * B]: hashes, or _NO_GAME, which is above every hash."""
    return jnp.where(is_game, number >> 1, _NO_GAME).reshape(-1)


def _count(numbers: jax.Array) -> OpeningDiversity:
    order = jnp.sort(numbers.reshape(-1))
    is_game, place = order != _NO_GAME, jnp.arange(order.size)
    is_new = is_game & ((place == 0) | (order != jnp.roll(order, 1)))
    first = jax.lax.cummax(jnp.where(is_new, place, 0))
    run = jnp.where(is_game, place - first + 1, 0)
    counts = is_game.sum(), is_new.sum(), run.max()
    return OpeningDiversity(*(count.astype(jnp.float32) for count in counts))


def position_hash(position: Position) -> jax.Array:
    """uint32[...]: a hash of stones and walls (Appleby, MurmurHash3, the variant of 32 bits)."""
    stones = jnp.sort(position.stones.astype(jnp.uint32), axis=-1)
    shape = position.ply.shape
    words = jnp.concatenate([stones.reshape(*shape, -1), position.walls.reshape(*shape, -1)], -1)
    number = jnp.zeros(shape, jnp.uint32)
    for index in range(words.shape[-1]):
        word = _rotate(words[..., index] * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
        number = _rotate(number ^ word, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    number = (number ^ (number >> 16)) * np.uint32(0x85EBCA6B)
    number = (number ^ (number >> 13)) * np.uint32(0xC2B2AE35)
    return number ^ (number >> 16)


def _rotate(words: jax.Array, bits: int) -> jax.Array:
    return (words << bits) | (words >> (32 - bits))
