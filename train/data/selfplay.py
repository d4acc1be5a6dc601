"""Self-play: one scan over plies, a search at each, finished boards restart at once.

B boards, T plies of an iteration.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp

from train.data.config import SelfPlayConfig
from train.data.diversity import Mean, policy_figures
from train.data.exploration import Opening, draw_legal, explore, no_opening, open_games
from train.data.outcomes import Outcome
from train.data.replay import StoredPlies, Trajectory, stored
from train.game import (
    Position,
    State,
    Variant,
    initial_position,
    pack_sets,
    play,
    play_with_analysis,
    restart_if_over,
)
from train.search.search import Search, SearchResult

POLICY_DTYPE = jnp.float16


class PlayoutCapSearch(NamedTuple):
    """A search that is full on some plies and cheap on the others: playout cap randomization (Wu,
    "Accelerating Self-Play Learning in Go", section 3.1)."""

    search: Search  # its first budget is the full one, its second the cheap one


class SeatSums(NamedTuple):
    """The learner's games against a frozen opponent that ended, by its player, float32[P]."""

    games: jax.Array
    points: jax.Array  # a win counts 1, a draw 1 / P


class SelfPlaySums(NamedTuple):
    """Sums over an iteration, float32[]."""

    positions: jax.Array
    full: jax.Array  # positions that got a full search
    drawn: jax.Array  # positions whose ply the opening drew
    policies: dict[str, Mean]  # `policy_figures` of the policies that are learned
    seats: SeatSums | None  # None without a frozen opponent


class BoardSums(NamedTuple):
    """Sums over an iteration of each board, float32[B]."""

    games: jax.Array  # that ended
    length: jax.Array  # plies of these
    red_wins: jax.Array
    draws: jax.Array


class Boards(NamedTuple):
    """Games under way [B]."""

    position: Position
    opening: Opening
    seat: jax.Array | None
    """int8[B], the learner's player; a frozen opponent plays all others. None without one."""


class _Plies(NamedTuple):
    """The plies that the scan stacks: leading axes [T, B]."""

    plies: Trajectory  # its policy_weight not weighed by surprise yet
    is_drawn: jax.Array  # bool[...], whether the opening drew the ply
    figures: dict[str, Mean]  # of its policy
    surprise: jax.Array | None  # float32[...], nats; None where no weight depends on it
    seat: jax.Array | None  # int8[...], as in `Boards`


def first_boards(variant: Variant, *, has_opponent: bool = False) -> Boards:
    """Make boards [B] before their first ply; they share no buffer, so they can be donated.

    With a frozen opponent the learner has the seats in turn, from board to board and then from game
    to game of a board.
    """
    position = jax.tree.map(jnp.copy, jax.vmap(initial_position)(variant))
    boards, players = position.stones.shape[:2]
    seat = (jnp.arange(boards) % players).astype(jnp.int8) if has_opponent else None
    # The first ply of a game draws its opening.
    return Boards(position, no_opening(boards), seat)


def stagger(variant: Variant, boards: Boards, key: jax.Array, *, plies: int) -> Boards:
    """Play 0 to `plies` random plies on each of boards [B], each number equally likely.

    A run begins with them. Were all its games in phase, a coin that all boards share would leave
    out some of the first plies in its first games, and take others many times.

    Args:
      key: consumed.
    """
    count_key, play_key = jax.random.split(key)
    count = jax.random.randint(count_key, boards.position.ply.shape, 0, plies + 1, jnp.int32)

    def ply(position: Position, number: jax.Array) -> tuple[Position, None]:
        states = State(variant, position)
        slots = draw_legal(jax.random.fold_in(play_key, number), states)
        after = jax.vmap(restart_if_over)(jax.vmap(play)(states, slots)[0]).position

        def choose(new: jax.Array, old: jax.Array) -> jax.Array:
            return jnp.where((number < count).reshape(-1, *[1] * (new.ndim - 1)), new, old)

        return jax.tree.map(choose, after, position), None

    position, _ = jax.lax.scan(ply, boards.position, jnp.arange(plies))
    return boards._replace(position=position)


