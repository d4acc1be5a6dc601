"""Solves every position of a tiny board, backwards over the number of walls, in dense arrays.

Positions that differ only in the colours of walls, the order of a player's stones or history are
one position. Its walls are bits: six below a cell (left picture), then six right of a cell (right
picture):

     .   .   .            . 6 . 7 .
     0   1   2
     .   .   .            . 8 . 9 .
     3   4   5
     .   .   .            . 10 . 11 .

The value of a ply is stored at the position that it leads to, for the player who made it; it takes
into account who moves next and whether the game is over.

W = 4096 sets of walls, C pairs of disjoint sets of stones (one player's, the other's), A slots.
"""

import functools
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.solver.boards import LOSS, WIN, Board, opening, openings_of, plays
from train.solver.placements import Placements, placed_sets
from wallgo_jax.board import bitboard
from wallgo_jax.board.geometry import DOWN, HORIZONTAL, PLAYS_PER_STONE, RIGHT, VERTICAL
from wallgo_jax.game import actions, referee
from wallgo_jax.game import terrain as terrain_lib
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State, Variant, initial_position, make_variant

SIZE, CELLS, EDGES = 3, 9, 12
WALL_SETS = 1 << EDGES
STONE_SETS = 1 << CELLS
_UNKNOWN = -2
_NO_NUMBER = -1
_NO_EDGE = 0
_BOARDS_AT_ONCE = 1 << 14


class Tables(NamedTuple):
    """A solved board."""

    after: jax.Array  # int8[W, C, 2], value of the position after a play of player 0 or 1
    setup: jax.Array  # int8[512, 512], value for player 0 in setup, by both sets of stones as bits


