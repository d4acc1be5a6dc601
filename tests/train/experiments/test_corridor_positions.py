"""Corridors: the answers against a plain flood, and that nothing nearer gives them away."""

import dataclasses
import functools
import json

import jax
import numpy as np
import pytest

from tests.support.game.comparison import walls_of_words
from tests.support.reference import referee as slow
from train.experiments.corridor_positions import (
    HELD_OUT,
    TRAINING,
    WINDOW,
    Corridors,
    make_corridors,
    write_corridors,
)
from wallgo_jax import observation
from wallgo_jax.formats import diagram
from wallgo_jax.game import actions
from wallgo_jax.game.rules import PRESETS, Rules
from wallgo_jax.notation import cell_name

RULES = PRESETS["wallzero-4stone"]
SMALL = Rules(size=5, stones=1, order=(0, 1))
COUNT = 600


@pytest.fixture(scope="module")
def known() -> Corridors:
    return jax.device_get(make_corridors(RULES, count=COUNT, seed=0, shapes=TRAINING))


@pytest.fixture(scope="module")
def asked() -> Corridors:
    return jax.device_get(make_corridors(RULES, count=COUNT, seed=1, shapes=HELD_OUT))


@pytest.fixture(scope="module")
def small() -> Corridors:
    """On a board with a stone each, where a wall that parts them ends the game."""
    return jax.device_get(make_corridors(SMALL, count=4, seed=0))


legal_slots = jax.jit(jax.vmap(actions.legal_slots))
observe = jax.jit(jax.vmap(functools.partial(observation.observe, planes="B")))


def take(corridors: Corridors, index: int) -> Corridors:
    """One position of those on the host."""
    return jax.tree.map(lambda leaf: leaf[index], corridors)


def board_of(one: Corridors) -> slow.Board:
    """The slow referee's board, with a stone on the asked cell and no others."""
    size = int(one.states.variant.size)
    built = walls_of_words(np.asarray(one.states.position.walls), size).any(axis=0)  # [2, N]
    walls = {
        slow.edge(divmod(int(cell), size), (slow.DOWN, slow.RIGHT)[orientation]): 0
        for orientation, cell in np.argwhere(built)
    }
    return slow.Board(size, [[divmod(int(one.cell), size)]], walls)


def steps_on(board: slow.Board) -> dict[slow.Cell, int]:
    """Steps from the asked cell to every cell that can be reached."""
    return board.distances(0, through_stones=True)


def owner_of(one: Corridors) -> int:
    """Whose stone stands on the asked cell."""
    (owner,) = [p for p in range(2) if int(one.cell) in one.states.position.stones[p]]
    return owner


def enemies_of(one: Corridors) -> list[slow.Cell]:
    """The cells of the stones that the question is about."""
    size = int(one.states.variant.size)
    return [divmod(int(cell), size) for cell in one.states.position.stones[1 - owner_of(one)]]


def planes_of(corridors: Corridors) -> np.ndarray:
    """bool[N, size, size, 8]"""
    return np.asarray(observe(corridors.states))


def window(corridors: Corridors, reach: int) -> np.ndarray:
    """float[N, ...]: the planes and the board's edge around the asked cell."""
    planes = planes_of(corridors)
    size = planes.shape[1]
    inside = np.ones((*planes.shape[:3], 1), bool)
    padded = np.pad(np.concatenate([planes, inside], -1), [(0, 0), (3, 3), (3, 3), (0, 0)])
    rows, columns = np.divmod(corridors.cell, size)
    parts = [
        padded[i, r + 3 - reach : r + 4 + reach, c + 3 - reach : c + 4 + reach]
        for i, (r, c) in enumerate(zip(rows, columns, strict=True))
    ]
    return np.stack(parts).reshape(len(parts), -1).astype(float)