def make_selfplay(
    search: Search | PlayoutCapSearch,
    options: SelfPlayConfig,
    *,
    has_root_value: bool = False,
    opponent: Search | None = None,
) -> Callable[..., tuple[Boards, Trajectory, SelfPlaySums]]:
    """Make a function that plays an iteration.

    Args:
      search: decides the moves.
      options: of self-play, whose numbers may be arguments of a program; all but its boards, its
        budgets and its players are read, `full_search_prob` where the search is a
        `PlayoutCapSearch`.
      has_root_value: plies keep the value that the search found.
      opponent: a frozen player that has the seats which the learner has not. The variables are then
        `WithOpponentVariables`, of which it gets `opponent`, the other searches get both. Its plies
        teach the outcome, not the policy; plies drawn by the opening are drawn from its policy
        where it is to move, a temperature does not touch its choice.

    Returns:
      (variables, variant [B], boards [B], key, coin key or None) -> the boards as they stand, with
      which the next iteration goes on, the plies [T, B] and their sums. Devices that play boards of
      their own pass keys of their own and one coin key, which draws the plies of full searches;
      without a coin key the key draws them.
    """
    play_ply = functools.partial(
        _play_ply, search, options, has_root_value=has_root_value, opponent=opponent
    )

    def selfplay(
        variables: Any,
        variant: Variant,
        boards: Boards,
        key: jax.Array,
        coin_key: jax.Array | None = None,
    ) -> tuple[Boards, Trajectory, SelfPlaySums]:
        chex.assert_rank(boards.position.ply, 1)
        chex.assert_tree_shape_prefix((variant, boards), boards.position.ply.shape)
        is_full = jnp.ones(options.plies, bool)
        if isinstance(search, PlayoutCapSearch):
            key, own_coin_key = jax.random.split(key)
            is_full = toss_coins(own_coin_key if coin_key is None else coin_key, options)

        def ply(boards: Boards, drawn: tuple[jax.Array, jax.Array]) -> tuple[Boards, _Plies]:
            return play_ply(variables, variant, boards, *drawn)

        drawn = jax.random.split(key, options.plies), is_full
        boards, played = jax.lax.scan(ply, boards, drawn)
        sums, plies = _sum_up(played, is_full), played.plies
        share = options.policy_surprise_weight
        if played.surprise is not None and share is not None:
            weight = surprise_weights(plies.policy_weight, played.surprise, share=share)
            plies = plies._replace(policy_weight=weight)
        return boards, plies, sums

    return selfplay


def plies_like(
    variant: Variant, options: SelfPlayConfig, *, has_root_value: bool = False
) -> StoredPlies:
    """Shapes of the plies [T, B] of an iteration as the replay keeps them, which are the same
    whoever plays; the number of plies alone is read of the options."""

    def search(variables: Any, states: State, key: jax.Array) -> SearchResult:
        del variables, key
        numbers = jnp.zeros(states.position.ply.shape, jnp.float32)
        policy = jnp.zeros((*numbers.shape, states.num_slots), jnp.float32)
        return SearchResult(numbers.astype(jnp.int32), policy, numbers, numbers, policy)

    plain = SelfPlayConfig(plies=options.plies)
    selfplay = make_selfplay(search, plain, has_root_value=has_root_value)
    boards = jax.eval_shape(first_boards, variant)
    played = jax.eval_shape(selfplay, (), variant, boards, jax.eval_shape(jax.random.key, 0))[1]
    return jax.eval_shape(stored, played)


def toss_coins(key: jax.Array, options: SelfPlayConfig) -> jax.Array:
    """bool[T], the plies of an iteration that are searched in full; the key is consumed."""
    chance = 1 if options.full_search_prob is None else options.full_search_prob
    return jax.random.bernoulli(key, jnp.float32(chance), (options.plies,))