def make_tables(rules: Rules) -> Tables:
    """Solve a board: about six seconds for two stones each on a CPU core, under one for one stone.

    Args:
      rules: of `check_solvable`.
    """
    variant = jax.tree.map(jnp.asarray, make_variant(rules))
    pairs = stone_pairs(rules.stones)
    count = max(1, _BOARDS_AT_ONCE // len(pairs))
    after = jnp.full((WALL_SETS, len(pairs), 2), _UNKNOWN, jnp.int8)
    every = np.arange(WALL_SETS, dtype=np.int32)
    for number in reversed(range(EDGES + 1)):
        level = every[np.bitwise_count(every) == number]
        for first in range(0, len(level), count):
            chunk = level[first : first + count]
            # Filling the last chunk with its first entry, written twice, keeps one shape.
            chunk = np.r_[chunk, np.full(count - len(chunk), chunk[0], np.int32)]
            after = _fill(after, variant, jnp.asarray(chunk), stones=rules.stones)
    start = _evaluate(after, variant, jnp.zeros(1, jnp.int32), stones=rules.stones)
    setup = _solve_setup(rules, jax.device_get(jax.tree.map(lambda x: x[0], start)))
    return Tables(after, jnp.asarray(setup))


def slot_values(tables: Tables, state: State) -> jax.Array:
    """int8[A]: the value of each slot for the player to move; undefined at illegal slots."""
    mover = state.position.player.astype(jnp.int32)
    setup = jnp.where(mover == 0, jnp.int8(1), jnp.int8(-1)) * tables.setup[*placements(state)]
    play = tables.after[*children(state), mover]
    return jnp.where(actions.in_setup(*state), setup, play)


def optimal_slots(tables: Tables, state: State) -> jax.Array:
    """bool[A]: the legal slots that keep the value of the game; slot 0 alone after the end."""
    legal = actions.legal_slots(state)
    values = jnp.where(legal, slot_values(tables, state), jnp.int8(_UNKNOWN))
    return legal & (values == values.max())


def value_of(tables: Tables, state: State) -> jax.Array:
    """int8: the value of the game for the player to move; undefined after the end."""
    legal = actions.legal_slots(state)
    return jnp.where(legal, slot_values(tables, state), jnp.int8(_UNKNOWN)).max()


def placements(state: State) -> tuple[jax.Array, jax.Array]:
    """int32[A], int32[A]: the sets of stones as bits after a placement in each slot; undefined from
    slot 9 on and in play."""
    mover = state.position.player
    slots = actions.num_slots(state.position.stones.shape[1], grid=SIZE)
    placed = jnp.asarray(1 << np.minimum(np.arange(slots), CELLS - 1))
    red, blue = _stone_masks(state.position.stones)
    return red | jnp.where(mover == 0, placed, 0), blue | jnp.where(mover == 1, placed, 0)


def children(state: State) -> tuple[jax.Array, jax.Array]:
    """int32[A], int32[A]: walls and pair of stones after each slot; undefined at illegal slots and
    in setup."""
    position = state.position
    stones = position.stones.shape[1]
    walls, pair = place_of(state)
    cells = actions.own_cells(position)
    rank = (cells[:, None] > cells[None, :]).sum(axis=1)
    slot = np.arange(stones * PLAYS_PER_STONE)
    ordered = rank[slot // PLAYS_PER_STONE] * PLAYS_PER_STONE + slot % PLAYS_PER_STONE
    to_pair, edge = (jnp.asarray(table) for table in _make_children(stones))
    mover = position.player.astype(jnp.int32)
    return walls | edge[pair, mover, ordered], to_pair[pair, mover, ordered]


def place_of(state: State) -> tuple[jax.Array, jax.Array]:
    """int32, int32: the walls as bits, and the number of the pair of sets of stones, which is
    undefined in setup."""
    position = state.position
    built = (position.walls[0] | position.walls[1])[:, 0].astype(jnp.int32)
    walls = jnp.int32(0)
    for edge, (cell, side) in enumerate(_make_edges()):
        word = built[HORIZONTAL if side == DOWN else VERTICAL]
        walls |= ((word >> cell) & 1) << edge
    masks = _stone_masks(position.stones)
    return walls, jnp.asarray(_make_pair_numbers(position.stones.shape[1]))[masks[0], masks[1]]


def _stone_masks(stones: jax.Array) -> jax.Array:
    """int32[2]: the cells of each player's int8[2, S] stones as bits."""
    sets = [terrain_lib.stone_cells(of_player, grid=SIZE)[0] for of_player in stones]
    return jnp.stack(sets).astype(jnp.int32)


@functools.cache
def stone_pairs(stones: int) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
    """The C pairs of disjoint sets of cells; the cells of a set rise."""
    sets = tuple(itertools.combinations(range(CELLS), stones))
    return tuple((one, other) for one in sets for other in sets if not set(one) & set(other))


@functools.cache
def _make_pair_numbers(stones: int) -> np.ndarray:
    """int32[512, 512]: the number of a pair by the two sets as bits, or _NO_NUMBER."""
    numbers = np.full((STONE_SETS, STONE_SETS), _NO_NUMBER, np.int32)
    for number, pair in enumerate(stone_pairs(stones)):
        numbers[_mask(pair[0]), _mask(pair[1])] = number
    return numbers


@functools.cache
def _make_edges() -> tuple[tuple[int, int], ...]:
    """Cell and side of each inner edge, in the order of the picture above."""
    below = [(cell, DOWN) for cell in range(CELLS - SIZE)]
    return (*below, *((cell, RIGHT) for cell in range(CELLS) if cell % SIZE < SIZE - 1))


@functools.cache
def _make_children(stones: int) -> tuple[np.ndarray, np.ndarray]:
    """int32[C, 2, A] twice: pair of stones and bit of the wall after each slot of a player whose
    stones are numbered by rising cell; 0 and _NO_EDGE where no board has that play."""
    pairs, numbers = stone_pairs(stones), _make_pair_numbers(stones)
    shape = len(pairs), 2, actions.num_slots(stones, grid=SIZE)
    to_pair, edge = np.zeros(shape, np.int32), np.full(shape, _NO_EDGE, np.int32)
    down, right = openings_of(SIZE)
    bits = {opening(*place, SIZE): 1 << number for number, place in enumerate(_make_edges())}
    for (number, pair), mover in itertools.product(enumerate(pairs), (0, 1)):
        # Walls and stones in between only take plays away.
        for slot, after in plays(Board(down, right, pair, mover), SIZE):
            to_pair[number, mover, slot] = numbers[_mask(after.stones[0]), _mask(after.stones[1])]
            edge[number, mover, slot] = bits[down & ~after.down, right & ~after.right]
    return to_pair, edge


def _mask(cells: tuple[int, ...]) -> int:
    return sum(1 << cell for cell in cells)


class _Evaluated(NamedTuple):
    """Boards [N, C], evaluated for both players."""

    value: jax.Array  # int8[N, C, 2], for each player if to move; _UNKNOWN without a turn
    can_move: jax.Array  # bool[N, C, 2]
    is_separated: jax.Array  # bool[N, C]
    payoff: jax.Array  # int8[N, C, 2], if the game ends here, for the player who moved last


@functools.partial(jax.jit, static_argnames="stones", donate_argnums=0)
def _fill(after: jax.Array, variant: Variant, walls: jax.Array, *, stones: int) -> jax.Array:
    """`after` with the rows int32[N] of equally many walls, given those with one more."""
    boards = _evaluate(after, variant, walls, stones=stones)
    is_over = boards.is_separated | ~boards.can_move.any(axis=-1)
    # The opponent moves next if able, else the same player again.
    opponent_can_move, opponent_value = boards.can_move[..., ::-1], boards.value[..., ::-1]
    continued = jnp.where(opponent_can_move, -opponent_value, boards.value)
    return after.at[walls].set(jnp.where(is_over[..., None], boards.payoff, continued))


@functools.partial(jax.jit, static_argnames="stones")
def _evaluate(after: jax.Array, variant: Variant, walls: jax.Array, *, stones: int) -> _Evaluated:
    pairs = jnp.asarray(np.array(stone_pairs(stones), np.int8))  # [C, 2, S]
    first = initial_position(variant)._replace(ply=variant.num_placements)

    def best_of(player: jax.Array, state: State) -> tuple[jax.Array, jax.Array]:
        state = state._replace(position=state.position._replace(player=player))
        legal = actions.legal_slots(state)
        places = (*children(state), player.astype(jnp.int32))
        return jnp.where(legal, after[places], jnp.int8(_UNKNOWN)).max(), legal.any()

    def board(wall_set: jax.Array, cells: jax.Array) -> _Evaluated:
        built = jnp.stack([wall_words(wall_set), jnp.zeros((2, 1), jnp.uint32)])
        state = State(variant, first._replace(stones=cells, walls=built))
        value, can_move = jax.vmap(best_of, in_axes=(0, None))(jnp.arange(2, dtype=jnp.int8), state)
        terrain = terrain_lib.read_terrain(*state)
        reached = terrain_lib.regions(terrain)
        owned = terrain_lib.owned(reached)
        territory, largest = (
            terrain_lib.areas(owned),
            terrain_lib.largest_regions(owned, terrain),
        )
        payoffs = [
            referee.payoff(variant, territory, largest, jnp.int8(mover))[mover]
            for mover in range(2)
        ]
        is_separated = terrain_lib.is_separated(terrain, reached)
        return _Evaluated(value, can_move, is_separated, jnp.stack(payoffs).astype(jnp.int8))

    return jax.vmap(jax.vmap(board, in_axes=(None, 0)), in_axes=(0, None))(walls, pairs)


def wall_words(wall_set: jax.Array) -> jax.Array:
    """Convert walls as bits to uint32[2, 1], as a position stores those of one player."""
    words = [jnp.uint32(0), jnp.uint32(0)]
    for edge, (cell, side) in enumerate(_make_edges()):
        orientation = HORIZONTAL if side == DOWN else VERTICAL
        bit = (wall_set >> edge) & 1
        words[orientation] |= bit.astype(jnp.uint32) << np.uint32(cell)
    return bitboard.pack(tuple(words))[:, None]


def _solve_setup(rules: Rules, start: _Evaluated) -> np.ndarray:
    """int8[512, 512]: values for player 0 of the boards [C] without walls, and of all placements
    before them; _UNKNOWN where the rules do not lead."""
    last = rules.order[-1] if rules.order else 0
    payoff = start.payoff[:, last] * (WIN if last == 0 else LOSS)
    waits = np.where(start.can_move[:, 1], -start.value[:, 1], payoff)
    values = np.where(start.can_move[:, 0], start.value[:, 0], waits)
    numbers = _make_pair_numbers(rules.stones)
    placements = Placements(rules, lambda sets: int(values[numbers[sets]]))
    placements.value(placed_sets(rules))
    setup = np.full((STONE_SETS, STONE_SETS), _UNKNOWN, np.int8)
    for sets, value in placements.known.items():
        setup[sets] = value
    return setup