def guess(known: Corridors, asked: Corridors, read) -> float:
    """The accuracy of a ridge regression on `read`'s features, on one position of each pair."""
    one = slice(None, None, 2)
    x, tests = read(known)[one], read(asked)[one]
    mean, spread = x.mean(axis=0), x.std(axis=0)
    x, tests = ((each - mean) / np.where(spread > 0, spread, 1) for each in (x, tests))
    targets = np.where(known.is_connected[one], 1.0, -1.0)
    weights = np.linalg.solve(x.T @ x + 0.1 * len(x) * np.eye(x.shape[1]), x.T @ targets)
    return float(((tests @ weights > 0) == asked.is_connected[one]).mean())


def counts(corridors: Corridors) -> np.ndarray:
    """float[N, ...]: sums of planes, cells by number of exits, distance, asked owner."""
    ones = [take(corridors, i) for i in range(len(corridors.cell))]
    boards = map(board_of, ones)
    exits = [
        np.bincount([len([*board.steps(cell, set())]) for cell in board.cells()], minlength=5)
        for board in boards
    ]
    rest = [[one.distance, owner_of(one), one.states.position.ply] for one in ones]
    sums = planes_of(corridors).sum(axis=(1, 2))
    return np.concatenate([sums, exits, rest], axis=1).astype(float)


def test_answers_agree_with_a_plain_flood(known):
    for index in range(COUNT):
        one = take(known, index)
        reached = steps_on(board_of(one))
        found = [cell in reached for cell in enemies_of(one)]
        assert any(found) == all(found) == bool(one.is_connected)


def test_enemies_are_far_and_the_wall_is_where_it_is_said(known):
    for index in range(0, 300, 2):
        pair = take(known, index), take(known, index + 1)
        one, other = sorted(pair, key=lambda each: bool(each.is_connected))
        parted, connected = board_of(one), board_of(other)
        shared = dict.fromkeys(parted.walls.keys() & connected.walls.keys(), 0)
        steps = steps_on(dataclasses.replace(parted, walls=shared))
        assert min(steps[cell] for cell in enemies_of(one)) >= 10
        for board in (parted, connected):
            (wall,) = board.walls.keys() - shared.keys()
            assert sorted(steps[cell] for cell in wall) == [one.distance - 1, one.distance]
        assert one.distance == other.distance >= 5


def test_pair_differs_in_one_wall_out_of_sight(known):
    planes = planes_of(known)
    first, second = planes[::2], planes[1::2]
    assert (known.cell[::2] == known.cell[1::2]).all()
    assert (known.is_connected[::2] != known.is_connected[1::2]).all()
    assert ((first != second).sum(axis=(1, 2, 3)) == 2).all()
    near = window(known, WINDOW)
    np.testing.assert_array_equal(near[::2], near[1::2])


def test_answers_and_colours_are_balanced(known):
    owners = np.array([owner_of(take(known, index)) for index in range(COUNT)])
    for owner in range(2):
        for answer in (False, True):
            assert ((owners == owner) & (known.is_connected == answer)).sum() == COUNT // 4
    first = known.is_connected[::2].mean()
    assert 0.4 < first < 0.6
    movers = np.asarray(known.states.position.player)
    assert 0.4 < movers.mean() < 0.6


def test_nothing_nearer_than_the_wall_tells_linearly(known, asked):
    """Neither the neighbourhood nor counts over the board nor the board itself."""
    for reach in (1, 2):
        assert guess(known, asked, functools.partial(window, reach=reach)) < 0.6
    assert guess(known, asked, counts) < 0.6
    assert guess(known, asked, lambda corridors: planes_of(corridors).reshape(COUNT, -1)) < 0.6


def test_walls_plies_and_turn_agree(known):
    position = known.states.position
    bits = np.unpackbits(position.walls.view(np.uint8), axis=-1).sum(axis=(2, 3))  # [N, P]
    assert (position.ply == bits.sum(axis=1) + len(RULES.order)).all()
    assert (bits.sum(axis=1) == 37).all()
    ahead = bits[np.arange(COUNT), 1 - position.player] - bits[np.arange(COUNT), position.player]
    assert (ahead == 1).all()
    assert not position.terminated.any()
    assert all(len(set(stones.ravel().tolist())) == 8 for stones in position.stones)


