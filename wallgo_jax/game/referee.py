"""The referee's verbs: step, outcome, auto-reset. One board at a time."""

import jax
import jax.numpy as jnp
import numpy as np

from wallgo_jax.board import bitboard
from wallgo_jax.board.bitboard import Cells
from wallgo_jax.board.fusion import fusion_barrier
from wallgo_jax.board.geometry import (
    DOWN,
    HORIZONTAL,
    LEFT,
    NUM_SIDES,
    PLAYS_PER_STONE,
    RIGHT,
    UP,
    VERTICAL,
    make_move_deltas,
)
from wallgo_jax.game import actions
from wallgo_jax.game import terrain as terrain_lib
from wallgo_jax.game.state import (
    NO_PLAYER,
    NO_SIDE,
    NO_STONE,
    NOT_PLACED,
    TIE_MOVER_LOSES,
    TIE_REGION,
    TRAIL_LENGTH,
    Position,
    State,
    Variant,
    empty_trail,
    initial_position,
)
from wallgo_jax.game.terrain import BoardAnalysis, Terrain


def play(state: State, slot: jax.Array) -> tuple[State, jax.Array]:
    """Play one slot that the caller knows to be legal; a finished game does not change.

    The verb of search and self-play, which choose among `legal_slots`; an illegal slot gives an
    undefined position. `step` is the one that checks.

    Args:
      state: one board.
      slot: int[] compact action of the player to move (see `game.actions`).
      grid: side length of the grid.

    Returns:
      The next state and float32[P] rewards: zeros until the end, then +1 for a sole winner and
      -1 / (P - 1) for each other player, zeros for a draw; zeros on a finished game.
    """
    after, rewards, _ = play_with_analysis(state, slot)
    return after, rewards


def step(state: State, slot: jax.Array) -> tuple[State, jax.Array]:
    """Play one slot, legal or not.

    An illegal slot ends the game with the board unchanged and pays -1 to the offender and
    +1 / (P - 1) to each other player. Otherwise as `play`.
    """
    is_legal = actions.is_legal(state, slot)
    is_legal = fusion_barrier(is_legal, token=state.position.ply < 0)
    after, rewards, _ = step_with_analysis(state, slot, is_legal)
    return after, rewards


def step_with_analysis(
    state: State, slot: jax.Array, is_legal: jax.Array
) -> tuple[State, jax.Array, BoardAnalysis]:
    """`step` with a slot that is known to be legal or not, bool[], and what a ply works out of the
    next state anyway; where none was played, that is undefined."""
    before = state.position
    illegal = ~is_legal & ~before.terminated
    after, rewards, analysis = play_with_analysis(state, slot)
    position = jax.tree.map(lambda new, old: jnp.where(illegal, old, new), after.position, before)
    position = position._replace(terminated=position.terminated | illegal)
    penalty = _shares(jnp.arange(rewards.shape[0]) == before.player, winner=False)
    return State(state.variant, position), jnp.where(illegal, penalty, rewards), analysis


def play_with_analysis(state: State, slot: jax.Array) -> tuple[State, jax.Array, BoardAnalysis]:
    """`play`, and what a ply works out of the next state anyway; undefined where the game was over
    before."""
    variant, before = state
    token = before.ply < 0
    slot = fusion_barrier(slot.astype(jnp.int32), token=token)
    moved = fusion_barrier(_put_on_board(state, slot), token=token)
    after, rewards, analysis = _settle(variant, moved, before.player)
    over = before.terminated
    position = jax.tree.map(lambda new, old: jnp.where(over, old, new), after, before)
    return State(variant, position), jnp.where(over, 0.0, rewards), analysis


def _put_on_board(state: State, slot: jax.Array) -> Position:
    """Put the action on the board: a stone placed, or a stone moved and a wall built."""
    grid = state.grid
    variant, position = state
    players, stones = position.stones.shape
    setup = actions.in_setup(variant, position)
    own = actions.own_cells(position)
    placed = jnp.sum((own != NOT_PLACED).astype(jnp.int32))
    chosen, play = actions.split(slot, PLAYS_PER_STONE)
    move, wall = actions.split(play, NUM_SIDES)
    stone = jnp.where(setup, placed, chosen)
    side = jnp.where(setup, NO_SIDE, wall)
    is_stone = jnp.arange(stones) == stone
    origin = jnp.sum(jnp.where(is_stone, own, 0))
    delta = _lookup(make_move_deltas(grid), move)
    target = jnp.where(setup, slot, origin + delta)
    is_mover = jnp.arange(players) == position.player
    moved = is_mover[:, None] & is_stone[None, :]
    entry = jnp.stack([position.player * stones + stone, origin, side]).astype(jnp.int8)
    builds = is_mover & ~setup
    return position._replace(
        stones=jnp.where(moved, target, position.stones).astype(jnp.int8),
        walls=position.walls
        | jnp.where(builds[:, None, None], wall_bits(target, side, grid=grid)[None], 0),
        walls_left=position.walls_left - builds,
        trail=jnp.concatenate([entry[None], position.trail[: TRAIL_LENGTH - 1]]),
        ply=position.ply + jnp.int16(1),
    )


