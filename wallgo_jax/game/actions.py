"""Legal actions, in two numberings, and the way from one numbering to the other.

Slots, the compact numbering of search and training (S stones a player, N cells of the grid):

    play    slot = stone * 52 + move * 4 + side      stone: index among the mover's own
    setup   slot = cell

Public actions, WallZero's numbering of records and the env (2597 at size 7):

    play    action = cell * 52 + move * 4 + side     cell: where the stone stands
    setup   action = N * 52 + cell

`move` and `side` are drawn in `board.geometry`; `side` is a side of the cell where the stone ends.

Legal plays are bits. The 52 of a stone are a low word of 32 and a high word of 20, in which `side`
runs fastest:

    play           51 50 49 48 .. 35 34 33 32 | 31 30 29 28 ..  3  2  1  0
    move           12 12 12 12 ..  8  8  8  8 |  7  7  7  7 ..  0  0  0  0
    side            3  2  1  0 ..  3  2  1  0 |  3  2  1  0 ..  3  2  1  0
                             high             |            low

The legal slots are those bits laid end to end, so that a stone begins inside a word. Each stone's
bits in each word, of four stones:

    word        0    1    2    3    4    5    6
    stone 0    32   20    .    .    .    .    .
    stone 1     .   12   32    8    .    .    .
    stone 2     .    .    .   24   28    .    .
    stone 3     .    .    .    .    4   32   16
"""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np

from wallgo_jax.board import bitboard
from wallgo_jax.board.fusion import fusion_barrier
from wallgo_jax.board.geometry import (
    MOVE_PATHS,
    NUM_MOVES,
    NUM_SIDES,
    PLAYS_PER_STONE,
    SIDES,
    STAY,
    make_move_deltas,
    side_delta,
)
from wallgo_jax.board.select import choose, pick
from wallgo_jax.game import chance
from wallgo_jax.game import terrain as terrain_lib
from wallgo_jax.game.sizes import first_placement, num_actions
from wallgo_jax.game.sizes import num_slots as num_slots
from wallgo_jax.game.state import NOT_PLACED, Position, State, Variant, assert_board
from wallgo_jax.game.terrain import Terrain

NO_ACTION = -1
"""Public action of no ply: it fills a table of games behind a game's last action."""
NO_SLOT = -1
"""Slot of a public action that the mover has no stone for, or that belongs to the other phase."""


def in_setup(variant: Variant, position: Position) -> jax.Array:
    """bool: whether stones are still being placed."""
    return position.ply < variant.num_placements


def own_cells(position: Position) -> jax.Array:
    """int32[S]: the cells of the stones of the player to move, NOT_PLACED for those to come."""
    return choose(position.stones, position.player).astype(jnp.int32)


def draw_slot(state: State, bits: jax.Array) -> jax.Array:
    """int32[]: a legal slot of the player to move, each as likely as the others within one in 2^16
    / their number.

    Args:
      state: one board.
      bits: uint32[] random bits.
    """
    return chance.choose_bit(bits, legal_words(state)).astype(jnp.int32)


def legal_words(state: State, *, terrain: Terrain | None = None) -> jax.Array:
    """uint32[ceil(A / 32)]: the legal slots as bits, slot `32 w + b` in bit b of word w.

    They are those of the player to move. After the end slot 0 alone is set, so that a masked
    softmax stays finite; a player without a legal turn does not get to move (see `game.referee`).

    Args:
      terrain: that of the state, where the caller has it.
    """
    assert_board(state)
    if terrain is None:
        terrain = terrain_lib.read_terrain(*state)
    return _legal_words(state, terrain)


def legal_slots(state: State, *, terrain: Terrain | None = None) -> jax.Array:
    """bool[A]: the slots of `legal_words` as a mask."""
    slots = state.num_slots
    words = legal_words(state, terrain=terrain)
    # Fused into the mask, the few words would be computed again for each of its entries.
    words = fusion_barrier(words, token=state.position.ply < 0)
    return bitboard.bits_to_mask(words, slots)