def test_same_seed_same_positions_and_others_differ(known, asked):
    one, again, other = (make_corridors(RULES, count=20, seed=seed) for seed in (0, 0, 2))
    jax.tree.map(np.testing.assert_array_equal, one, again)
    assert not np.array_equal(one.states.position.walls, other.states.position.walls)
    rows = [np.asarray(each.states.position.walls).reshape(COUNT, -1) for each in (known, asked)]
    assert len({row.tobytes() for row in np.concatenate(rows)}) == 2 * COUNT


def way_across(pair: tuple[Corridors, Corridors], place: int) -> list[tuple[int, int]]:
    """The cells from the asked one across the wall of one position of a pair, as (row, column)."""
    here, there = board_of(pair[place]), board_of(pair[1 - place])
    steps = steps_on(there)
    (wall,) = here.walls.keys() - there.walls.keys()
    way = [max(wall, key=lambda cell: steps[cell])]
    while steps[way[-1]]:
        near = there.steps(way[-1], set())
        way.append(next(cell for cell in near if steps.get(cell) == steps[way[-1]] - 1))
    return way


def moved(way: list[tuple[int, int]]) -> set[tuple[tuple[int, int], ...]]:
    """A way from the first cell of the board's corner, turned and mirrored in all eight manners."""
    found = set()
    for turn in range(8):
        cells = np.array(way)[:, :: -1 if turn & 1 else 1] * (
            (-1) ** (turn >> 1),
            (-1) ** (turn >> 2),
        )
        found.add(tuple(map(tuple, (cells - cells.min(axis=0)).tolist())))
    return found


def test_no_corridor_has_a_shape_of_the_other_half(known, asked):
    """By the cells of the ways; shapes that a turned or a shifted board shows are one."""
    shapes = []
    for half in (known, asked):
        pairs = [(take(half, index), take(half, index + 1)) for index in range(0, 400, 2)]
        ways = [way_across(pair, place) for pair in pairs for place in (0, 1)]
        shapes.append({min(moved(way)) for way in ways})
        assert all(
            len(way) - 1 == pair[0].distance for way, pair in zip(ways[::2], pairs, strict=True)
        )
    assert not shapes[0] & shapes[1]
    assert min(map(len, shapes)) > 100


@pytest.mark.parametrize(
    ("rules", "min_distance"),
    [
        (PRESETS["playwallgo-2p"], 10),
        (SMALL, 10),
        (Rules(size=9), 16),  # three words of walls
    ],
)
def test_other_rules(rules, min_distance):
    drawn = make_corridors(rules, count=20, seed=3, min_distance=min_distance)
    corridors = jax.device_get(drawn)
    position = corridors.states.position
    if rules.walls is not None:
        built = np.unpackbits(position.walls.view(np.uint8), axis=-1).sum(axis=(2, 3))
        assert (position.walls_left == rules.walls - built).all()
    over = ~corridors.is_connected if rules.stones == 1 else np.zeros(20, bool)
    np.testing.assert_array_equal(position.terminated, over)
    assert np.asarray(legal_slots(corridors.states)).any(axis=1).all()
    for index in range(20):
        one = take(corridors, index)
        assert (enemies_of(one)[0] in steps_on(board_of(one))) == bool(one.is_connected)


def test_boards_without_such_positions_are_refused():
    for rules, least, said in ((Rules(size=9, walls=20), 10, "walls"), (SMALL, 24, "min_distance")):
        with pytest.raises(ValueError, match=said):
            make_corridors(rules, count=2, seed=0, min_distance=least)


def test_file_comes_back(small, tmp_path):
    path = tmp_path / "corridors.jsonl"
    write_corridors(path, small)
    assert small.states.position.terminated.any() and not small.states.position.terminated.all()
    for number, line in enumerate(path.read_text().splitlines()):
        row, expected = json.loads(line), take(small, number)
        state = diagram.parse(row.pop("diagram"))
        jax.tree.map(np.testing.assert_array_equal, state, expected.states)
        assert row == {
            "cell": cell_name(int(expected.cell), grid=state.grid),
            "is_connected": bool(expected.is_connected),
            "distance": int(expected.distance),
        }
