"""The referee: plays a ply, ends the game, pays the players, restarts. One board at a time.

Every rule that a ply meets stands here or in `game.actions`, written once; views and formats ask.
"""

import functools
from collections.abc import Sequence

import chex
import jax
import jax.numpy as jnp

from wallgo_jax.board import bitboard
from wallgo_jax.board.bitboard import Cells
from wallgo_jax.board.fusion import fusion_barrier
from wallgo_jax.board.geometry import (
    NUM_SIDES,
    PLAYS_PER_STONE,
    WALL_SIDES,
    make_move_deltas,
    side_delta,
)
from wallgo_jax.board.select import choose, pick
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
    assert_board,
    empty_trail,
    initial_position,
)
from wallgo_jax.game.terrain import BoardAnalysis, Terrain


def play(state: State, slot: jax.Array) -> tuple[State, jax.Array]:
    """Play one slot that the caller knows to be legal; a finished game does not change.

    Search and self-play use it, for they choose among `legal_slots`. An illegal slot gives an
    undefined position; `step` is the verb that checks.

    Args:
      state: one board.
      slot: int[] compact action of the player to move (see `game.actions`).

    Returns:
      The next state and float32[P] rewards: zeros until the end, then +1 for a sole winner and
      -1 / (P - 1) for each other player, zeros for a draw; zeros on a finished game.
    """
    after, rewards, _ = play_with_analysis(state, slot)
    return after, rewards


def step(state: State, slot: jax.Array) -> tuple[State, jax.Array]:
    """Play one slot, legal or not.

    An illegal slot ends the game with the board unchanged and pays -1 to the offender and
    +1 / (P - 1) to each other player. A legal slot is played as by `play`.
    """
    assert_board(state)
    chex.assert_shape(slot, ())
    is_legal = actions.is_legal(state, slot)
    # Without the barrier the legality is worked out again for each array that depends on it.
    is_legal = fusion_barrier(is_legal, token=state.position.ply < 0)
    after, rewards, _ = step_with_analysis(state, slot, is_legal)
    return after, rewards


def step_with_analysis(
    state: State, slot: jax.Array, is_legal: jax.Array
) -> tuple[State, jax.Array, BoardAnalysis]:
    """Play like `step`, with the legality known, and return the analysis that a ply makes anyway.

    Args:
      is_legal: bool[], whether the slot is legal.

    Returns:
      As `step`, and the analysis of the next board, undefined where no ply was played.
    """
    before = state.position
    # The ply is played in any case and dropped where it was illegal; `vmap` would run both sides.
    illegal = ~is_legal & ~before.terminated
    after, rewards, analysis = play_with_analysis(state, slot)
    position = jax.tree.map(lambda new, old: jnp.where(illegal, old, new), after.position, before)
    position = position._replace(terminated=position.terminated | illegal)
    penalty = illegal_penalty(before.player, rewards.shape[0])
    return State(state.variant, position), jnp.where(illegal, penalty, rewards), analysis


def play_with_analysis(state: State, slot: jax.Array) -> tuple[State, jax.Array, BoardAnalysis]:
    """Play like `play`, and return the analysis of the next board that a ply makes anyway.

    The analysis is undefined where the game was over before.
    """
    assert_board(state)
    chex.assert_shape(slot, ())
    chex.assert_type(slot, int)
    variant, before = state
    # Two barriers: the slot and the board after it are read by nearly every line of the analysis,
    # and XLA on CPU would work them out anew for each.
    token = before.ply < 0
    slot = fusion_barrier(slot.astype(jnp.int32), token=token)
    moved = fusion_barrier(_put_on_board(state, slot), token=token)
    after, rewards, analysis = _settle(variant, moved, before.player)
    # Under `vmap` a branch would run both sides, so a finished game is played on and then put back.
    over = before.terminated
    position = jax.tree.map(lambda new, old: jnp.where(over, old, new), after, before)
    return State(variant, position), jnp.where(over, 0.0, rewards), analysis


