"""One board as arrays: its variant (the rules) beside its position (all that plies change).

P players, S stones a player, W words of 32 cells. A search tree keeps positions only: the variant
is the same at every node. Earlier positions are not kept: a trail of the last plies tells how to
take those plies back.
"""

import dataclasses
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from wallgo_jax import display
from wallgo_jax.board import bitboard
from wallgo_jax.game import sizes
from wallgo_jax.game.rules import MOVER_LOSES, REGION, Rules, first_player

NOT_PLACED = -1
"""Cell of a stone that is not on the board yet."""
NO_PLAYER = -1
"""Player of no placement, and of the newest ply where no ply was played."""
NO_STONE = -1
"""Stone of an empty entry of the trail."""
NO_SIDE = -1
"""Side of the wall of a placement, which builds none."""
NO_LIMIT = 10_000
"""Walls left where the rules set no limit; more than any board has edges."""
TIE_NONE, TIE_REGION, TIE_MOVER_LOSES = 0, 1, 2
TRAIL_LENGTH = 4
"""Plies that can be taken back: the four past positions of WallZero's history planes."""


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Grid:
    """The square grid that numbers a board's cells.

    It is static, a tree node without arrays: every function of a board knows its shapes, and boards
    of different grids never share a batch.

    Attributes:
      side: side length, `geometry.MIN_GRID` to `geometry.MAX_GRID`.
    """

    side: int


class Variant(NamedTuple):
    """The rules of one board, as arrays: boards of one batch may differ in all but the grid, the
    players and the room for stones."""

    playable: jax.Array  # uint32[W] cells of the board within the grid
    size: jax.Array  # int8 the board's own side length
    start: jax.Array  # int8[P, S] cells of the stones at the beginning, or NOT_PLACED
    order: jax.Array  # int8[P * S] player of each placement, padded with NO_PLAYER
    num_placements: jax.Array  # int16
    first: jax.Array  # int8 player of the first ply
    walls: jax.Array  # int16 walls each player may build, or NO_LIMIT
    stay_needs_room: jax.Array  # bool
    tie: jax.Array  # int8[2] TIE_* codes in order, padded with TIE_NONE
    grid: Grid


class Position(NamedTuple):
    """Everything that a ply changes.

    Walls are sets of the cells that keep them (see `board.geometry`), a set for each builder and
    orientation: bit `c` of a horizontal set is the wall below cell `c`, of a vertical set the wall
    right of it.
    """

    stones: jax.Array  # int8[P, S] cell of each stone, or NOT_PLACED
    walls: jax.Array  # uint32[P, 2, W] by builder and orientation
    walls_left: jax.Array  # int16[P]
    trail: jax.Array  # int8[4, 3] newest first: stone (p * S + s), cell it left, side walled
    player: jax.Array  # int8 player to move
    ply: jax.Array  # int16 plies played
    terminated: jax.Array  # bool


class State(NamedTuple):
    """One board."""

    variant: Variant
    position: Position

    @property
    def grid(self) -> int:
        """Side length of the grid that numbers the cells."""
        return self.variant.grid.side

    @property
    def num_slots(self) -> int:
        """A: size of the compact action space (see `game.actions`); of a batch as of a board."""
        return sizes_of_state(self).num_slots

    def __str__(self) -> str:
        return display.to_text(self)

    def _repr_html_(self) -> str:
        """Draw the board, or the first boards of a batch, for a notebook."""
        return display.to_html(self)


