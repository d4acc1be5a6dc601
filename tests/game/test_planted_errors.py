"""Wrong rules planted in the engine: the comparison with the slow referee catches each.

Every error is a function that takes the engine's function or table and returns a wrong one; the
engine is traced anew with it.
"""

from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import pytest

from tests.support.game import harness
from tests.support.game.comparison import mismatches
from tests.support.reference.games import random_games
from wallgo_jax.board import bitboard, geometry
from wallgo_jax.game import actions, referee
from wallgo_jax.game import state as state_lib
from wallgo_jax.game import terrain as terrain_lib

GRID, PLAYERS, STONES = 6, 3, 2


class Site(NamedTuple):
    """The name that an error replaces, and a field of the comparison that must show it."""

    module: object
    name: str
    shows: str


def wall_on_the_wrong_side(original):
    def wall_bits(cell, side, *, grid):
        flipped = jnp.where(side == geometry.UP, geometry.DOWN, geometry.UP)
        is_flat = (side == geometry.UP) | (side == geometry.DOWN)
        return original(cell, jnp.where(is_flat, flipped, side), grid=grid)

    return wall_bits


def walls_of_the_last_player_do_not_block(original):
    def read_terrain(variant, position):
        return original(variant, position._replace(walls=position.walls.at[-1].set(0)))

    return read_terrain


def diagonal_passes_one_corner_only(original):
    return tuple(paths[:1] for paths in original)


def stay_allowed_without_room(original):
    def legal_moves(cells, terrain, variant):
        variant = variant._replace(stay_needs_room=jnp.bool_(False))
        return original(cells, terrain, variant)

    return legal_moves


def move_passes_own_stones(original):
    def legal_moves(cells, terrain, variant):
        grid = variant.grid.side
        own = terrain_lib.stone_cells(jnp.atleast_1d(cells), grid=grid)
        others = bitboard.difference(terrain.occupied, own)
        loose = terrain._replace(free_exits=bitboard.free_exits(terrain.exits, others, grid))
        moves = original(cells, terrain, variant)
        passing = original(cells, loose, variant)
        for move, delta in enumerate(geometry.make_move_deltas(grid)):
            is_empty = 1 - bitboard.contains(terrain.occupied, cells + int(delta))
            moves[move] = moves[move] | (passing[move] & is_empty)
        return moves

    return legal_moves


def one_wall_too_many(original):
    def make_variant(rules, **room):
        variant = original(rules, **room)
        return variant._replace(walls=variant.walls + 1)

    return make_variant


def tie_rules_in_reverse(original):
    def make_variant(rules, **room):
        variant = original(rules, **room)
        return variant._replace(tie=variant.tie[::-1])

    return make_variant


def separation_before_the_last_placement(original):
    def settle(variant, position, mover):
        position, *rest = original(variant, position, mover)
        terrain = terrain_lib.read_terrain(variant, position)
        is_apart = terrain_lib.is_separated(terrain, terrain_lib.regions(terrain))
        return position._replace(terminated=position.terminated | is_apart), *rest

    return settle


def last_placer_is_followed(original):
    def next_player(variant, position, can_move, mover):
        just_set_up = position.ply == variant.num_placements
        ply = position.ply + just_set_up.astype(jnp.int16)
        return original(variant, position._replace(ply=ply), can_move, mover)

    return next_player


def stuck_player_is_not_skipped(original):
    def has_turn(variant, position, terrain, player):
        return jnp.ones_like(original(variant, position, terrain, player))

    return has_turn


def empty_regions_count(original):
    def owned(reached):
        sets = original(reached)
        held = bitboard.union(*reached)
        everywhere = bitboard.unpack(jnp.asarray(bitboard.constant(range(GRID**2), GRID)))
        return (bitboard.union(sets[0], bitboard.difference(everywhere, held)), *sets[1:])

    return owned


def contested_regions_count(original):
    del original
    return lambda reached: reached


def every_loser_pays_one(original):
    def shares(who, *, winner):
        return jnp.sign(original(who, winner=winner))

    return shares


def steps_stop_at_the_word_border(original):
    def shift(cells, delta):
        blank = jnp.uint32(0)
        moved = []
        for word in range(len(cells)):
            alone = tuple(bits if i == word else blank for i, bits in enumerate(cells))
            moved.append(original(alone, delta)[word])
        return tuple(moved)

    return shift


ERRORS = {
    wall_on_the_wrong_side: Site(referee, "wall_bits", "walls"),
    walls_of_the_last_player_do_not_block: Site(terrain_lib, "read_terrain", "actions"),
    diagonal_passes_one_corner_only: Site(actions, "MOVE_PATHS", "actions"),
    stay_allowed_without_room: Site(actions, "_legal_moves", "actions"),
    move_passes_own_stones: Site(actions, "_legal_moves", "actions"),
    one_wall_too_many: Site(state_lib, "make_variant", "over"),
    tie_rules_in_reverse: Site(state_lib, "make_variant", "rewards"),
    separation_before_the_last_placement: Site(referee, "_settle", "over"),
    last_placer_is_followed: Site(referee, "_next_player", "player"),
    stuck_player_is_not_skipped: Site(referee, "_has_turn", "player"),
    empty_regions_count: Site(terrain_lib, "owned", "territory"),
    contested_regions_count: Site(terrain_lib, "owned", "territory"),
    every_loser_pays_one: Site(referee, "_shares", "rewards"),
    steps_stop_at_the_word_border: Site(bitboard, "shift", "reach"),
}


@pytest.fixture(scope="module")
def games():
    shape = {"grid": GRID, "players": PLAYERS, "stones": STONES}
    games = random_games(3, 2 * harness.BATCH, sizes=range(3, GRID + 1), **shape)
    # The order of the tie rules decides few games, mostly on small boards.
    ties = (("region", "mover_loses"), ("mover_loses", "region"))
    return games + random_games(3, 3 * harness.BATCH, sizes=(3,), ties=ties, **shape)


@pytest.fixture(autouse=True)
def traced_anew() -> Iterator[None]:
    """What JAX has traced of the right engine, or of a wrong one, is forgotten around each test."""
    jax.clear_caches()
    yield
    jax.clear_caches()


def compare(games) -> dict[str, str]:
    """The differences between the games and a newly traced engine."""
    rules = harness.rules_of([game._asdict() for game in games])
    played = [game.actions for game in games]
    shown = harness.replay(rules, played, grid=GRID, program=harness.make_replay(GRID))
    return mismatches(games, shown, grid=GRID)


@pytest.mark.slow
def test_unchanged_engine_agrees(games):
    assert compare(games) == {}


@pytest.mark.slow
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_planted_error_is_caught(games, monkeypatch, error):
    site = ERRORS[error]
    monkeypatch.setattr(site.module, site.name, error(getattr(site.module, site.name)))
    assert site.shows in compare(games)
