"""Boards that play themselves: one scan over plies, a search at each, restart at the end."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from train.data.outcomes import Outcome
from train.data.replay import Trajectory
from train.search.search import Search, SearchResult
from wallgo_jax.board import bitboard
from wallgo_jax.board.bitboard import Cells
from wallgo_jax.game import referee
from wallgo_jax.game.state import Position, State, Variant, initial_position

POLICY_DTYPE = jnp.float16


class SelfPlayMetrics(NamedTuple):
    """Sums over an iteration, float32[]."""

    games: jax.Array
    positions: jax.Array
    full: jax.Array  # positions searched in full
    length: jax.Array  # plies of the finished games
    red_wins: jax.Array
    draws: jax.Array
    entropy: jax.Array  # of the policies searched in full, in nats


def first_boards(variant: Variant) -> Position:
    """Boards [B] before their first ply, sharing no buffer with the variant: they get donated."""
    return jax.tree.map(jnp.copy, jax.vmap(initial_position)(variant))


def make_selfplay(
    search: Search,
    *,
    plies: int,
    cheap: Search | None = None,
    full_search_prob: float = 1.0,
    policy_surprise_weight: float = 0.0,
) -> Callable[..., tuple[Position, Trajectory, SelfPlayMetrics]]:
    """An iteration of self-play as a function of (variables, variant [B], boards [B], key,
    coin key).

    It returns the boards as they stand, to be handed to the next iteration, and the plies [T, B].
    Devices that play boards of their own have keys of their own, and the coin key in common;
    without one, the coins come from the key.

    Args:
      search: decides what is played.
      plies: T.
      cheap: the search in little; None for none.
      full_search_prob, policy_surprise_weight: as in `SelfPlayConfig`; `full_search_prob` is idle without `cheap`.
    """
    look = _in_full(search) if cheap is None else _by_coin(search, cheap)

    def selfplay(
        variables: Any,
        variant: Variant,
        boards: Position,
        key: jax.Array,
        coin_key: jax.Array | None = None,
    ):
        def ply(position: Position, drawn: tuple[jax.Array, jax.Array]):
            ply_key, is_full = drawn
            found = look(variables, State(variant, position), ply_key, is_full)
            after, rewards, analysis = jax.vmap(
                lambda state, slot: referee.play_with_analysis(state, slot)
            )(State(variant, position), found.slot)
            over = after.position.terminated
            made = Trajectory(
                position=position,
                slot=found.slot.astype(jnp.int16),
                policy=found.policy.astype(POLICY_DTYPE),
                policy_weight=jnp.broadcast_to(is_full.astype(jnp.float32), over.shape),
                step_outcome=Outcome(rewards, _at_end(over, analysis.owned)),
                terminated=over,
            )
            fresh = jax.vmap(referee.restart_if_over)(after)
            lengths = jnp.where(over, after.position.ply, 0)
            nats = found.surprise if policy_surprise_weight > 0 else None
            return fresh.position, (made, lengths, _entropy(found.policy), nats)

        is_full = jnp.ones(plies, bool)
        if cheap is not None:
            key, own = jax.random.split(key)
            toss = own if coin_key is None else coin_key
            is_full = jax.random.bernoulli(toss, full_search_prob, (plies,))
        boards, (made, lengths, entropy, nats) = jax.lax.scan(
            ply, boards, (jax.random.split(key, plies), is_full)
        )
        metrics = SelfPlayMetrics(
            games=made.terminated.sum().astype(jnp.float32),
            positions=jnp.float32(entropy.size),
            full=made.policy_weight.sum(),
            length=lengths.sum().astype(jnp.float32),
            red_wins=(made.step_outcome.rewards[..., 0] > 0).sum().astype(jnp.float32),
            draws=(made.terminated & (made.step_outcome.rewards == 0).all(axis=-1))
            .sum()
            .astype(jnp.float32),
            entropy=(made.policy_weight * entropy).sum(),
        )
        if nats is not None:
            weight = weigh(made.policy_weight, nats, share=policy_surprise_weight)
            made = made._replace(policy_weight=weight)
        return boards, made, metrics

    return selfplay


def weigh(is_full: jax.Array, surprise: jax.Array, *, share: float) -> jax.Array:
    """float32[...]: weights of which a share goes by surprise float32[...], in nats.

    Their mean over the plies searched in full, float32[...] 1 there and 0 elsewhere, is 1; all
    others weigh nothing.
    """
    mean = (is_full * surprise).sum() / jnp.maximum(is_full.sum(), 1)
    relative = jnp.where(mean > 1e-6, surprise / jnp.maximum(mean, 1e-6), 1.0)
    return is_full * (1 - share + share * relative)


_Look = Callable[[Any, State, jax.Array, jax.Array], SearchResult]
"""(variables, states [B], key, whether in full bool[]) -> what was found."""


def _in_full(search: Search) -> _Look:
    def look(variables: Any, states: State, key: jax.Array, is_full: jax.Array) -> SearchResult:
        del is_full
        return search(variables, states, key)

    return look


def _by_coin(search: Search, cheap: Search) -> _Look:
    def look(variables: Any, states: State, key: jax.Array, is_full: jax.Array) -> SearchResult:
        return jax.lax.cond(is_full, search, cheap, variables, states, key)

    return look


def _at_end(over: jax.Array, owned: tuple[Cells, ...]) -> jax.Array:
    """uint32[B, P, W]: each player's territory where a game is over, bool[B], else none."""
    sets = jax.vmap(bitboard.pack_sets)(owned)
    return jnp.where(over[:, None, None], sets, jnp.uint32(0))


def _entropy(policy: jax.Array) -> jax.Array:
    return -(policy * jnp.log(jnp.maximum(policy, 1e-12))).sum(axis=-1)