def wall_bits(cell: jax.Array, side: jax.Array, *, grid: int) -> jax.Array:
    """uint32[2, W]: the wall on a side of a cell, as it is stored; no wall for NO_SIDE."""
    lower = bitboard.one_hot(jnp.where(side == UP, cell - grid, cell), grid)
    right = bitboard.one_hot(jnp.where(side == LEFT, cell - 1, cell), grid)
    nothing = bitboard.empty(grid)
    planes = [nothing, nothing]
    planes[HORIZONTAL] = bitboard.where((side == UP) | (side == DOWN), lower, nothing)
    planes[VERTICAL] = bitboard.where((side == LEFT) | (side == RIGHT), right, nothing)
    return jnp.stack([bitboard.pack(cells) for cells in planes])


def _lookup(table: np.ndarray, index: jax.Array) -> jax.Array:
    """table[index] of a short constant table, by comparison; 0 out of range."""
    hit = index == np.arange(len(table))
    return jnp.sum(jnp.where(hit, jnp.asarray(table), 0), dtype=jnp.int32)


def _settle(
    variant: Variant, position: Position, mover: jax.Array
) -> tuple[Position, jax.Array, BoardAnalysis]:
    """After a ply: who moves next, whether the game is over, what it pays, and what was seen of the
    board."""
    grid = variant.grid.side
    terrain = terrain_lib.read_terrain(variant, position)
    reached = terrain_lib.regions(terrain)
    setup = actions.in_setup(variant, position)
    player, stuck = _next_player(variant, position, terrain, mover)
    over = ~setup & (stuck | terrain_lib.is_separated(terrain, reached))
    sets = terrain_lib.owned(reached)
    territory = terrain_lib.areas(sets)
    level = _is_most(territory, jnp.ones(territory.shape, jnp.bool_))
    wants_regions = over & (level.sum() > 1) & (variant.tie == TIE_REGION).any()
    over, wants_regions = fusion_barrier((over, wants_regions), token=position.ply < 0)
    compared = tuple(bitboard.where(wants_regions, cells, bitboard.empty(grid)) for cells in sets)
    largest = terrain_lib.largest_regions(compared, terrain)
    rewards = jnp.where(over, payoff(variant, territory, largest, mover), 0.0)
    return position._replace(player=player, terminated=over), rewards, BoardAnalysis(terrain, sets)


