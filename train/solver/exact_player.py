"""The exact player: it picks one of the plays that keep the value of the game, uniformly."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from train.runtime.errors import UsageError
from train.solver.alphabeta import MAX_SIZE, AlphaBeta, Board
from train.solver.own_grid import slot_in, to_own_grid
from train.solver.tablebase import MAX_TABLE_STONES, SIZE, Tables, make_tables, optimal_slots
from wallgo_jax.board.geometry import HORIZONTAL, VERTICAL
from wallgo_jax.game import actions, chance
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import Position, Sizes, State, sizes_of, sizes_of_state

NAME = "exact"


def check_solvable(rules: Rules) -> None:
    """Refuse rules that cannot be solved with a UsageError."""
    edges = 2 * rules.size * (rules.size - 1)
    stones = MAX_TABLE_STONES if rules.size == SIZE else 1
    has_limit = rules.walls is not None and rules.walls < edges
    if rules.players != 2 or rules.size > MAX_SIZE or rules.stones > stones or has_limit:
        raise UsageError(
            f"player {NAME!r}: solves games of two players without a limit of walls, "
            f"{SIZE}x{SIZE} with 1 or {MAX_TABLE_STONES} stones each, or "
            f"{MAX_SIZE}x{MAX_SIZE} with one"
        )


def make_exact_act(rules: Rules) -> tuple[Any, Callable[..., jax.Array]]:
    """Make the variables and the `act` of a small board's player: tables on 3x3, alpha-beta search
    on the host on 4x4.

    The boards that it is asked about are of these rules, in their own grid or in the corner of a
    larger one. A position too large for the search ends the calling program with the search's
    message.

    Raises:
      UsageError: the rules cannot be solved; from `act`, the boards are too small for them.
    """
    check_solvable(rules)
    if rules.size == SIZE:
        return tables_of(rules), _table_act(sizes_of(rules))
    return None, _search_act(rules)


@functools.lru_cache(maxsize=8)
def tables_of(rules: Rules) -> Tables:
    """`make_tables`, cached for the last few rules."""
    return make_tables(rules)


@functools.cache
def _table_act(own: Sizes) -> Callable[..., jax.Array]:
    @jax.jit
    def act(tables: Tables, states: State, key: jax.Array) -> jax.Array:
        best = jax.vmap(functools.partial(optimal_slots, tables))(_own_boards(states, own))
        return _slots_in(states, _sample(key, best), own)

    return act


@functools.lru_cache(maxsize=4)
def _search_act(rules: Rules) -> Callable[..., jax.Array]:
    search, own = AlphaBeta(rules), sizes_of(rules)

    @jax.jit
    def act(variables: None, states: State, key: jax.Array) -> jax.Array:
        del variables
        boards = states.position.ply.shape[0]
        best = jax.pure_callback(
            functools.partial(_search_all, search),
            jax.ShapeDtypeStruct((boards, own.num_slots), jnp.bool_),
            _own_boards(states, own).position,
            vmap_method="sequential",
        )
        return _slots_in(states, _sample(key, best), own)

    return act


def _own_boards(states: State, own: Sizes) -> State:
    """Boards [B] in their own grid; refuses those that the rules do not fit while JAX traces."""
    given = sizes_of_state(states)
    if given.players != own.players or given.grid < own.grid or given.stones < own.stones:
        raise UsageError(
            f"player {NAME!r}: its boards are of {_tell(own)}, these of {_tell(given)}"
        )
    return jax.vmap(functools.partial(to_own_grid, own=own))(states)


def _tell(sizes: Sizes) -> str:
    grid, players, stones = sizes
    return f"{grid}x{grid} cells, {players} players and {stones} stones each"


def _slots_in(states: State, slots: jax.Array, own: Sizes) -> jax.Array:
    """int32[B]: slots of boards in their own grid, as slots of the boards that were given."""
    return jax.vmap(functools.partial(slot_in, own=own))(states, slots)


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
    cells = tuple(int(cell) for cell in position.stones[:, 0])
    if position.ply < len(search.rules.order):
        return _best_placements(search, cells, int(position.ply))
    return search.optimal_slots(board_of(position))


def board_of(position: Position) -> Board:
    """A position on the host, after setup, as alpha-beta takes it."""
    cells = [int(cell) for cell in position.stones[:, 0]]
    built = np.bitwise_or.reduce(np.asarray(position.walls))[:, 0]
    mover = int(position.player)
    return Board(int(built[HORIZONTAL]), int(built[VERTICAL]), cells[mover], cells[1 - mover])


def _best_placements(search: AlphaBeta, cells: tuple[int, ...], ply: int) -> list[int]:
    values = _placement_values(search, cells, ply)
    best = max(values.values())
    return [cell for cell, value in values.items() if value == best]


def _placement_values(search: AlphaBeta, cells: tuple[int, ...], ply: int) -> dict[int, int]:
    """The value of a placement on each free cell, for the player who makes it."""
    mover, values = search.rules.order[ply], {}
    for cell in set(range(search.size**2)) - set(cells):
        placed = (cell, cells[1]) if mover == 0 else (cells[0], cell)
        values[cell] = _placed_value(search, placed, ply + 1, mover)
    return values


def _placed_value(search: AlphaBeta, cells: tuple[int, ...], ply: int, player: int) -> int:
    """The value of the stones placed so far, for a player; after setup player 0 moves first."""
    if ply == len(search.rules.order):
        value = search.value(Board(0, 0, *cells))
        return value if player == 0 else -value
    value = max(_placement_values(search, cells, ply).values())
    return value if player == search.rules.order[ply] else -value