def make_variant(rules: Rules, *, grid: int | None = None, stones: int | None = None) -> Variant:
    """Make the rules NumPy arrays, for a board in the top-left corner of a `grid` x `grid` grid.

    Args:
      rules: of the board.
      grid: side of the grid; by default the board's own.
      stones: S, stones a player for which the arrays have room; by default those of the rules.
        Stones that the rules lack are never placed, so their slots are never legal.

    Raises:
      ValueError: if the board is larger than the grid, or there is no room for its stones.
    """
    grid = rules.size if grid is None else grid
    stones = rules.stones if stones is None else stones
    if rules.size > grid:
        raise ValueError(f"rules: a board of size {rules.size} does not fit in a grid of {grid}")
    if rules.stones > stones:
        raise ValueError(f"rules: {rules.stones} stones a player do not fit where {stones} do")
    cells = [row * grid + column for row in range(rules.size) for column in range(rules.size)]
    start = np.full((rules.players, stones), NOT_PLACED, dtype=np.int8)
    for player in range(rules.players):
        own = [row * grid + column for row, column, owner in rules.start if owner == player]
        start[player, : len(own)] = own
    order = np.full(rules.players * stones, NO_PLAYER, dtype=np.int8)
    order[: len(rules.order)] = rules.order
    codes = {REGION: TIE_REGION, MOVER_LOSES: TIE_MOVER_LOSES}
    tie = np.full(2, TIE_NONE, dtype=np.int8)
    tie[: len(rules.tie)] = [codes[rule] for rule in rules.tie]
    # By way of a dict: the record's fields are declared as JAX arrays.
    arrays: dict[str, Any] = dict(
        playable=bitboard.constant(cells, grid),
        size=np.int8(rules.size),
        start=start,
        order=order,
        first=np.int8(first_player(rules)),
        num_placements=np.int16(len(rules.order)),
        walls=np.int16(NO_LIMIT if rules.walls is None else rules.walls),
        stay_needs_room=np.bool_(rules.stay_needs_room),
        tie=tie,
    )
    return Variant(**arrays, grid=Grid(grid))


def initial_position(variant: Variant) -> Position:
    """Return the position before the first ply: `start` on the board, nothing built."""
    players, _ = variant.start.shape
    (words,) = variant.playable.shape
    return Position(
        stones=jnp.asarray(variant.start),
        walls=jnp.zeros((players, 2, words), jnp.uint32),
        walls_left=jnp.full((players,), variant.walls, jnp.int16),
        trail=empty_trail(),
        player=jnp.asarray(variant.first, jnp.int8),
        ply=jnp.zeros((), jnp.int16),
        terminated=jnp.zeros((), jnp.bool_),
    )


def initial_state(rules: Rules, *, grid: int | None = None, stones: int | None = None) -> State:
    """Start a new game (see `make_variant`)."""
    variant = jax.tree.map(jnp.asarray, make_variant(rules, grid=grid, stones=stones))
    return State(variant, initial_position(variant))


def empty_trail() -> jax.Array:
    """int8[4, 3]: a trail without plies."""
    return jnp.broadcast_to(jnp.array([NO_STONE, NOT_PLACED, NO_SIDE], jnp.int8), (TRAIL_LENGTH, 3))


def assert_board(state: State) -> None:
    """Assert that a state is one board: shapes and dtypes, checked while JAX traces.

    Under `vmap` these are the shapes of one board, so that a batch passed without `vmap` is caught.

    Raises:
      AssertionError: naming the array that does not fit.
    """
    variant, position = state
    chex.assert_rank(position.stones, 2)
    players, stones = position.stones.shape
    words = bitboard.num_words(state.grid)
    chex.assert_shape(variant.playable, (words,))
    chex.assert_shape([variant.start, position.stones], (players, stones))
    chex.assert_shape(position.walls, (players, 2, words))
    chex.assert_shape(position.walls_left, (players,))
    chex.assert_shape(position.trail, (TRAIL_LENGTH, 3))
    chex.assert_shape([position.player, position.ply, position.terminated], ())
    chex.assert_type([variant.playable, position.walls], jnp.uint32)
    chex.assert_type([variant.start, position.stones, position.trail, position.player], jnp.int8)
    chex.assert_type([position.walls_left, position.ply], jnp.int16)
    chex.assert_type(position.terminated, jnp.bool_)


class Sizes(NamedTuple):
    """The numbers that fix array shapes, and so stay static."""

    grid: int
    players: int
    stones: int

    @property
    def num_slots(self) -> int:
        """A: the size of the compact action space."""
        return sizes.num_slots(self.stones, grid=self.grid)

    @property
    def num_actions(self) -> int:
        """The size of the public action space."""
        return sizes.num_actions(self.grid)


def sizes_of_state(state: State) -> Sizes:
    """The static sizes of one board or of a batch."""
    players, stones = state.position.stones.shape[-2:]
    return Sizes(state.grid, players, stones)


def sizes_of(rules: Rules, *, grid: int | None = None, stones: int | None = None) -> Sizes:
    """The static sizes of a game on a grid, with room for as many stones a player."""
    return Sizes(
        rules.size if grid is None else grid,
        rules.players,
        rules.stones if stones is None else stones,
    )