def _play_ply(
    search: Search | PlayoutCapSearch,
    options: SelfPlayConfig,
    variables: Any,
    variant: Variant,
    boards: Boards,
    key: jax.Array,
    is_full: jax.Array,
    *,
    has_root_value: bool,
    opponent: Search | None,
) -> tuple[Boards, _Plies]:
    """Open games, search and play a ply on boards [B], and restart those whose game is over."""
    states, seat = State(variant, boards.position), boards.seat
    opening = open_games(boards.opening, boards.position, key, options)
    if isinstance(search, PlayoutCapSearch):
        within, budget = search.search, jnp.where(is_full, 0, 1)
        search = lambda v, states, key: within(v, states, key, budget)  # noqa: E731
    if opponent is None:
        result = search(variables, states, key)
        slot, is_drawn = explore(result, states, opening, key, options)
        is_left_out = is_drawn
    else:
        # Loaded where a run has an opponent.
        from train.data.frozen_opponent import search_both_sides

        is_theirs = states.position.player != seat
        result = search_both_sides(search, opponent, variables, states, key, is_theirs)
        slot, is_drawn = explore(result, states, opening, key, options)
        slot = jnp.where(is_theirs & ~is_drawn, result.slot, slot)
        is_left_out = is_drawn | is_theirs

    with jax.named_scope("play"):
        after, rewards, analysis = jax.vmap(play_with_analysis)(states, slot)
    over, territory = after.position.terminated, jax.vmap(pack_sets)(analysis.owned)
    plies = Trajectory(
        position=states.position,
        slot=slot.astype(jnp.int16),
        policy=result.policy.astype(POLICY_DTYPE),
        policy_weight=_policy_weight(is_full, is_left_out, options.cheap_policy_weight),
        root_value=result.value if has_root_value else None,
        outcome=Outcome(rewards, jnp.where(over[:, None, None], territory, jnp.uint32(0))),
        terminated=over,
    )
    played = _Plies(
        plies=plies,
        is_drawn=is_drawn,
        figures=policy_figures(result.policy, states),
        surprise=None if options.policy_surprise_weight is None else result.surprise,
        seat=seat,
    )
    if seat is not None:
        players = states.position.stones.shape[1]
        seat = jnp.where(over, (seat + 1) % players, seat).astype(jnp.int8)
    position = jax.vmap(restart_if_over)(after).position
    return Boards(position, opening, seat), played


def _policy_weight(is_full: jax.Array, is_left_out: jax.Array, cheap: float | None) -> jax.Array:
    """float32[B]: 1 for plies that were searched in full, `cheap` for the others, 0 for those that
    are left out."""
    if cheap is None:
        return (is_full & ~is_left_out).astype(jnp.float32)
    return jnp.where(is_left_out, 0.0, jnp.where(is_full, 1.0, cheap)).astype(jnp.float32)


def _sum_up(played: _Plies, is_full: jax.Array) -> SelfPlaySums:
    """Sums of plies [T, B], of which those of bool[T] were searched in full."""
    plies, ended = played.plies, played.plies.terminated
    full = is_full[:, None] & jnp.ones(ended.shape[1], bool)[None]
    return SelfPlaySums(
        positions=jnp.float32(ended.size),
        full=full.sum().astype(jnp.float32),
        drawn=played.is_drawn.sum().astype(jnp.float32),
        policies=jax.tree.map(lambda x: (plies.policy_weight * x).sum(), played.figures),
        seats=None if played.seat is None else _sum_seats(plies, played.seat),
    )


def _sum_seats(plies: Trajectory, seat: jax.Array) -> SeatSums:
    """Count the games that ended by the learner's player int8[T, B]."""
    rewards = plies.outcome.rewards
    players = rewards.shape[-1]
    is_draw = (rewards == 0).all(axis=-1, keepdims=True)
    points = jnp.where(is_draw, 1 / players, (rewards > 0).astype(jnp.float32))
    ended = plies.terminated[..., None] & jax.nn.one_hot(seat, players, dtype=bool)
    return SeatSums(
        games=ended.sum(axis=(0, 1)).astype(jnp.float32),
        points=jnp.where(ended, points, 0.0).sum(axis=(0, 1)),
    )


def sum_by_board(plies: Trajectory) -> BoardSums:
    """Sum the games that ended within plies [T, B] by board."""
    rewards = plies.outcome.rewards
    ended = plies.terminated
    length = jnp.where(ended, plies.position.ply + 1, 0)
    draws = ended & (rewards == 0).all(axis=-1)
    sums = (ended, length, rewards[..., 0] > 0, draws)
    return BoardSums(*(each.astype(jnp.float32).sum(axis=0) for each in sums))


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
