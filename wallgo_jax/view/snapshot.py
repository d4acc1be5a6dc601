"""A position as plain Python data, for text and pictures.

One jitted call per board shape asks the referee for everything; no rule is written again here.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from wallgo_jax.board import bitboard
from wallgo_jax.board.geometry import NUM_SIDES
from wallgo_jax.env import State as EnvState
from wallgo_jax.game import actions, referee
from wallgo_jax.game import terrain as terrain_lib
from wallgo_jax.game.state import NO_LIMIT, NO_STONE, NOT_PLACED, State

NOBODY = -1
"""Owner of a cell that counts for no player."""


class Wall(NamedTuple):
    """One wall: it lies below its cell if horizontal, right of it if vertical."""

    orientation: int
    cell: int
    builder: int


class LastPly(NamedTuple):
    """The ply before this position; `origin` and `side` are None for a placement."""

    player: int
    origin: int | None
    target: int
    side: int | None


class Snapshot(NamedTuple):
    """One position. N cells of the grid, P players; cells are flat indices in the grid.

    Attributes:
      grid: side length of the grid that numbers the cells.
      size: side length of the board in its top-left corner.
      stones: for each player, the cells of its stones by index, NOT_PLACED for those to come.
      walls: every wall, in the order of orientation and cell.
      owner: for each cell, the player whose territory it is, or NOBODY.
      territory: cells per player.
      reach: for each player, the cells where a move of its can end.
      exits: for each side, the cells that neither border nor wall closes there.
      free_exits: for each side, the cells from which an exit leads to an empty cell.
      legal: the public actions of the player to move that the referee allows; none after the end.
      walls_left: per player, or None where there is no limit.
      stay_needs_room: whether staying needs a free neighbouring cell.
      player: who moves next.
      ply: plies played.
      in_setup: whether stones are still being placed.
      is_over: whether the game has ended.
      ends_by_rules: whether the rules end a game in this position, marked as over or not.
      by_illegal_action: whether an illegal action of `player` ended it.
      payoff: after the end, each player's reward for the last step; None before the end, and where
        the tie rules depend on who made the last ply and the state does not hold it.
      last: the last ply, None where the state does not hold it.
    """

    grid: int
    size: int
    stones: tuple[tuple[int, ...], ...]
    walls: tuple[Wall, ...]
    owner: tuple[int, ...]
    territory: tuple[int, ...]
    reach: tuple[frozenset[int], ...]
    exits: tuple[frozenset[int], ...]
    free_exits: tuple[frozenset[int], ...]
    legal: frozenset[int]
    walls_left: tuple[int, ...] | None
    stay_needs_room: bool
    player: int
    ply: int
    in_setup: bool
    is_over: bool
    ends_by_rules: bool
    by_illegal_action: bool
    payoff: tuple[float, ...] | None
    last: LastPly | None

    @property
    def players(self) -> int:
        """P."""
        return len(self.stones)

    @property
    def has_turn(self) -> bool:
        """Whether the player to move has a legal action."""
        return bool(self.legal)

    @property
    def cells(self) -> tuple[int, ...]:
        """The playable cells, row by row."""
        return tuple(r * self.grid + c for r in range(self.size) for c in range(self.size))

    @property
    def stone_at(self) -> dict[int, tuple[int, int]]:
        """Cell -> (player, index among its stones)."""
        return {
            cell: (player, index)
            for player, cells in enumerate(self.stones)
            for index, cell in enumerate(cells)
            if cell != NOT_PLACED
        }

    @property
    def builder_at(self) -> dict[tuple[int, int], int]:
        """(orientation, cell) -> the builder of the wall there."""
        return {(wall.orientation, wall.cell): wall.builder for wall in self.walls}


def game_of(state: EnvState | State) -> State:
    """Return the rules' state of an env's state; a rules' state passes through."""
    return state.game if isinstance(state, EnvState) else state


def one_board(state: EnvState | State) -> State:
    """Return the rules' state of one board, given an env's state or a rules' state.

    Raises:
      ValueError: if the state is a batch.
    """
    game = game_of(state)
    shape = np.shape(game.variant.size)
    if shape:
        raise ValueError(f"state: a batch of shape {shape}, not one board")
    return game


