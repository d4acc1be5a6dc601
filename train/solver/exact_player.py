"""The exact player: it picks one of the plays that keep the value of the game, uniformly."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from train.runtime.errors import UsageError
from train.solver.alphabeta import NODE_LIMIT, AlphaBeta
from train.solver.boards import (
    BY_SEARCH,
    BY_TABLES,
    Board,
    board_of,
    check_solvable,
    openings_of,
)
from train.solver.placements import Placements, placed_sets
from train.solver.tablebase import SIZE, Tables, make_tables, optimal_slots
from wallgo_jax.board import bitboard
from wallgo_jax.game import actions, chance
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import (
    NOT_PLACED,
    Grid,
    Position,
    Sizes,
    State,
    sizes_of,
    sizes_of_state,
)

NAME = "exact"


def make_placement_values(
    rules: Rules, *, node_limit: int = NODE_LIMIT
) -> Callable[[Sequence[int]], dict[int, int]]:
    """Solve the placements of a small board.

    Args:
      rules: see `check_solvable`.
      node_limit: of alpha-beta search, see `AlphaBeta`.

    Returns:
      (cells of the placements so far) -> the value of a placement on each free cell, for the player
      who makes it.

    Raises:
      UsageError: the rules cannot be solved; from the result, the search exceeds its limit.
    """
    check_solvable(rules, BY_SEARCH | BY_TABLES)
    if rules.size == SIZE:
        setup = np.asarray(tables_of(rules).setup)
        placements = Placements(rules, lambda sets: int(setup[sets]))
    else:
        placements = _placements_of(AlphaBeta(rules, node_limit=node_limit))
    return lambda placed: placements.values(placed_sets(rules, placed))


def make_exact_act(rules: Rules) -> tuple[Any, Callable[..., jax.Array]]:
    """Make the variables and the `act` of a small board's player: tables on 3x3, alpha-beta search
    on the host on 4x4.

    The boards that it is asked about are of these rules, in their own grid or in the corner of a
    larger one. A position too large for the search ends the calling program with the search's
    message.

    Raises:
      UsageError: the rules cannot be solved; from `act`, the boards are too small for them.
    """
    check_solvable(rules, BY_SEARCH | BY_TABLES)
    if rules.size == SIZE:
        return tables_of(rules), _table_act(sizes_of(rules))
    return None, _search_act(rules)


@functools.lru_cache(maxsize=8)
def tables_of(rules: Rules) -> Tables:
    """`make_tables`, cached for the last few rules."""
    return make_tables(rules)


@functools.cache
def _table_act(sizes: Sizes) -> Callable[..., jax.Array]:
    @jax.jit
    def act(tables: Tables, states: State, key: jax.Array) -> jax.Array:
        best = jax.vmap(functools.partial(optimal_slots, tables))(_own_boards(states, sizes))
        return _slots_in(states, _sample(key, best), sizes)

    return act


@functools.lru_cache(maxsize=4)
def _search_act(rules: Rules) -> Callable[..., jax.Array]:
    search, sizes = AlphaBeta(rules), sizes_of(rules)

    @jax.jit
    def act(variables: None, states: State, key: jax.Array) -> jax.Array:
        del variables
        boards = states.position.ply.shape[0]
        best = jax.pure_callback(
            functools.partial(_search_all, search),
            jax.ShapeDtypeStruct((boards, sizes.num_slots), jnp.bool_),
            _own_boards(states, sizes).position,
            vmap_method="sequential",
        )
        return _slots_in(states, _sample(key, best), sizes)

    return act


def _own_boards(states: State, sizes: Sizes) -> State:
    """Boards [B] in their own grid; refuses those that the rules do not fit while JAX traces."""
    given = sizes_of_state(states)
    if given.players != sizes.players or given.grid < sizes.grid or given.stones < sizes.stones:
        raise UsageError(
            f"player {NAME!r}: its boards are of {_tell(sizes)}, these of {_tell(given)}"
        )
    return jax.vmap(functools.partial(to_own_grid, sizes=sizes))(states)


def to_own_grid(state: State, sizes: Sizes) -> State:
    """One board in the corner of a larger grid as a board of its own grid, which solvers know, with
    room for its own stones; the trail stays as it is. Size 3 in grid 5, and in its own:

         0  1  2  .  .
         5  6  7  .  .        0  1  2
        10 11 12  .  .        3  4  5
         .  .  .  .  .        6  7  8
         .  .  .  .  .

    Args:
      state: a board whose grid and room for stones are at least those, for as many players.
      own: of the board.
    """
    if sizes_of_state(state) == sizes:
        return state
    variant, position = state
    cells = (np.arange(sizes.grid)[:, None] * state.grid + np.arange(sizes.grid)).ravel()

    def crop(words: jax.Array) -> jax.Array:
        return bitboard.from_mask(bitboard.to_mask(words, state.grid)[..., cells])

    def renumber(stones: jax.Array) -> jax.Array:
        stones = stones[:, : sizes.stones]
        row, column = jnp.divmod(stones, state.grid)
        return jnp.where(stones == NOT_PLACED, stones, row * sizes.grid + column)

    variant = variant._replace(
        playable=crop(variant.playable),
        start=renumber(variant.start),
        order=variant.order[: sizes.players * sizes.stones],
        grid=Grid(sizes.grid),
    )
    position = position._replace(stones=renumber(position.stones), walls=crop(position.walls))
    return State(variant, position)


def slot_in(state: State, slot: jax.Array, sizes: Sizes) -> jax.Array:
    """int32: the slot of a board that `to_own_grid` made, in the board that it was made of."""
    cell = slot // sizes.grid * state.grid + slot % sizes.grid
    return jnp.where(actions.in_setup(*state), cell, slot).astype(jnp.int32)


def _tell(sizes: Sizes) -> str:
    grid, players, stones = sizes
    return f"{grid}x{grid} cells, {players} players and {stones} stones each"


def _slots_in(states: State, slots: jax.Array, sizes: Sizes) -> jax.Array:
    """int32[B]: slots of boards in their own grid, as slots of the boards that were given."""
    return jax.vmap(functools.partial(slot_in, sizes=sizes))(states, slots)


def _sample(key: jax.Array, best: jax.Array) -> jax.Array:
    """int32[B]: one of the best slots of each board."""
    bits = jax.random.bits(key, best.shape[:1], jnp.uint32)
    return jax.vmap(chance.choose)(bits, best).astype(jnp.int32)


def _search_all(search: AlphaBeta, positions: Position) -> np.ndarray:
    """bool[B, A]: the best slots of every board; slot 0 of a finished one."""
    host = jax.tree.map(np.asarray, positions)
    best = np.zeros((len(host.ply), actions.num_slots(1, grid=search.size)), np.bool_)
    for board in range(len(best)):
        best[board, best_slots(search, jax.tree.map(lambda x, i=board: x[i], host))] = True
    return best


def best_slots(search: AlphaBeta, position: Position) -> list[int]:
    """The slots of one position, on the host, that keep the value of the game; slot 0 after the
    end.

    Raises:
      UsageError: the search exceeds its limit of nodes.
    """
    if position.terminated:
        return [0]
    if position.ply < len(search.rules.order):
        first, second = (
            sum(1 << int(cell) for cell in own if cell != NOT_PLACED) for own in position.stones
        )
        values = _placements_of(search).values((first, second))
        return [cell for cell, value in values.items() if value == max(values.values())]
    return search.optimal_slots(board_of(position, search.size))


def _placements_of(search: AlphaBeta) -> Placements:
    """The placements of a board that search solves; after setup player 0 moves first."""

    def value_of(sets: tuple[int, int]) -> int:
        first, second = (
            tuple(cell for cell in range(search.size**2) if cells >> cell & 1) for cells in sets
        )
        return search.value(Board(*openings_of(search.size), (first, second), 0))

    return Placements(search.rules, value_of)
