"""Every feature plane against the slow referee, on boards alone and in the corner of a grid."""

import functools
import itertools
import random
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
import pytest

from tests.support.game import harness
from tests.support.game.planes import EVERYTHING, expected_planes
from tests.support.reference.games import Record, random_game
from tests.support.reference.referee import random_rules
from wallgo_jax import Rules, observation
from wallgo_jax import planes as planes_lib
from wallgo_jax.board import bitboard
from wallgo_jax.game.state import State

# Grid, players, stones and planes of batches of boards of several sizes; history compiles slowly.
SHAPES = ((9, 2, 4, EVERYTHING), (7, 3, 2, "BTRDWV"))
GRID = 9

CHUNK = 256


@functools.cache
def _program(planes: str) -> Callable[[State], jax.Array]:
    observe = functools.partial(observation.observe, planes=planes, has_playable=True)
    return jax.jit(jax.vmap(observe))


def observed(states: State, planes: str) -> np.ndarray:
    """bool[..., grid, grid, C]: planes of NumPy states [...], the playable cells last."""
    shape = states.position.ply.shape
    count = int(np.prod(shape))
    places = np.arange(-(-count // CHUNK) * CHUNK) % count
    flat = jax.tree.map(lambda leaf: leaf.reshape(count, *leaf.shape[len(shape) :]), states)
    found = [
        np.asarray(_program(planes)(jax.tree.map(lambda leaf, chunk=chunk: leaf[chunk], flat)))
        for chunk in np.split(places, len(places) // CHUNK)
    ]
    seen = np.concatenate(found)[:count]
    return seen.reshape(*shape, *seen.shape[1:])


class Played(NamedTuple):
    """Random games of a shape and all that the engine shows of them."""

    games: list[Record]
    shown: harness.Shown  # [T, B]
    planes: np.ndarray  # bool[T, B, grid, grid, C]
    channels: tuple[planes_lib.Channel, ...]


@functools.cache
def played(players: int) -> Played:
    """Some random games of a shape, two of them with one stone a player."""
    grid, _, stones, planes = next(shape for shape in SHAPES if shape[1] == players)
    rng, sizes = random.Random(23), (4, *range(4, grid + 1))
    rules = [
        random_rules(rng, sizes=sizes, players=players, stones=room)
        for room in [stones] * 10 + [1] * 2
    ]
    games = [random_game(rng, each, grid=grid, illegal=0.005) for each in rules]
    shown = harness.replay_records(games)
    assert {game.rules["size"] for game in games} >= {4, 7}
    owned = [any(map(any, (ply.territory for ply in game.plies))) for game in games]
    assert sum(owned) > len(games) // 2
    channels = planes_lib.channels(planes, players, has_playable=True)
    return Played(games, shown, observed(shown.state, planes), channels)


@pytest.mark.parametrize("players", [2, 3])
def test_every_plane_is_the_slow_referees(players):
    games, shown, seen, channels = played(players)
    everything = planes_lib.channels(EVERYTHING, players, has_playable=True)
    names, wanted = list(map(str, channels)), [everything.index(each) for each in channels]
    assert seen.shape[-1] == len(names)
    assert seen.dtype == np.bool_
    for b, game in enumerate(games):
        for t, ply in enumerate(game.plies):
            expected = expected_planes(game, t)[..., wanted]
            if ply.over:
                # Nobody is to move; the planes of the turn agree with the state.
                turn = names.index("turn 0")
                for player in range(players):
                    is_next = shown.player[t, b] == player
                    expected[..., turn + player] = expected[..., -1] & is_next
            wrong = {names[c] for c in np.argwhere(seen[t, b] != expected)[:, -1]}
            assert not wrong, f"game {b} ply {t}"


@pytest.mark.parametrize("players", [2, 3, 4])
def test_table_of_planes(players):
    """One plane a player but for neutral cells; WallZero's 49 of two."""
    of_each = [
        [f"{kind} {player}" for player in range(players)]
        for kind in ("stone", "horizontal", "vertical", "turn", "territory", "reach")
    ]
    *board, turn, territory, reach = of_each
    past = [*itertools.chain(*board, territory), "neutral"]
    table = [*itertools.chain(*board, turn, territory), "neutral", *reach]
    table += [f"{name} -{age}" for age in (1, 2, 3, 4) for name in past]
    *shown, playable = planes_lib.channels("BTRH", players, has_playable=True)
    assert [*map(str, shown)] == table
    assert playable == planes_lib.Channel("playable")
    if players == 2:
        places = {8: "territory 0", 11: "reach 0", 13: "stone 0 -1", 48: "neutral -4"}
        assert {place: table[place] for place in places} == places and len(table) == 49


def test_plane_sets_are_prefixes_and_need_no_playable_cells():
    counts = {"B": 8, "BT": 11, "BTR": 13}
    shown = played(2).shown
    states = jax.tree.map(lambda leaf: leaf[::8].reshape(-1, *leaf.shape[2:]), shown.state)

    @jax.jit
    @jax.vmap
    def observe_sets(state):
        return [observation.observe(state, planes=planes) for planes in counts]

    wanted = played(2).planes[::8].reshape(-1, GRID, GRID, len(played(2).channels))
    for (planes, count), seen in zip(counts.items(), observe_sets(states), strict=True):
        assert planes_lib.channels(planes, 2) == planes_lib.channels("BTRH", 2)[:count]
        np.testing.assert_array_equal(seen, wanted[..., :count])


def walled(rules: Rules, cells: list[tuple[int, int]]) -> dict[str, np.ndarray]:
    """The planes, by name, of the first position with walls below these cells."""
    states = harness.new_games([rules], GRID)
    walls = states.position.walls.copy()
    walls[0, 0, 0] = bitboard.constant([row * GRID + column for row, column in cells], GRID)
    states = states._replace(position=states.position._replace(walls=walls))
    planes = observed(states, EVERYTHING)[0, : rules.size, : rules.size]
    return {str(channel): planes[..., c] for c, channel in enumerate(played(2).channels)}


def test_walls_alone_part_walks():
    """Two stones in a corridor: the second one stops turns, and walks go through it."""
    rules = Rules(size=3, stones=1, start=((0, 0, 0), (0, 1, 1)), order=())
    planes = walled(rules, [(0, 0), (0, 1), (0, 2)])

    def cells(name: str) -> list[int]:
        return np.flatnonzero(planes[name]).tolist()

    assert [cells("reach2 0"), cells("reach2 1")] == [[0], [1, 2]]
    assert [cells("walk2 0"), cells("walk2 1")] == [[0, 1, 2], [0, 1, 2]]
    assert [cells("nearer 0"), cells("nearer 1")] == [[0], [1, 2]]
    # Each reaches all other cells within its first turn.
    assert [cells("walk_nearer 0"), cells("walk_nearer 1")] == [[0], [1]]


def test_distances_along_a_corridor():
    """Walls turn the board into one corridor of 49 cells, a stone at either end."""
    rules = Rules(size=7, stones=1, start=((0, 0, 0), (6, 6, 1)), order=())
    doors = [6, 0] * 3  # column of the opening below each row
    shut = [(row, column) for row in range(6) for column in range(7) if column != doors[row]]
    kinds = ("reach", "reach2", "reach3", "reach4", "nearer")
    planes, lengths = walled(rules, shut), []
    for index, name in enumerate(f"{kind} {player}" for kind in kinds for player in range(2)):
        plane = planes[name].copy()
        plane[1::2] = plane[1::2, ::-1].copy()  # along the corridor, which turns at each row's end
        cells = np.flatnonzero(plane)
        is_first = index % 2 == 0
        np.testing.assert_array_equal(cells, cells[0] + np.arange(len(cells)))
        assert cells[0 if is_first else -1] == (0 if is_first else 48)
        lengths.append(len(cells))
    # Two steps a turn; who is nearer is told for seven turns.
    assert lengths == [3, 3, 5, 5, 7, 7, 9, 9, 15, 15]


@pytest.mark.parametrize(
    "planes", ["", "R", "BR", "TB", "btrh", "V", "BVT", "BD", "BTRDH", "BTRL", "BTRWD", "BTDL"]
)
def test_unknown_plane_set_is_refused(planes):
    with pytest.raises(ValueError, match=r"^planes: .* is not one of B, BT"):
        planes_lib.channels(planes, 2)
