"""A turned board and turned weights give the turned answer, walls included."""

import functools
import random

import jax
import numpy as np
import pytest

from tests.board.test_geometry import SYMMETRIES
from tests.game.test_symmetry import GRID, PLAYERS, SHAPE, turned_game, turned_offset
from tests.support.game.planes import EVERYTHING, expected_planes
from tests.support.learner import tiny
from tests.support.reference.games import Record, random_game, random_games, record
from tests.support.reference.referee import MOVES, SIDES
from train.network import Network, NetworkConfig, Variables, make_network
from wallgo_jax import planes as planes_lib

ALL_CHANNELS = planes_lib.channels(EVERYTHING, PLAYERS, has_playable=True)
CHANNELS = planes_lib.channels("BTRD", PLAYERS, has_playable=True)
IS_WALL = [channel.kind in ("horizontal", "vertical") for channel in CHANNELS]
CONFIG = NetworkConfig(blocks="WWR", width=6, value_width=8, destination_head=True)
WITH_ATTENTION = NetworkConfig(
    blocks="WT",
    width=8,
    heads=2,
    value_width=8,
    destination_head=True,
)
TAPS = [(row, column) for row in (-1, 0, 1) for column in (-1, 0, 1)]


@functools.cache
def positions() -> list[tuple[int, np.ndarray, list[np.ndarray]]]:
    """Board sizes, and the planes of a position as it is and in each of its eight turns."""
    rng, found = random.Random(4), []
    for drawn in random_games(7, 6, **SHAPE):
        game = random_game(rng, drawn.rules, grid=GRID)
        ply = len(game.actions) * 2 // 3
        turned = [record(*turned_game(turn, game), grid=GRID) for turn in range(8)]
        found.append((game.rules["size"], shown(game, ply), [shown(each, ply) for each in turned]))
    return found


def shown(game: Record, ply: int) -> np.ndarray:
    """bool[GRID, GRID, C]: the channels of a position."""
    return expected_planes(game, ply)[..., [ALL_CHANNELS.index(channel) for channel in CHANNELS]]


def moved(values: np.ndarray, places: list[int], axis: int) -> np.ndarray:
    """Each entry along an axis moved to its new place."""
    return np.take(values, np.argsort(places), axis)


def turned_places(turn: int) -> dict[str, list[int]]:
    """New places of the taps of a kernel, of matrices of a walled one, of sides and of plays."""
    side = [SIDES.index(turned_offset(turn, offset)) for offset in SIDES]
    move = [MOVES.index(turned_offset(turn, offset)) for offset in MOVES]
    return {
        "tap": [TAPS.index(turned_offset(turn, offset)) for offset in TAPS],
        "matrix": [0, *(1 + place for place in side)],
        "side": side,
        "play": [4 * move[play // 4] + side[play % 4] for play in range(52)] + [52],
    }


def turned_weights(params: dict, turn: int) -> dict:
    """The weights of the network that sees the turned board as this one sees the board."""
    places = turned_places(turn)

    def turned(path: tuple, leaf: np.ndarray) -> np.ndarray:
        names = [getattr(step, "key", "") for step in path]
        if names[0] == "policy":
            return moved(leaf, places["play"], -1)
        if names[0] == "destination":
            return moved(leaf, places["side"], -1)
        if names[-1] == "offset_bias":
            return turned_table(leaf, turn)
        if leaf.ndim == 3 and names[-1] == "kernel":
            return moved(leaf, places["matrix"], 0)
        if leaf.shape[:2] == (3, 3):
            return moved(leaf.reshape(9, *leaf.shape[2:]), places["tap"], 0).reshape(leaf.shape)
        return leaf

    return jax.tree_util.tree_map_with_path(turned, params)


def turned_table(table: np.ndarray, turn: int) -> np.ndarray:
    """[heads, span, span] numbers by offset, each at its turned offset."""
    found, far = np.empty_like(table), table.shape[-1] // 2
    for place in np.ndindex(table.shape[1:]):
        down, across = turned_offset(turn, (place[0] - far, place[1] - far))
        found[:, far + down, far + across] = table[:, *place]
    return found


def new_weights(network: Network) -> Variables:
    """Weights away from zero, whose stem does not read walls: only gates tell of them.

    A plane shows a wall at one of the two cells that it parts, and a turn may exchange the two.
    """
    weights, draw = jax.device_get(tiny.new_weights(network)), np.random.default_rng(5)
    params = jax.tree.map(
        lambda x: (x + 0.1 * draw.standard_normal(x.shape)).astype(np.float32), weights.params
    )
    params["stem"]["conv"]["kernel"][:, :, IS_WALL] = 0
    return weights._replace(params=params)


@functools.cache
def evaluation_of(config: NetworkConfig):
    """Weights of a network, and its compiled evaluation."""
    network = make_network(config, CHANNELS)
    return new_weights(network), jax.jit(network.evaluate)


@pytest.mark.parametrize("config", [CONFIG, WITH_ATTENTION], ids=["walled", "attention"])
def test_turned_weights_see_the_turned_board(config):
    weights, evaluate = evaluation_of(config)
    sizes, before, after = zip(*positions(), strict=True)
    first = jax.device_get(evaluate(weights, np.stack(before)))
    close = functools.partial(np.testing.assert_allclose, rtol=1e-3, atol=1e-3)
    for turn in range(8):
        turned = weights._replace(params=turned_weights(weights.params, turn))
        second = jax.device_get(evaluate(turned, np.stack([each[turn] for each in after])))
        play = turned_places(turn)["play"]
        close(second.value, first.value)
        for index, size in enumerate(sizes):
            for row, column in np.ndindex(size, size):
                cell = SYMMETRIES[turn](row, column, size)
                close(second.ownership[index, *cell], first.ownership[index, row, column])
                close(second.policy[index, *cell][play], first.policy[index, row, column])


def test_gates_alone_tell_of_walls():
    """Without the walls the answer is another, though the stem reads none."""
    weights, evaluate = evaluation_of(CONFIG)
    planes = np.stack([before for _, before, _ in positions()])
    bare = planes.copy()
    bare[..., IS_WALL] = False
    walled, free = (np.asarray(evaluate(weights, each).policy) for each in (planes, bare))
    has_walls = planes[..., IS_WALL].any(axis=(1, 2, 3))
    assert has_walls.sum() > 3
    np.testing.assert_array_equal(np.abs(walled - free).max(axis=(1, 2, 3)) > 1e-2, has_walls)
