"""Self-play: one scan over plies, a search at each, finished boards restart at once.

B boards, T plies of an iteration.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp

from train.data.diversity import PolicyEntropies, policy_entropies
from train.data.openings import (
    SEARCH_DECIDES,
    Exploration,
    Opening,
    make_exploration,
    no_opening,
    open_games,
)
from train.data.outcomes import Outcome
from train.data.replay import Trajectory
from train.search.search import Search, SearchResult
from wallgo_jax.board import bitboard
from wallgo_jax.board.bitboard import Cells
from wallgo_jax.game import referee
from wallgo_jax.game.state import Position, State, Variant, initial_position

POLICY_DTYPE = jnp.float16


@dataclasses.dataclass(frozen=True)
class TargetOptions:
    """What plies teach beside their outcome, as in `SelfPlayConfig`.

    Attributes:
      policy_surprise_weight: as there.
      cheap_policy_weight: as there.
      has_root_value: whether plies keep the value that the search found.
    """

    policy_surprise_weight: float = 0.0
    cheap_policy_weight: float = 0.0
    has_root_value: bool = False


PLAIN_TARGETS = TargetOptions()


class SelfPlayMetrics(NamedTuple):
    """Sums over an iteration, float32[]."""

    games: jax.Array  # that ended
    positions: jax.Array
    full: jax.Array  # positions that got a full search
    length: jax.Array  # plies of the games that ended
    red_wins: jax.Array
    draws: jax.Array
    drawn: jax.Array  # positions whose ply the opening drew
    entropies: PolicyEntropies  # of the policies that are learned


class Boards(NamedTuple):
    """Games under way [B]."""

    position: Position
    opening: Opening


class _Plies(NamedTuple):
    """The plies that the scan stacks: leading axes [T, B]."""

    made: Trajectory  # its policy_weight not weighed by surprise yet
    length: jax.Array  # int[...], plies of the game where the ply ended it, else 0
    is_full: jax.Array  # bool[...], whether the search was full
    is_drawn: jax.Array  # bool[...], whether the opening drew the ply
    entropies: PolicyEntropies  # float32[...]
    surprise: jax.Array | None  # float32[...], nats; None where no weight depends on it


def first_boards(variant: Variant) -> Boards:
    """Make boards [B] before their first ply; they share no buffer, so they can be donated."""
    position = jax.tree.map(jnp.copy, jax.vmap(initial_position)(variant))
    # The first ply of a game draws its opening.
    return Boards(position, no_opening(position.ply.shape[0]))


def make_selfplay(
    search: Search,
    *,
    plies: int,
    cheap: Search | None = None,
    full_search_prob: float = 1.0,
    targets: TargetOptions = PLAIN_TARGETS,
    exploration: Exploration = SEARCH_DECIDES,
) -> Callable[..., tuple[Boards, Trajectory, SelfPlayMetrics]]:
    """Make a function that plays an iteration.

    Args:
      search: the full search; it decides the moves.
      plies: T.
      cheap: the cheap search; None to search every ply in full.
      full_search_prob: as in `SelfPlayConfig`; not read without `cheap`.
      targets: what plies teach.
      exploration: plies that are played in place of the search's choice.

    Returns:
      (variables, variant [B], boards [B], key, coin key or None) -> the boards as they stand, with
      which the next iteration goes on, the plies [T, B] and their sums. Devices that play boards of
      their own pass keys of their own and one coin key, which draws the plies of full searches;
      without a coin key the key draws them.
    """
    choose = _always(search) if cheap is None else _by_coin(search, cheap)
    explore = make_exploration(exploration)

    def selfplay(
        variables: Any,
        variant: Variant,
        boards: Boards,
        key: jax.Array,
        coin_key: jax.Array | None = None,
    ) -> tuple[Boards, Trajectory, SelfPlayMetrics]:
        chex.assert_rank(boards.position.ply, 1)
        chex.assert_tree_shape_prefix((variant, boards), boards.position.ply.shape)

        def ply(boards: Boards, drawn: tuple[jax.Array, jax.Array]) -> tuple[Boards, _Plies]:
            ply_key, is_full = drawn
            states = State(variant, boards.position)
            opening = open_games(boards.opening, boards.position, ply_key, exploration)
            found = choose(variables, states, ply_key, is_full)
            slot, is_drawn = explore(found, states, opening, ply_key)
            position, played = _play_ply(
                states, found._replace(slot=slot), is_full, is_drawn, targets=targets
            )
            return Boards(position, opening), played

        is_full = jnp.ones(plies, bool)
        if cheap is not None:
            key, own_coin_key = jax.random.split(key)
            toss_key = own_coin_key if coin_key is None else coin_key
            is_full = jax.random.bernoulli(toss_key, full_search_prob, (plies,))
        boards, played = jax.lax.scan(ply, boards, (jax.random.split(key, plies), is_full))
        made, metrics = played.made, _sum_up(played)
        if played.surprise is not None:
            weight = surprise_weights(
                made.policy_weight, played.surprise, share=targets.policy_surprise_weight
            )
            made = made._replace(policy_weight=weight)
        return boards, made, metrics

    return selfplay


def _play_ply(
    states: State,
    found: SearchResult,
    is_full: jax.Array,
    is_drawn: jax.Array,
    *,
    targets: TargetOptions,
) -> tuple[Position, _Plies]:
    """Play the slots that were chosen in states [B], and restart finished boards."""
    after, rewards, analysis = jax.vmap(referee.play_with_analysis)(states, found.slot)
    over = after.position.terminated
    made = Trajectory(
        position=states.position,
        slot=found.slot.astype(jnp.int16),
        policy=found.policy.astype(POLICY_DTYPE),
        policy_weight=_policy_weight(is_full, is_drawn, targets.cheap_policy_weight),
        root_value=found.value if targets.has_root_value else None,
        step_outcome=Outcome(rewards, _at_end(over, analysis.owned)),
        terminated=over,
    )
    played = _Plies(
        made=made,
        length=jnp.where(over, after.position.ply, 0),
        is_full=jnp.broadcast_to(is_full, over.shape),
        is_drawn=is_drawn,
        entropies=policy_entropies(found.policy, states),
        surprise=found.surprise if targets.policy_surprise_weight > 0 else None,
    )
    return jax.vmap(referee.restart_if_over)(after).position, played


def _policy_weight(is_full: jax.Array, is_drawn: jax.Array, cheap: float) -> jax.Array:
    """float32[B]: 1 for plies that were searched in full, `cheap` for the others, 0 for those that
    the opening drew."""
    if cheap == 0:
        return (is_full & ~is_drawn).astype(jnp.float32)
    return jnp.where(is_drawn, 0.0, jnp.where(is_full, 1.0, cheap)).astype(jnp.float32)


def _sum_up(played: _Plies) -> SelfPlayMetrics:
    made = played.made
    rewards = made.step_outcome.rewards
    draws = made.terminated & (rewards == 0).all(axis=-1)
    entropies = jax.tree.map(lambda x: (made.policy_weight * x).sum(), played.entropies)
    return SelfPlayMetrics(
        games=made.terminated.sum().astype(jnp.float32),
        positions=jnp.float32(played.is_full.size),
        full=played.is_full.sum().astype(jnp.float32),
        length=played.length.sum().astype(jnp.float32),
        red_wins=(rewards[..., 0] > 0).sum().astype(jnp.float32),
        draws=draws.sum().astype(jnp.float32),
        drawn=played.is_drawn.sum().astype(jnp.float32),
        entropies=entropies,
    )


def surprise_weights(weight: jax.Array, surprise: jax.Array, *, share: float) -> jax.Array:
    """Weigh policies partly by surprise (Wu, "Other Methods Implemented in KataGo", section Policy
    Surprise Weighting).

    Args:
      weight: float32[...], of the policies so far, 0 where they are not learned.
      surprise: float32[...], nats from the network's policy to the search's.
      share: of the weight that is given out in proportion to surprise.

    Returns:
      float32[...] of the same sum, 0 where it was 0.
    """
    mean = (weight * surprise).sum() / jnp.maximum(weight.sum(), 1)
    relative = jnp.where(mean > 1e-6, surprise / jnp.maximum(mean, 1e-6), 1.0)
    return weight * (1 - share + share * relative)


_Choose = Callable[[Any, State, jax.Array, jax.Array], SearchResult]
"""(variables, states [B], key, whether the search is full bool[]) -> the search's result."""


def _always(search: Search) -> _Choose:
    def choose(variables: Any, states: State, key: jax.Array, is_full: jax.Array) -> SearchResult:
        del is_full
        return search(variables, states, key)

    return choose


def _by_coin(search: Search, cheap: Search) -> _Choose:
    def choose(variables: Any, states: State, key: jax.Array, is_full: jax.Array) -> SearchResult:
        return jax.lax.cond(is_full, search, cheap, variables, states, key)

    return choose


def _at_end(over: jax.Array, owned: tuple[Cells, ...]) -> jax.Array:
    """uint32[B, P, W]: each player's territory where a game is over, bool[B], else zeros."""
    sets = jax.vmap(bitboard.pack_sets)(owned)
    return jnp.where(over[:, None, None], sets, jnp.uint32(0))
