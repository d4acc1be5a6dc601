"""The positions that the games of a match begin from: random plies, or positions of a file.

Q openings, O plies of an opening, P players.
"""

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.runtime.devices import broadcast_boards
from train.runtime.errors import UsageError, usage_errors
from train.runtime.host import fetch
from wallgo_jax.formats.diagram import rules_of
from wallgo_jax.formats.option_names import argument
from wallgo_jax.formats.sources import SourceRequest, read_positions
from wallgo_jax.game import actions, referee
from wallgo_jax.game.actions import NO_ACTION
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import Position, State, Variant, initial_position


class Openings(NamedTuple):
    """The position where each group of games begins, in every seating once."""

    position: Position  # [Q]
    rewards: jax.Array  # float32[Q, P], of games that the opening ended, else zeros
    actions: jax.Array  # int32[Q, O] public ids, NO_ACTION after the end
    queue: jax.Array  # int32[Q], openings in the order of play, those without play last
    live: jax.Array  # int32[1], how many of the queue are played
    draws: jax.Array
    """uint32[Q, K], random bits of the plies that are drawn once all stones are placed; K = 0 where
    random plies open the games."""


@dataclasses.dataclass(frozen=True, eq=False)
class Positions:
    """Positions of a file."""

    position: Position  # NumPy arrays [N]
    actions: np.ndarray  # int32[N, O] public ids of the plies that led there, NO_ACTION behind them
    has_games: bool  # whether these plies are known; those of a diagram are not

    def __len__(self) -> int:
        return len(self.actions)


class OpeningOptions(NamedTuple):
    """Options of a match's openings."""

    plies: int = 0  # random plies, the same in every game of an opening
    players_place: bool = False  # the players place the stones, and the random plies come after
    positions: Positions | None = None  # of a file, in place of random plies, taken in turn

    @property
    def text(self) -> str:
        """The options in words."""
        if self.positions is not None:
            return f"{len(self.positions)} openings of a file"
        after = " after the players' placements" if self.players_place else ""
        return f"{self.plies} random opening plies{after}"


def read_openings(path: Path | str, rules: Rules) -> Positions:
    """Read the positions that a match opens with: the ends of the games of a file, or a diagram.

    Raises:
      UsageError: the file cannot be read, or a position is over, or by other rules.
    """
    with usage_errors(argument("openings")):
        opened = list(read_positions(SourceRequest(str(path))))
    for number, (state, _) in enumerate(opened, start=1):
        is_other = rules_of(state) != rules or state.grid != rules.size
        if is_other or bool(state.position.terminated):
            what = "by other rules" if is_other else "over"
            raise UsageError(f"{argument('openings')}: {path}: position {number} is {what}")
    games = [played or () for _, played in opened]
    table = np.full((len(opened), max(map(len, games), default=0)), NO_ACTION, np.int32)
    for row, played in zip(table, games, strict=True):
        row[: len(played)] = played
    positions = fetch([state.position for state, _ in opened])
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *positions)
    return Positions(stacked, table, all(played is not None for _, played in opened))


def choose_opening(
    plies: int, *, players_place: bool, path: Path | str | Positions | None, rules: Rules
) -> OpeningOptions:
    """The openings that a user asks for; `path` may be the positions of a file.

    Raises:
      UsageError: two ways are asked for, or the file of positions cannot be used.
    """
    if path is None:
        return OpeningOptions(plies, players_place)
    if players_place:
        both = f"{argument('openings')} and {argument('players_place')}"
        raise UsageError(f"match: {both} cannot be used together")
    chosen = path if isinstance(path, Positions) else read_openings(path, rules)
    return OpeningOptions(positions=chosen)


def open_games(
    variant: Variant,
    numbers: jax.Array,
    is_own: jax.Array,
    key: jax.Array,
    how: OpeningOptions,
) -> Openings:
    """Open the games of a match.

    Args:
      variant: what is played.
      numbers: int32[Q], of the openings in the whole match; with the key, all that an opening
        depends on, so that the number of devices changes no opening.
      is_own: bool[Q], which of them this device plays.
      key: consumed.
      how: they open.
    """
    positions = how.positions
    count = numbers.shape[0]
    variants = broadcast_boards(variant, count)
    rewards = jnp.zeros((count, variant.start.shape[0]), jnp.float32)
    bits = random_bits(key, numbers, plies=how.plies if positions is None else 0)
    if positions is None:
        position = jax.vmap(initial_position)(variants)
        played = jnp.zeros((count, 0), jnp.int32)
    else:
        row = numbers % len(positions)
        position = jax.tree.map(lambda x: jnp.asarray(x)[row], positions.position)
        played = jnp.asarray(positions.actions)[row]

    def ply(carry: tuple[State, jax.Array], bits: jax.Array) -> tuple[Any, jax.Array]:
        states, rewards = carry
        slots = jax.vmap(actions.draw_slot)(states, bits)
        public = jax.vmap(actions.action_of_slot)(states, slots).astype(jnp.int32)
        after, new = jax.vmap(referee.play)(states, slots)
        is_live = ~states.position.terminated
        rewards = jnp.where(is_live[:, None], new, rewards)
        return (after, rewards), jnp.where(is_live, public, NO_ACTION)

    if not how.players_place and positions is None:
        first = State(variants, position), rewards
        (after, rewards), drawn = jax.lax.scan(ply, first, bits.T)
        position, played, bits = after.position, drawn.T, bits[:, :0]
    is_played = is_own & ~position.terminated
    return Openings(
        position=position,
        rewards=rewards,
        actions=played,
        queue=jnp.argsort(~is_played, stable=True).astype(jnp.int32),
        live=is_played.sum(dtype=jnp.int32)[None],
        draws=bits,
    )


def with_drawn_plies(
    openings: Openings, opening: jax.Array, states: State, slots: jax.Array
) -> jax.Array:
    """int32[K]: the slots to play: those of the players, or drawn ones just after the setup.

    Args:
      openings: of the match.
      opening: int32[K], which of them each board plays.
      states: [K].
      slots: int32[K], of the players.
    """
    plies = openings.draws.shape[1]
    if plies == 0:
        return slots
    since_setup = states.position.ply - states.variant.num_placements
    bits = openings.draws[opening, jnp.clip(since_setup, 0, plies - 1)]
    is_drawn = (0 <= since_setup) & (since_setup < plies)
    return jnp.where(is_drawn, jax.vmap(actions.draw_slot)(states, bits), slots)


def random_bits(key: jax.Array, numbers: jax.Array, *, plies: int) -> jax.Array:
    """uint32[Q, O]: random bits for plies of openings int32[Q]."""

    def of_ply(number: jax.Array, ply: jax.Array) -> jax.Array:
        opening_key = jax.random.fold_in(key, number)
        return jax.random.bits(jax.random.fold_in(opening_key, ply), (), jnp.uint32)

    of_opening = jax.vmap(of_ply, (None, 0))
    return jax.vmap(of_opening, (0, None))(numbers, jnp.arange(plies))