def _next_player(
    variant: Variant, position: Position, terrain: Terrain, mover: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The player of the next ply (int8), and whether nobody has a legal turn.

    In setup the schedule says; then the players take turns from player 0 on, and one without a
    legal turn is skipped.
    """
    players = position.stones.shape[0]
    scheduled = jnp.sum(
        jnp.where(jnp.arange(variant.order.shape[0]) == position.ply, variant.order, 0)
    )
    setup = actions.in_setup(variant, position)
    after_setup = position.ply == variant.num_placements
    seat = jnp.where(after_setup, 0, mover + 1).astype(jnp.int32)
    can_move = [_has_turn(variant, position, terrain, player) for player in range(players)]
    choice = jnp.int32(NO_PLAYER)
    for ahead in reversed(range(players)):
        candidate = (seat + ahead) % players
        able = can_move[0]
        for player in range(1, players):
            able = jnp.where(candidate == player, can_move[player], able)
        choice = jnp.where(able, candidate, choice)
    stuck = choice == NO_PLAYER
    player = jnp.where(setup, scheduled, jnp.where(stuck, mover, choice))
    return player.astype(jnp.int8), ~setup & stuck


def _has_turn(variant: Variant, position: Position, terrain: Terrain, player: int) -> jax.Array:
    """bool: whether a player has a wall left and a stone that can use it.

    A stone that steps can always wall the side it came over, so only a stone that must stay needs
    a side of its own; where staying needs room, it needs a free neighbour, and could as well step.
    """
    stones = terrain.stones[player]
    can_step = bitboard.any_cell(bitboard.intersection(stones, bitboard.union(*terrain.free_exits)))
    has_side = bitboard.any_cell(bitboard.intersection(stones, bitboard.union(*terrain.exits)))
    able = jnp.where(variant.stay_needs_room, can_step, has_side)
    return able & (position.walls_left[player] > 0)


def payoff(
    variant: Variant, territory: jax.Array, largest: jax.Array, last_mover: jax.Array
) -> jax.Array:
    """float32[P] rewards of a finished game from its int32[P] territory and largest regions.

    The tie rules act in order on the players still level.
    """
    players = territory.shape[0]
    level = _is_most(territory, jnp.ones((players,), jnp.bool_))
    others = jnp.arange(players) != last_mover
    for place in range(variant.tie.shape[0]):
        rule = variant.tie[place]
        by_region = _is_most(largest, level)
        by_mover = jnp.where(level.sum() > 1, level & others, level)
        level = jnp.where(rule == TIE_REGION, by_region, level)
        level = jnp.where(rule == TIE_MOVER_LOSES, by_mover, level)
    return jnp.where(level.sum() == 1, _shares(level, winner=True), 0.0)


def _is_most(values: jax.Array, among: jax.Array) -> jax.Array:
    """bool[P]: which of the candidates have the most."""
    values = jnp.where(among, values, -1)
    return among & (values == values.max())


def _shares(who: jax.Array, *, winner: bool) -> jax.Array:
    """float32[P]: +1 to the one and -1 / (P - 1) to each other, or the reverse."""
    share = 1.0 / (who.shape[0] - 1)
    rewards = jnp.where(who, jnp.float32(1.0), jnp.float32(-share))
    return rewards if winner else -rewards


def reward_of(rewards: jax.Array, player: jax.Array) -> jax.Array:
    """float32[...]: one player's share of float32[..., P] rewards."""
    who = jnp.arange(rewards.shape[-1]).reshape([1] * player.ndim + [-1])
    return jnp.where(who == player[..., None], rewards, 0.0).sum(axis=-1)


def territory(state: State) -> jax.Array:
    """int32[P]: cells of the regions whose stones all belong to one player."""
    return terrain_lib.areas(terrain_lib.analyse_board(*state).owned)


def owned_cells(state: State) -> jax.Array:
    """uint32[P, W]: the cells that `territory` counts, as sets (see `board.bitboard`)."""
    return pack_owned(terrain_lib.analyse_board(*state).owned)


def pack_owned(sets: tuple[Cells, ...]) -> jax.Array:
    """Each player's territory -> uint32[P, W]."""
    return jnp.stack([bitboard.pack(cells) for cells in sets])


def largest_region(state: State) -> jax.Array:
    """int32[P]: cells of each player's largest single region."""
    terrain, owned = terrain_lib.analyse_board(*state)
    return terrain_lib.largest_regions(owned, terrain)


def take_back(position: Position, *, grid: int) -> tuple[jax.Array, Position]:
    """Stones and walls before the newest ply of the trail.

    Returns:
      bool, whether the trail has one, and the earlier position. Only stones, walls and the trail
      are taken back, and only those are meaningful in it.
    """
    players, stones = position.stones.shape
    stone, origin, side = (position.trail[0, i].astype(jnp.int32) for i in range(3))
    is_stone = (jnp.arange(players * stones) == stone).reshape(players, stones)
    cell = jnp.sum(jnp.where(is_stone, position.stones, 0), dtype=jnp.int32)
    built = wall_bits(cell, side, grid=grid)
    is_builder = is_stone.any(axis=1)
    rest = jnp.concatenate([position.trail[1:], empty_trail()[:1]])
    return stone != NO_STONE, position._replace(
        stones=jnp.where(is_stone, origin, position.stones).astype(jnp.int8),
        walls=jnp.where(is_builder[:, None, None], position.walls & ~built[None], position.walls),
        trail=rest,
    )


def restart_if_over(state: State) -> State:
    """A finished game becomes its variant's first position; a select, not a second `init`."""
    fresh = initial_position(state.variant)
    over = state.position.terminated
    position = jax.tree.map(lambda new, old: jnp.where(over, new, old), fresh, state.position)
    return State(state.variant, position)