# Inlined, the function leaves no call in a program; JAX traces it once for all programs of a shape.
@functools.partial(jax.jit, inline=True)
def _legal_words(state: State, terrain: Terrain) -> jax.Array:
    variant, position = state
    low, high = play_bits(state, terrain)
    empty = bitboard.difference(bitboard.unpack(variant.playable), terrain.occupied)
    setup = in_setup(variant, position)
    plays = _concatenate_bits(low, high, -(-state.num_slots // 32))
    words = []
    for index, play in enumerate(plays):
        place = empty[index] if index < len(empty) else jnp.uint32(0)
        word = jnp.where(setup, place, play)
        words.append(jnp.where(position.terminated, jnp.uint32(index == 0), word))
    return jnp.stack(words)


def _concatenate_bits(low: jax.Array, high: jax.Array, words: int) -> list[jax.Array]:
    """Lay the 52 bits of each stone end to end (see the picture above)."""
    result = [jnp.uint32(0)] * words
    for stone in range(low.shape[0]):
        for start, bits in ((0, low[stone]), (32, high[stone])):
            word, offset = divmod(stone * PLAYS_PER_STONE + start, 32)
            result[word] = result[word] | (bits << np.uint32(offset))
            # The bits that the shift pushed out of this word begin the next one.
            if offset and word + 1 < words:
                result[word + 1] = result[word + 1] | (bits >> np.uint32(32 - offset))
    return result


def play_bits(state: State, terrain: Terrain) -> tuple[jax.Array, jax.Array]:
    """Find the legal plays of the player to move as 52 bits a stone: (low 32 bits, high 20 bits).

    Returns:
      Two uint32[S]; bit `move * 4 + side`. They hold in play alone: neither the phase of placement
      nor the end of the game clears them.
    """
    grid = state.grid
    cells = own_cells(state.position)
    moves = _legal_moves(cells, terrain, state.variant)
    deltas = make_move_deltas(grid)
    low = high = jnp.zeros_like(moves[0])
    for move in range(NUM_MOVES):
        target = cells + int(deltas[move])
        sides = jnp.zeros_like(low)
        for side in SIDES:
            is_open = bitboard.contains(terrain.exits[side], target)
            sides = sides | (is_open << np.uint32(side))
        # Off the board `contains` gives junk; the move there is 0 and blanks it.
        sides = sides * moves[move]
        shift = move * NUM_SIDES
        if shift < 32:
            low = low | (sides << np.uint32(shift))
        else:
            high = high | (sides << np.uint32(shift - 32))
    keep = (cells != NOT_PLACED) & (_walls_left(state.position) > 0)
    bits = (jnp.where(keep, low, 0), jnp.where(keep, high, 0))
    # Without the barrier each slot of the mask computes its stone's bits again (`board.fusion`).
    return fusion_barrier(bits, token=state.position.ply < 0)


def _walls_left(position: Position) -> jax.Array:
    return choose(position.walls_left, position.player)


def _legal_moves(cells: jax.Array, terrain: Terrain, variant: Variant) -> list[jax.Array]:
    """Find for each move uint32[S] 0 or 1: whether each stone can walk it; walls to build aside."""
    grid = variant.grid.side
    first = [bitboard.contains(terrain.free_exits[side], cells) for side in SIDES]
    can_step = first[0] | first[1] | first[2] | first[3]
    moves = []
    for move, paths in enumerate(MOVE_PATHS):
        if move == STAY:
            moves.append(jnp.where(variant.stay_needs_room, can_step, jnp.ones_like(can_step)))
            continue
        # A diagonal has two paths, and one that is open is enough. The last cell must be empty, and
        # so must the one between: each step takes an exit into an empty cell.
        legal = jnp.zeros_like(can_step)
        for path in paths:
            way = first[path[0]]
            if len(path) == 2:
                middle = cells + side_delta(path[0], grid)
                way = way & bitboard.contains(terrain.free_exits[path[1]], middle)
            legal = legal | way
        moves.append(legal)
    return moves


def is_legal(state: State, slot: jax.Array) -> jax.Array:
    """bool: whether one slot is legal; False out of range and after the end."""
    assert_board(state)
    chex.assert_shape(slot, ())
    grid = state.grid
    variant, position = state
    slot = jnp.asarray(slot).astype(jnp.int32)
    own = own_cells(position)
    terrain = terrain_lib.read_terrain(variant, position)
    in_range = (slot >= 0) & (slot < state.num_slots)
    empty = bitboard.difference(bitboard.unpack(variant.playable), terrain.occupied)
    is_empty = (slot < grid * grid) & (bitboard.contains(empty, slot) != 0)
    is_play = _is_play(own, slot, variant, terrain) & (_walls_left(position) > 0)
    legal = jnp.where(in_setup(variant, position), is_empty, is_play)
    return legal & in_range & ~position.terminated


def _is_play(own: jax.Array, slot: jax.Array, variant: Variant, terrain: Terrain) -> jax.Array:
    """bool: whether the stone of a slot can make its move and build its wall."""
    grid = variant.grid.side
    stone, play = split(slot, PLAYS_PER_STONE)
    move, side = split(play, NUM_SIDES)
    cell = pick(own, stone)
    can_move = choose(_legal_moves(cell, terrain, variant), move)
    target = cell + pick(jnp.asarray(make_move_deltas(grid)), move)
    is_open = choose([bitboard.contains(exits, target) for exits in terrain.exits], side)
    is_own = (stone < own.shape[0]) & (cell != NOT_PLACED)
    return is_own & (can_move & is_open != 0)


def split(number: jax.Array, by: int) -> tuple[jax.Array, jax.Array]:
    """Divide an int32: int32 quotient and remainder, undefined where it is negative."""
    # An unsigned quotient is one multiplication, a signed one a dozen operations.
    quotient, remainder = jnp.divmod(number.astype(jnp.uint32), np.uint32(by))
    return quotient.astype(jnp.int32), remainder.astype(jnp.int32)


def legal_actions(state: State, *, terrain: Terrain | None = None) -> jax.Array:
    """bool[grid² * 53] over public actions; all true after the end (pgx's contract).

    Args:
      terrain: that of the state, where the caller has it.
    """
    assert_board(state)
    grid = state.grid
    token = state.position.ply < 0
    if terrain is None:
        terrain = terrain_lib.read_terrain(*state)
    # Without the barrier the words would be computed again for each action.
    words = fusion_barrier(_public_words(state, terrain), token=token)
    return bitboard.bits_to_long_mask(words, num_actions(grid), token)


def _public_words(state: State, terrain: Terrain) -> jax.Array:
    """uint32[ceil(grid² * 53 / 32)]: `legal_actions` as one string of bits.

    A stone's 52 plays start at the bit `cell * 52`, the placements behind those of the last cell:

        bit      0        52        104        N * 52        N * 53
                 | cell 0 | cell 1 | ..        | placements  |
    """
    grid = state.grid
    variant, position = state
    setup = in_setup(variant, position)
    empty = bitboard.difference(bitboard.unpack(variant.playable), terrain.occupied)
    placements = [jnp.where(setup, word, 0) for word in empty]
    strings = [(placements, jnp.int32(first_placement(grid)))]
    own = own_cells(position)
    # A stone not yet placed gives a negative start, but its plays are empty during setup.
    low, high = (jnp.where(setup, 0, bits) for bits in play_bits(state, terrain))
    strings += [([low[s], high[s]], own[s] * PLAYS_PER_STONE) for s in range(own.shape[0])]
    words = _concatenate_at(strings, -(-num_actions(grid) // 32))
    return jnp.where(position.terminated, ~jnp.uint32(0), words)


def _concatenate_at(strings: list[tuple[list[jax.Array], jax.Array]], words: int) -> jax.Array:
    """uint32[words]: a string of bits in which each list of uint32 starts at its int32 place.

    A list at a negative place must be empty. Where a list starts depends on the board, so that each
    word is compared with the place of each part; a scatter would be slower.
    """
    index = jnp.arange(words)
    total = jnp.zeros((words,), jnp.uint32)
    for parts, place in strings:
        first, offset = place >> 5, (place & 31).astype(jnp.uint32)
        carry = jnp.uint32(0)
        for ahead, bits in enumerate([*parts, jnp.uint32(0)]):
            word = (bits << offset) | carry
            total = total | jnp.where(index == first + ahead, word, 0)
            carry = bits >> (32 - offset)  # by 32 gives 0
    return total


def in_int32(action: int, *, grid: int) -> np.int32:
    """A public action that may be any whole number, in 32 bits: one that is out of range stays so,
    and is never NO_ACTION."""
    count = num_actions(grid)
    return np.int32(action if 0 <= action < count else count)


def slot_of_action(state: State, action: jax.Array) -> jax.Array:
    """int32: the slot of a public action, legal or not.

    NO_SLOT stands for an action that is out of range, belongs to the other phase or names a cell
    without an own stone.
    """
    assert_board(state)
    chex.assert_shape(action, ())
    grid = state.grid
    variant, position = state
    action = jnp.asarray(action).astype(jnp.int32)
    first = first_placement(grid)
    own = own_cells(position)
    cell, play = split(action, PLAYS_PER_STONE)
    # At most one stone stands on the cell. Counted from 1, no stone sums to 0 and becomes -1.
    stone = jnp.sum(jnp.where(own == cell, jnp.arange(1, own.shape[0] + 1), 0)) - 1
    is_play = (action >= 0) & (action < first) & (stone >= 0)
    is_placement = (action >= first) & (action < num_actions(grid))
    slot = jnp.where(is_play, stone * PLAYS_PER_STONE + play, action - first)
    fits_phase = jnp.where(in_setup(variant, position), is_placement, is_play)
    return jnp.where(fits_phase, slot, NO_SLOT).astype(jnp.int32)


def action_of_slot(state: State, slot: jax.Array) -> jax.Array:
    """int32: the public action of a legal slot."""
    assert_board(state)
    chex.assert_shape(slot, ())
    grid = state.grid
    variant, position = state
    slot = jnp.asarray(slot).astype(jnp.int32)
    own = own_cells(position)
    cell = pick(own, slot // PLAYS_PER_STONE)
    play = cell * PLAYS_PER_STONE + slot % PLAYS_PER_STONE
    return jnp.where(in_setup(variant, position), first_placement(grid) + slot, play)
