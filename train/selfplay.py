"""Boards that play themselves: one scan over plies, a search at each, restart at the end."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from train.replay import Plies
from train.search import SearchResult
from train.targets import Ending
from wallgo_jax.game import referee
from wallgo_jax.game.state import Position, State, Variant, initial_position

POLICY_DTYPE = jnp.float16


@dataclasses.dataclass(frozen=True)
class SelfPlayConfig:
    """Size of an iteration of self-play.

    Attributes:
      boards: boards played at once.
      plies: plies of every board in one iteration.
    """

    boards: int = 256
    plies: int = 32

    def __post_init__(self) -> None:
        if self.boards < 1 or self.plies < 1:
            raise ValueError("boards and plies must be at least 1")


class SelfPlayMetrics(NamedTuple):
    """Sums over an iteration, float32[]."""

    games: jax.Array
    positions: jax.Array
    length: jax.Array  # plies of the finished games
    red_wins: jax.Array
    draws: jax.Array
    entropy: jax.Array  # of the improved policies, in nats


def first_boards(variant: Variant) -> Position:
    """Boards [B] before their first ply, sharing no buffer with the variant: they get donated."""
    return jax.tree.map(jnp.copy, jax.vmap(initial_position)(variant))


def make_selfplay(
    search: Callable[[Any, State, jax.Array], SearchResult], *, grid: int, plies: int
) -> Callable[[Any, Variant, Position, jax.Array], tuple[Position, Plies, SelfPlayMetrics]]:
    """An iteration of self-play as a function of (variables, variant [B], boards [B], key).

    It returns the boards as they stand, to be handed to the next iteration, and the plies [T, B].
    """

    def selfplay(variables: Any, variant: Variant, boards: Position, key: jax.Array):
        def ply(position: Position, ply_key: jax.Array):
            found = search(variables, State(variant, position), ply_key)
            after, rewards = jax.vmap(lambda state, slot: referee.play(state, slot, grid=grid))(
                State(variant, position), found.slot
            )
            over = after.position.terminated
            made = Plies(
                position=position,
                slot=found.slot.astype(jnp.int16),
                policy=found.policy.astype(POLICY_DTYPE),
                paid=_paid(after, rewards, grid=grid),
                terminated=over,
            )
            fresh = jax.vmap(referee.restart_if_over)(after)
            lengths = jnp.where(over, after.position.ply, 0)
            return fresh.position, (made, lengths, _entropy(found.policy))

        boards, (made, lengths, entropy) = jax.lax.scan(ply, boards, jax.random.split(key, plies))
        metrics = SelfPlayMetrics(
            games=made.terminated.sum().astype(jnp.float32),
            positions=jnp.float32(entropy.size),
            length=lengths.sum().astype(jnp.float32),
            red_wins=(made.paid.rewards[..., 0] > 0).sum().astype(jnp.float32),
            draws=(made.terminated & (made.paid.rewards == 0).all(axis=-1))
            .sum()
            .astype(jnp.float32),
            entropy=entropy.sum(),
        )
        return boards, made, metrics

    return selfplay


def _paid(after: State, rewards: jax.Array, *, grid: int) -> Ending:
    """What the plies that led to `after` [B] ended their games with."""
    owned = jax.vmap(lambda state: referee.owned_cells(state, grid=grid))(after)
    over = after.position.terminated[:, None, None]
    return Ending(rewards, jnp.where(over, owned, jnp.uint32(0)))


def _entropy(policy: jax.Array) -> jax.Array:
    return -(policy * jnp.log(jnp.maximum(policy, 1e-12))).sum(axis=-1)
