"""Self-play: one scan over plies, a search at each, finished boards restart at once.

B boards, T plies of an iteration.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp

from train.data.diversity import (
    ClassShares,
    PolicyEntropies,
    class_shares,
    policy_entropies,
)
from train.data.openings import (
    SEARCH_DECIDES,
    Exploration,
    Opening,
    draw_legal,
    make_exploration,
    no_opening,
    open_games,
)
from train.data.outcomes import Outcome
from train.data.replay import Trajectory
from train.data.sides import ByCoin, Choose, search_by_side
from train.runtime.numbers import is_off
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


class SeatSums(NamedTuple):
    """The learner's games against a frozen opponent that ended, by its player, float32[P]."""

    games: jax.Array
    points: jax.Array  # a win counts 1, a draw 1 / P


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
    shares: ClassShares  # likewise
    seats: SeatSums | None  # None without a frozen opponent


class Boards(NamedTuple):
    """Games under way [B]."""

    position: Position
    opening: Opening
    seat: jax.Array | None
    """int8[B], the learner's player; a frozen opponent plays all others. None without one."""


class _Plies(NamedTuple):
    """The plies that the scan stacks: leading axes [T, B]."""

    made: Trajectory  # its policy_weight not weighed by surprise yet
    length: jax.Array  # int[...], plies of the game where the ply ended it, else 0
    is_full: jax.Array  # bool[...], whether the search was full
    is_drawn: jax.Array  # bool[...], whether the opening drew the ply
    entropies: PolicyEntropies  # float32[...]
    shares: ClassShares  # float32[...]
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
        after = jax.vmap(referee.restart_if_over)(jax.vmap(referee.play)(states, slots)[0]).position

        def choose(new: jax.Array, old: jax.Array) -> jax.Array:
            return jnp.where((number < count).reshape(-1, *[1] * (new.ndim - 1)), new, old)

        return jax.tree.map(choose, after, position), None

    position, _ = jax.lax.scan(ply, boards.position, jnp.arange(plies))
    return boards._replace(position=position)


def make_selfplay(
    search: Search | ByCoin,
    *,
    plies: int,
    full_search_prob: float = 1.0,
    targets: TargetOptions = PLAIN_TARGETS,
    exploration: Exploration = SEARCH_DECIDES,
    opponent: Search | None = None,
) -> Callable[..., tuple[Boards, Trajectory, SelfPlayMetrics]]:
    """Make a function that plays an iteration.

    Args:
      search: decides the moves; one `ByCoin` is full on some plies and cheap on the others.
      plies: T.
      full_search_prob: as in `SelfPlayConfig`; read where the search is `ByCoin`.
      targets: what plies teach.
      exploration: plies that are played in place of the search's choice.
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
    has_coin = isinstance(search, ByCoin)
    choose = search.choose if isinstance(search, ByCoin) else _always(search)
    play_ply = _make_ply(choose, exploration, targets, opponent)

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
            return play_ply(variables, variant, boards, *drawn)

        is_full = jnp.ones(plies, bool)
        if has_coin:
            key, own_coin_key = jax.random.split(key)
            toss_key = own_coin_key if coin_key is None else coin_key
            is_full = toss_coins(toss_key, plies=plies, full_search_prob=full_search_prob)
        boards, played = jax.lax.scan(ply, boards, (jax.random.split(key, plies), is_full))
        metrics = _sum_up(played)
        return boards, _weighted(played, share=targets.policy_surprise_weight), metrics

    return selfplay


def toss_coins(key: jax.Array, *, plies: int, full_search_prob: float) -> jax.Array:
    """bool[T], the plies of an iteration that are searched in full; the key is consumed."""
    return jax.random.bernoulli(key, jnp.float32(full_search_prob), (plies,))


def _make_ply(
    choose: Choose, exploration: Exploration, targets: TargetOptions, opponent: Search | None
) -> Callable[..., tuple[Boards, _Plies]]:
    """Make a function that opens games, chooses slots, and plays them on all boards [B]."""
    explore = make_exploration(exploration)
    sides = None if opponent is None else search_by_side(choose, opponent)

    def ply(
        variables: Any, variant: Variant, boards: Boards, key: jax.Array, is_full: jax.Array
    ) -> tuple[Boards, _Plies]:
        states = State(variant, boards.position)
        opening = open_games(boards.opening, boards.position, key, exploration)
        seat, is_theirs = boards.seat, None
        if sides is None:
            found = choose(variables, states, key, is_full)
        else:
            is_theirs = states.position.player != seat
            found = sides(variables, states, key, is_full, is_theirs)
        slot, is_drawn = explore(found, states, opening, key)
        is_left_out = is_drawn
        if is_theirs is not None:
            slot = jnp.where(is_theirs & ~is_drawn, found.slot, slot)
            is_left_out = is_drawn | is_theirs
        chosen = _Chosen(found._replace(slot=slot), is_full, is_drawn, is_left_out, seat)
        position, played = _play_ply(states, chosen, targets=targets)
        seat = _next_seat(seat, played.made)
        return Boards(position, opening, seat), played

    return ply


def _next_seat(seat: jax.Array | None, made: Trajectory) -> jax.Array | None:
    """int8[B]: the learner's player after plies [B], the next one where a game is over."""
    if seat is None:
        return None
    players = made.position.stones.shape[1]
    return jnp.where(made.terminated, (seat + 1) % players, seat).astype(jnp.int8)