# Inlined, a function leaves no call in a program; JAX traces it once for all programs of a shape.
@functools.partial(jax.jit, inline=True)
def _put_on_board(state: State, slot: jax.Array) -> Position:
    """Put the action on the board: a stone placed, or a stone moved and a wall built."""
    grid = state.grid
    variant, position = state
    players, stones = position.stones.shape
    setup = actions.in_setup(variant, position)
    own = actions.own_cells(position)
    # Stones are placed in the order of their indices, those of `start` first.
    placed = jnp.sum((own != NOT_PLACED).astype(jnp.int32))
    chosen, play = actions.split(slot, PLAYS_PER_STONE)
    move, wall = actions.split(play, NUM_SIDES)
    stone = jnp.where(setup, placed, chosen)
    side = jnp.where(setup, NO_SIDE, wall)
    is_stone = jnp.arange(stones) == stone
    origin = jnp.sum(jnp.where(is_stone, own, 0))
    delta = pick(jnp.asarray(make_move_deltas(grid)), move)
    target = jnp.where(setup, slot, origin + delta)
    is_mover = jnp.arange(players, dtype=position.player.dtype) == position.player
    moved = is_mover[:, None] & is_stone[None, :]
    mover = position.player.astype(jnp.int32)
    entry = jnp.stack([mover * stones + stone, origin, side]).astype(jnp.int8)
    builds = is_mover & ~setup
    return position._replace(
        stones=jnp.where(moved, target.astype(jnp.int8), position.stones),
        walls=position.walls
        | jnp.where(builds[:, None, None], wall_bits(target, side, grid=grid)[None], 0),
        walls_left=position.walls_left - builds.astype(jnp.int16),
        trail=jnp.concatenate([entry[None], position.trail[: TRAIL_LENGTH - 1]]),
        ply=position.ply + jnp.int16(1),
    )


def wall_bits(cell: jax.Array, side: jax.Array, *, grid: int) -> jax.Array:
    """uint32[2, W]: the wall on a side of a cell, as it is stored; no wall for NO_SIDE.

    The wall is one bit in the set of its orientation, at the cell that keeps it:

        side      UP             RIGHT        DOWN           LEFT
        set       horizontal     vertical     horizontal     vertical
        bit       cell - grid    cell         cell           cell - 1
    """
    planes = []
    for of_neighbour, own in WALL_SIDES:
        keeper = jnp.where(side == of_neighbour, cell + side_delta(of_neighbour, grid), cell)
        has_wall = (side == of_neighbour) | (side == own)
        wall = bitboard.where(has_wall, bitboard.one_hot(keeper, grid), bitboard.empty(grid))
        planes.append(wall)
    return bitboard.pack_sets(planes)


@functools.partial(jax.jit, inline=True)
def _settle(
    variant: Variant, position: Position, mover: jax.Array
) -> tuple[Position, jax.Array, BoardAnalysis]:
    """Complete a position to which a ply has led: the next player, the end, the rewards.

    Returns:
      The position, float32[P] rewards, and the analysis of the board.
    """
    grid = variant.grid.side
    terrain = terrain_lib.read_terrain(variant, position)
    reached = terrain_lib.regions(terrain)
    can_move = _can_move(variant, position, terrain)
    player = _next_player(variant, position, can_move, mover)
    over = _is_end(variant, position, can_move, terrain_lib.is_separated(terrain, reached))
    sets = terrain_lib.owned(reached)
    territory = terrain_lib.areas(sets)
    # Largest regions take a loop as long as the slowest board of the batch. Only an end that is
    # level asks for them; all other boards send empty sets, which cost no turn.
    level = _is_most(territory, jnp.ones(territory.shape, jnp.bool_))
    wants_regions = over & (level.sum() > 1) & (variant.tie == TIE_REGION).any()
    over, wants_regions = fusion_barrier((over, wants_regions), token=position.ply < 0)
    compared = tuple(bitboard.where(wants_regions, cells, bitboard.empty(grid)) for cells in sets)
    largest = terrain_lib.largest_regions(compared, terrain)
    rewards = jnp.where(over, payoff(variant, territory, largest, mover), 0.0)
    return position._replace(player=player, terminated=over), rewards, BoardAnalysis(terrain, sets)