def take_snapshot(state: EnvState | State) -> Snapshot:
    """Read one board off a state, on the host.

    Raises:
      ValueError: if the state is a batch.
    """
    game = one_board(state)
    game, facts = jax.device_get((game, _ask_referee(game)))
    variant, position = game
    is_over = bool(position.terminated)
    by_rules = bool(facts.ended_by_rules)
    last = _last_ply(position)
    payoff = _payoff_after(facts.payoffs, last) if by_rules else facts.penalty
    owner = np.where(facts.owned.any(axis=0), facts.owned.argmax(axis=0), NOBODY)
    return Snapshot(
        grid=game.grid,
        size=int(variant.size),
        stones=tuple(tuple(int(cell) for cell in row) for row in position.stones),
        walls=_walls(facts.walls),
        owner=tuple(int(player) for player in owner),
        territory=tuple(int(cells) for cells in facts.owned.sum(axis=1)),
        reach=_sets(facts.reach),
        exits=_sets(facts.exits),
        free_exits=_sets(facts.free_exits),
        legal=frozenset() if is_over else _sets(facts.legal[None])[0],
        walls_left=None
        if int(variant.walls) == NO_LIMIT
        else tuple(int(walls) for walls in position.walls_left),
        stay_needs_room=bool(variant.stay_needs_room),
        player=int(position.player),
        ply=int(position.ply),
        in_setup=bool(facts.in_setup),
        is_over=is_over,
        ends_by_rules=by_rules,
        by_illegal_action=is_over and not by_rules,
        payoff=None if payoff is None or not is_over else tuple(float(each) for each in payoff),
        last=last,
    )


class _Facts(NamedTuple):
    """The referee's answers about a position; A public actions."""

    walls: jax.Array  # bool[P, 2, N] by builder and orientation
    owned: jax.Array  # bool[P, N] territory
    reach: jax.Array  # bool[P, N]
    exits: jax.Array  # bool[4, N] by side
    free_exits: jax.Array  # bool[4, N] by side
    legal: jax.Array  # bool[A]
    in_setup: jax.Array  # bool
    ended_by_rules: jax.Array  # bool
    payoffs: jax.Array  # float32[P, P] of an end by the rules, by the player of the last ply
    penalty: jax.Array  # float32[P] of an end by an illegal action


@jax.jit
def _ask_referee(game: State) -> _Facts:
    grid, (variant, position) = game.grid, game
    terrain = terrain_lib.read_terrain(variant, position)
    reached = terrain_lib.regions(terrain)
    sets = terrain_lib.owned(reached)
    largest = terrain_lib.largest_regions(sets, terrain)
    pay = functools.partial(referee.payoff, variant, terrain_lib.areas(sets), largest)
    reach = [terrain_lib.movement(own, variant, terrain) for own in terrain.stones]
    return _Facts(
        walls=bitboard.to_mask(position.walls, grid),
        owned=bitboard.sets_to_mask(sets, grid),
        reach=bitboard.sets_to_mask(reach, grid),
        exits=bitboard.sets_to_mask(terrain.exits, grid),
        free_exits=bitboard.sets_to_mask(terrain.free_exits, grid),
        legal=actions.legal_actions(game, terrain=terrain),
        in_setup=actions.in_setup(variant, position),
        ended_by_rules=referee.ended_by_rules(variant, position, terrain, reached),
        payoffs=jax.vmap(pay)(jnp.arange(len(reach))),
        penalty=referee.illegal_penalty(position.player, len(reach)),
    )


def _payoff_after(payoffs: np.ndarray, last: LastPly | None) -> np.ndarray | None:
    """float32[P]: what the last ply's player makes of float32[P, P] payoffs; None where that is
    not known and they differ."""
    if last is not None:
        return payoffs[last.player]
    return payoffs[0] if (payoffs == payoffs[0]).all() else None


def _sets(masks: np.ndarray) -> tuple[frozenset[int], ...]:
    """bool[n, N] -> n sets of indices."""
    return tuple(frozenset(np.flatnonzero(mask).tolist()) for mask in masks)


def _walls(built: np.ndarray) -> tuple[Wall, ...]:
    """bool[P, 2, N] by builder and orientation -> the list of walls."""
    found = [
        Wall(int(orientation), int(cell), int(builder))
        for builder, orientation, cell in np.argwhere(built)
    ]
    return tuple(sorted(found))


def _last_ply(position: Any) -> LastPly | None:
    stone, origin, side = (int(value) for value in position.trail[0])
    if stone == NO_STONE:
        return None
    player, index = divmod(stone, position.stones.shape[1])
    target = int(position.stones[player, index])
    if not 0 <= side < NUM_SIDES:
        return LastPly(player, None, target, None)
    return LastPly(player, origin, target, side)