def _weighted(played: _Plies, *, share: float) -> Trajectory:
    """The plies, their policies weighed by surprise where weights depend on it."""
    made = played.made
    if played.surprise is None:
        return made
    weight = surprise_weights(made.policy_weight, played.surprise, share=share)
    return made._replace(policy_weight=weight)


class _Chosen(NamedTuple):
    """The plies that boards [B] are about to play."""

    found: SearchResult  # with the slot that is played
    is_full: jax.Array  # bool[], whether the search was full
    is_drawn: jax.Array  # bool[B], whether the opening drew the ply
    is_left_out: jax.Array  # bool[B], whether the policy must not be learned
    seat: jax.Array | None  # int8[B], as in `Boards`


def _play_ply(states: State, chosen: _Chosen, *, targets: TargetOptions) -> tuple[Position, _Plies]:
    """Play the slots that were chosen in states [B], and restart finished boards."""
    found, is_full, is_drawn, is_left_out, seat = chosen
    after, rewards, analysis = jax.vmap(referee.play_with_analysis)(states, found.slot)
    over = after.position.terminated
    made = Trajectory(
        position=states.position,
        slot=found.slot.astype(jnp.int16),
        policy=found.policy.astype(POLICY_DTYPE),
        policy_weight=_policy_weight(is_full, is_left_out, targets.cheap_policy_weight),
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
        shares=class_shares(found.policy, states),
        surprise=None if is_off(targets.policy_surprise_weight) else found.surprise,
        seat=seat,
    )
    return jax.vmap(referee.restart_if_over)(after).position, played


def _policy_weight(is_full: jax.Array, is_left_out: jax.Array, cheap: float) -> jax.Array:
    """float32[B]: 1 for plies that were searched in full, `cheap` for the others, 0 for those that
    are left out."""
    if is_off(cheap):
        return (is_full & ~is_left_out).astype(jnp.float32)
    return jnp.where(is_left_out, 0.0, jnp.where(is_full, 1.0, cheap)).astype(jnp.float32)


def _sum_up(played: _Plies) -> SelfPlayMetrics:
    made = played.made
    rewards = made.step_outcome.rewards
    draws = made.terminated & (rewards == 0).all(axis=-1)
    about = played.entropies, played.shares
    entropies, shares = jax.tree.map(lambda x: (made.policy_weight * x).sum(), about)
    return SelfPlayMetrics(
        games=made.terminated.sum().astype(jnp.float32),
        positions=jnp.float32(played.is_full.size),
        full=played.is_full.sum().astype(jnp.float32),
        length=played.length.sum().astype(jnp.float32),
        red_wins=(rewards[..., 0] > 0).sum().astype(jnp.float32),
        draws=draws.sum().astype(jnp.float32),
        drawn=played.is_drawn.sum().astype(jnp.float32),
        entropies=entropies,
        shares=shares,
        seats=None if played.seat is None else _sum_seats(made, played.seat),
    )


def _sum_seats(made: Trajectory, seat: jax.Array) -> SeatSums:
    """Count the games that ended by the learner's player int8[T, B]."""
    rewards = made.step_outcome.rewards
    players = rewards.shape[-1]
    is_draw = (rewards == 0).all(axis=-1, keepdims=True)
    points = jnp.where(is_draw, 1 / players, (rewards > 0).astype(jnp.float32))
    ended = made.terminated[..., None] & jax.nn.one_hot(seat, players, dtype=bool)
    return SeatSums(
        games=ended.sum(axis=(0, 1)).astype(jnp.float32),
        points=jnp.where(ended, points, 0.0).sum(axis=(0, 1)),
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


def _always(search: Search) -> Choose:
    def choose(variables: Any, states: State, key: jax.Array, is_full: jax.Array) -> SearchResult:
        del is_full
        return search(variables, states, key)

    return choose


def _at_end(over: jax.Array, owned: tuple[Cells, ...]) -> jax.Array:
    """uint32[B, P, W]: each player's territory where a game is over, bool[B], else zeros."""
    sets = jax.vmap(bitboard.pack_sets)(owned)
    return jnp.where(over[:, None, None], sets, jnp.uint32(0))