def _is_end(
    variant: Variant, position: Position, can_move: Sequence[jax.Array], separated: jax.Array
) -> jax.Array:
    """bool: whether the rules end the game in a position that a ply has led to.

    Once every stone is placed, a game ends when no region holds stones of two players, or when
    nobody has a legal turn.
    """
    is_stuck = ~functools.reduce(jnp.logical_or, can_move)
    return ~actions.in_setup(variant, position) & (is_stuck | separated)


def ended_by_rules(
    variant: Variant, position: Position, terrain: Terrain, reached: tuple[Cells, ...]
) -> jax.Array:
    """bool: whether the rules, not an illegal action, have ended the game in this position.

    The answer is False in the first position of a game, for only a ply ends one.
    """
    can_move = _can_move(variant, position, terrain)
    separated = terrain_lib.is_separated(terrain, reached)
    return (position.ply > 0) & _is_end(variant, position, can_move, separated)


def _can_move(variant: Variant, position: Position, terrain: Terrain) -> list[jax.Array]:
    """bool of each player: whether it has a legal turn once every stone is placed."""
    players = range(position.stones.shape[0])
    return [_has_turn(variant, position, terrain, player) for player in players]


def _next_player(
    variant: Variant, position: Position, can_move: Sequence[jax.Array], mover: jax.Array
) -> jax.Array:
    """int8: the player of the next ply; the mover where nobody has a legal turn.

    In setup the schedule says; then the players take turns from player 0 on, and one without a
    legal turn is skipped.
    """
    players = position.stones.shape[0]
    after_setup = position.ply == variant.num_placements
    seat = jnp.where(after_setup, 0, mover + 1).astype(jnp.int32)
    choice = mover.astype(jnp.int32)
    # The nearest player in turn comes last and overwrites those behind.
    for ahead in reversed(range(players)):
        candidate = (seat + ahead) % players
        choice = jnp.where(choose(can_move, candidate), candidate, choice)
    setup = actions.in_setup(variant, position)
    return jnp.where(setup, scheduled_player(variant, position).astype(jnp.int32), choice).astype(
        jnp.int8
    )


def scheduled_player(variant: Variant, position: Position) -> jax.Array:
    """int8: the player who places the next stone; undefined once every stone is placed."""
    is_next = jnp.arange(len(variant.order), dtype=position.ply.dtype) == position.ply
    return jnp.sum(jnp.where(is_next, variant.order, 0))


def _has_turn(variant: Variant, position: Position, terrain: Terrain, player: int) -> jax.Array:
    """bool: whether a player has a wall left and a stone that can use it.

    No move needs to be tried. A stone that steps can always wall the side that it came over, so
    that only a stone that stays needs an open side of its own. Where staying needs room, a stone
    that may stay has a free neighbour, to which it could step instead.
    """
    stones = terrain.stones[player]
    can_step = bitboard.any_cell(bitboard.intersection(stones, bitboard.union(*terrain.free_exits)))
    has_side = bitboard.any_cell(bitboard.intersection(stones, bitboard.union(*terrain.exits)))
    able = jnp.where(variant.stay_needs_room, can_step, has_side)
    return able & (position.walls_left[player] > 0)


def payoff(
    variant: Variant, territory: jax.Array, largest: jax.Array, last_mover: jax.Array
) -> jax.Array:
    """float32[P]: the rewards of a finished game from its int32[P] territory and largest regions.

    The tie rules act in order on the players still level. A sole winner is paid +1 and each other
    player -1 / (P - 1); a draw pays nothing.
    """
    players = territory.shape[0]
    level = _is_most(territory, jnp.ones((players,), jnp.bool_))
    others = jnp.arange(players, dtype=last_mover.dtype) != last_mover
    for place in range(variant.tie.shape[0]):
        rule = variant.tie[place]
        by_region = _is_most(largest, level)
        # A sole winner stays one, even where it made the last ply.
        by_mover = jnp.where(level.sum() > 1, level & others, level)
        level = jnp.where(rule == TIE_REGION, by_region, level)
        level = jnp.where(rule == TIE_MOVER_LOSES, by_mover, level)
    return jnp.where(level.sum() == 1, _shares(level, winner=True), 0.0)


def _is_most(values: jax.Array, among: jax.Array) -> jax.Array:
    """bool[P]: the candidates that have the most."""
    values = jnp.where(among, values, -1)
    return among & (values == values.max())


def _shares(who: jax.Array, *, winner: bool) -> jax.Array:
    """float32[P]: +1 to one player and -1 / (P - 1) to each other, or the reverse."""
    share = 1.0 / (who.shape[0] - 1)
    rewards = jnp.where(who, jnp.float32(1.0), jnp.float32(-share))
    return rewards if winner else -rewards


def illegal_penalty(offender: jax.Array, players: int) -> jax.Array:
    """float32[P]: -1 to who played an illegal action, +1 / (P - 1) to each other player."""
    return _shares(jnp.arange(players, dtype=offender.dtype) == offender, winner=False)


def last_mover(position: Position) -> jax.Array:
    """int8: the player of the newest ply in the trail; NO_PLAYER where the trail is empty."""
    stone = position.trail[0, 0]
    return jnp.where(stone == NO_STONE, NO_PLAYER, stone // position.stones.shape[1])


def reward_of(rewards: jax.Array, player: jax.Array) -> jax.Array:
    """float32[...]: the share of one player, int[...], of float32[..., P] rewards."""
    who = jnp.arange(rewards.shape[-1], dtype=player.dtype).reshape([1] * player.ndim + [-1])
    return jnp.where(who == player[..., None], rewards, 0.0).sum(axis=-1)


def territory(state: State) -> jax.Array:
    """int32[P]: the number of cells of the regions whose stones all belong to one player."""
    assert_board(state)
    return terrain_lib.areas(terrain_lib.analyse_board(*state).owned)


def owned_cells(state: State) -> jax.Array:
    """uint32[P, W]: the cells that `territory` counts, as sets (see `board.bitboard`)."""
    assert_board(state)
    return bitboard.pack_sets(terrain_lib.analyse_board(*state).owned)


def largest_region(state: State) -> jax.Array:
    """int32[P]: the number of cells of each player's largest single region."""
    assert_board(state)
    terrain, owned = terrain_lib.analyse_board(*state)
    return terrain_lib.largest_regions(owned, terrain)


def take_back(position: Position, *, grid: int) -> tuple[jax.Array, Position]:
    """Take back the newest ply of the trail.

    Returns:
      bool, whether the trail has one, and the earlier position. Only stones, walls and the trail
      are taken back; all else in the position is undefined.
    """
    chex.assert_shape(position.trail, (TRAIL_LENGTH, 3))
    players, stones = position.stones.shape
    stone, origin, side = (position.trail[0, i].astype(jnp.int32) for i in range(3))
    is_stone = (jnp.arange(players * stones) == stone).reshape(players, stones)
    cell = jnp.sum(jnp.where(is_stone, position.stones, 0), dtype=jnp.int32)
    # The wall lies on a side of the cell where the stone ended, which is where it stands now.
    built = wall_bits(cell, side, grid=grid)
    is_builder = is_stone.any(axis=1)
    rest = jnp.concatenate([position.trail[1:], empty_trail()[:1]])
    return stone != NO_STONE, position._replace(
        stones=jnp.where(is_stone, origin.astype(jnp.int8), position.stones),
        walls=jnp.where(is_builder[:, None, None], position.walls & ~built[None], position.walls),
        trail=rest,
    )


def restart_if_over(state: State) -> State:
    """Replace a finished game by its variant's first position; a running one stays."""
    # A select: under `vmap` a branch that starts a game would run at every step anyway.
    fresh = initial_position(state.variant)
    over = state.position.terminated
    position = jax.tree.map(lambda new, old: jnp.where(over, new, old), fresh, state.position)
    return State(state.variant, position)
