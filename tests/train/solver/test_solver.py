"""Exact values against a slow solver: plain Python, memoised, by the slow referee alone."""

import dataclasses
import itertools
import random
from collections import Counter
from typing import Any

import jax
import numpy as np
import pytest

from tests.support.learner.exact import look_up_all
from tests.support.reference.referee import (
    DOWN,
    MOVES,
    RIGHT,
    SIDES,
    TIES,
    Game,
    edge,
    neighbour,
)
from tests.support.reference.solver import Key, Prover, Solved, Solver
from train.players.registry import make_player
from train.runtime.devices import BY_BOARD, EVERYWHERE, all_devices
from train.runtime.errors import UsageError
from train.solver import compiled, exact_player
from train.solver.alphabeta import AlphaBeta
from train.solver.boards import BY_TABLES, board_of, check_solvable
from train.solver.exact_player import best_slots, make_placement_values, tables_of
from train.solver.placements import placed_sets
from train.solver.positions import reachable_levels, sample_positions
from train.solver.tablebase import make_tables
from wallgo_jax.game import referee
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import NOT_PLACED, State, make_variant
from wallgo_jax.view.game_replay import replay_actions

ONE = Rules(size=3, stones=1, order=(0, 1))
VARIANTS = [
    Rules(
        size=3,
        stones=stones,
        order=order,
        start=start,
        tie=tie,
        stay_needs_room=stay,
    )
    for (stones, order, start), (tie, stay) in zip(
        [
            (1, (0, 1), ()),
            (1, (1, 0), ()),
            (1, (), ((2, 2, 0), (0, 0, 1))),
            (1, (1,), ((1, 1, 0),)),
            (2, (0, 1, 1, 0), ()),
            (2, (0, 1, 0, 1), ()),
            (2, (), ((2, 0, 0), (0, 2, 1), (0, 0, 0), (2, 2, 1))),
            (2, (1, 0), ((1, 0, 0), (1, 2, 1))),
        ],
        itertools.cycle(itertools.product(TIES, (True, False))),
        strict=False,
    )
]
TWO = VARIANTS[4]
BOARDS = 16
"""Boards of a batch in which the exact player plays."""


def late_positions(rules: Rules, seed: int, *, games: int, walls: int) -> list[list[int]]:
    """Actions from the start to a position with that number of walls, one list a random game."""
    rng, found = random.Random(seed), []
    while len(found) < games:
        game, played = Game(rules.to_dict()), []
        while not game.over and len(played) < len(rules.order) + walls:
            played.append(rng.choice(game.legal()))
            game.act(played[-1])
        if not game.over:
            found.append(played)
    return found


def game_after(rules: Rules, played: list[int]) -> Game:
    game = Game(rules.to_dict())
    for action in played:
        game.act(action)
    return game


def stack(states: list[State]) -> State:
    return jax.tree.map(lambda *x: np.stack(x), *jax.device_get(states))


def public_best(game: Game, solved: Solved) -> list[int]:
    """The public actions of the turns that keep the value."""
    found = []
    for action, (stone, end, wall) in game.turns().items():
        origin = None if wall is None else game.board.stones[game.player][stone]
        if (origin, end, wall) in solved.best:
            found.append(action)
    return sorted(found)


def public_of(state: State, slots: list[int], size: int) -> list[int]:
    """Public actions of slots, by their definition."""
    position = state.position
    in_setup = position.ply < state.variant.num_placements
    own = position.stones[int(position.player)]
    if in_setup:
        return [size**2 * 52 + slot for slot in slots]
    return sorted(int(own[slot // 52]) * 52 + slot % 52 for slot in slots)


SLOW = [VARIANTS[0], VARIANTS[1], VARIANTS[3], TWO, VARIANTS[7]]


@pytest.mark.parametrize(
    "rules", [ONE, VARIANTS[2], *(pytest.param(rules, marks=pytest.mark.slow) for rules in SLOW)]
)
def test_tables_agree_with_the_slow_solver_near_the_end(rules):
    tables, slow = tables_of(rules), Solver(rules.to_dict())
    walls = 8 if rules is TWO else 7
    played = late_positions(rules, 1, games=12, walls=walls)
    states = [replay_actions(rules, each).states[-1] for each in played]
    values, best, _ = look_up_all(tables, stack(states))
    for each, state, value, mask in zip(played, states, values, best, strict=True):
        game = game_after(rules, each)
        solved = slow.solve(game)
        assert value == solved.value
        slots = np.flatnonzero(mask).tolist()
        assert public_of(state, slots, 3) == public_best(game, solved)


COMPILED = pytest.param(
    True, marks=pytest.mark.skipif(not compiled.is_available(4), reason="numba is not installed")
)


FREE = [dataclasses.replace(TWO, stay_needs_room=False, tie=tie) for tie in TIES]


@pytest.mark.parametrize("is_compiled", [False, COMPILED])
@pytest.mark.parametrize("rules", [*(r for r in VARIANTS if r.stones == 1), *FREE])
def test_search_agrees_with_the_slow_solver(rules, is_compiled):
    search, slow = AlphaBeta(rules, is_compiled=is_compiled), Solver(rules.to_dict())
    for each in late_positions(rules, 2, games=12, walls=6 if rules.stones == 1 else 8):
        game, state = game_after(rules, each), replay_actions(rules, each).states[-1]
        slots = search.optimal_slots(board_of(state.position, 3))
        assert public_of(state, slots, 3) == public_best(game, slow.solve(game))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tie", "stay"), [(tie, number % 2 == 1) for number, tie in enumerate(TIES)]
)
def test_search_agrees_with_the_slow_solver_on_4x4(tie, stay):
    rules = Rules(size=4, stones=1, order=(0, 1), tie=tie, stay_needs_room=stay)
    search, slow = AlphaBeta(rules), Solver(rules.to_dict())
    for each in late_positions(rules, 3, games=3, walls=15):
        game, state = game_after(rules, each), replay_actions(rules, each).states[-1]
        slots = best_slots(search, state.position)
        assert public_of(state, slots, 4) == public_best(game, slow.solve(game))


def test_search_agrees_with_tables_from_the_first_placement_on():
    tables, search = tables_of(ONE), AlphaBeta(ONE)
    begun = [[], [9 * 52 + 1], [9 * 52, 9 * 52 + 4], *late_positions(ONE, 4, games=6, walls=2)]
    states = [replay_actions(ONE, each).states[-1] for each in begun]
    _, best, _ = look_up_all(tables, stack(states))
    for state, mask in zip(states, best, strict=True):
        assert sorted(best_slots(search, state.position)) == np.flatnonzero(mask).tolist()


@pytest.mark.parametrize(
    ("rules", "value"),
    [
        (ONE, 1),
        pytest.param(Rules(size=3, stones=2, order=(0, 1, 1, 0)), 0, marks=pytest.mark.slow),
    ],
)
def test_values_of_the_start_are_proven_by_the_slow_referee(rules, value):
    """Red wins 3x3 with a stone each; with two stones each, placed in turn as RBBR, it is drawn."""
    assert max(make_placement_values(rules)(()).values()) == value
    prover, start = Prover(), Game(rules.to_dict())
    assert prover.reaches(start, value)
    assert value == 1 or not prover.reaches(start, value + 1)


def test_placements_agree_between_tables_and_search():
    searched = exact_player._placements_of(AlphaBeta(ONE))
    values = make_placement_values(ONE)
    for placed in ((), (4,)):
        assert values(placed) == searched.values(placed_sets(ONE, placed))


@pytest.mark.slow
def test_blue_wins_4x4_with_a_stone_each():
    """After each placement of Red. The file that `test_exact_proofs` checks proves it, too."""
    assert set(make_placement_values(LARGE)(()).values()) == {-1}


def keys_of(level: State) -> list[Key]:
    """The positions of a batch as the slow solver knows them."""
    position, found = level.position, []
    for stones, walls, player in zip(
        position.stones.tolist(), position.walls, position.player.tolist(), strict=True
    ):
        built = walls[0] | walls[1]
        edges = [
            edge(divmod(cell, 3), side)
            for orientation, side in ((0, DOWN), (1, RIGHT))
            for cell in range(9)
            if built[orientation, 0] >> cell & 1
        ]
        cells = tuple(frozenset(divmod(c, 3) for c in own if c >= 0) for own in stones)
        found.append((frozenset(edges), cells, player))
    return found


def best_of(level: State, mask: np.ndarray) -> list[frozenset]:
    """The marked slots of a batch as turns of the slow solver."""
    position, found = level.position, [set() for _ in range(len(mask))]
    for board, slot in zip(*np.nonzero(mask), strict=True):
        if position.ply[board] < level.variant.num_placements[board]:
            found[board].add((None, divmod(int(slot), 3), None))
            continue
        stone, move, side = slot // 52, slot % 52 // 4, slot % 4
        origin = divmod(int(position.stones[board, position.player[board], stone]), 3)
        end = neighbour(origin, MOVES[move])
        found[board].add((origin, end, edge(end, SIDES[side])))
    return [frozenset(turns) for turns in found]


@pytest.mark.slow
def test_tables_agree_with_the_slow_solver_on_every_reachable_position():
    tables, slow = make_tables(ONE), Solver(ONE.to_dict())
    slow.solve(Game(ONE.to_dict()))
    met = 0
    for level in reachable_levels(ONE):
        values, best, _ = look_up_all(tables, level, batch=4096)
        keys = keys_of(level)
        solved = [slow.solved[key] for key in keys]
        assert values.tolist() == [each.value for each in solved]
        assert best_of(level, best) == [each.best for each in solved]
        met += len(set(keys))
    assert met == len(slow.solved)


def test_exact_player_draws_evenly_among_the_best():
    player = make_player("exact", ONE)
    played = late_positions(ONE, 5, games=12, walls=4)
    states = [replay_actions(ONE, each).states[-1] for each in played]
    _, best, _ = look_up_all(player.variables, stack(states))
    which = next(i for i, mask in enumerate(best) if 2 <= mask.sum() <= 5)
    batch, counts = stack([states[which]] * BOARDS), Counter()
    for key in jax.random.split(jax.random.key(0), 1024 // BOARDS):
        counts.update(np.asarray(player.act(player.variables, batch, key)).tolist())
    mean = 1024 / best[which].sum()
    assert sorted(counts) == np.flatnonzero(best[which]).tolist()
    assert max(abs(count - mean) for count in counts.values()) < 5 * np.sqrt(mean)


LARGE = Rules(size=4, stones=1, order=(0, 1))


@pytest.mark.slow
@pytest.mark.parametrize("rules", [ONE, LARGE], ids=["table", "search"])
def test_exact_player_works_inside_loops_and_on_devices(rules):
    player = make_player("exact", rules)
    walls = 10 if rules.size == 4 else 0
    states = stack(
        [
            replay_actions(rules, each).states[-1]
            for each in late_positions(rules, 6, games=4, walls=walls)
        ]
    )

    def finish(variables: Any, states: State, key: jax.Array) -> State:
        def ply(carry: tuple[State, jax.Array]) -> tuple[State, jax.Array]:
            now, key = carry
            key, act_key = jax.random.split(key)
            slots = player.act(variables, now, act_key)
            after, _ = jax.vmap(referee.step)(now, slots)
            return after, key

        going = lambda carry: ~carry[0].position.terminated.all()  # noqa: E731
        return jax.lax.while_loop(going, ply, (states, key))[0]

    ended = jax.jit(finish)(player.variables, states, jax.random.key(1))
    assert np.asarray(ended.position.terminated).all()
    devices = all_devices()
    shared = devices.per_device(player.act, (EVERYWHERE, BY_BOARD, EVERYWHERE), BY_BOARD)
    slots = jax.jit(shared)(player.variables, ended, jax.random.key(2))
    assert not np.asarray(slots).any()


def in_grid(number: int, size: int, grid: int) -> int:
    """A public action, or a cell times 52, of a board in its own grid, in a larger one."""
    cell, play = divmod(number, 52)
    if cell >= size**2:  # a placement
        return grid**2 * 52 + in_grid((number - size**2 * 52) * 52, size, grid) // 52
    return (cell // size * grid + cell % size) * 52 + play


def with_room(rules: Rules, state: State, stones: int) -> State:
    """A state whose arrays have room for more stones than the rules."""
    more = ((0, 0), (0, stones - rules.stones))
    own = np.pad(state.position.stones, more, constant_values=NOT_PLACED)
    variant = make_variant(rules, grid=state.grid, stones=stones)
    return State(variant, state.position._replace(stones=own))


@pytest.mark.parametrize(
    ("rules", "walls"),
    [
        pytest.param(ONE, 3, id="one"),
        pytest.param(TWO, 4, id="two", marks=pytest.mark.slow),
        pytest.param(LARGE, 11, id="search"),
    ],
)
def test_exact_player_plays_boards_in_a_larger_grid(rules, walls):
    """It draws what it draws in the board's own grid, where its plays keep the value."""
    player, key, size = make_player("exact", rules), jax.random.key(3), rules.size
    games = late_positions(rules, 7, games=12, walls=walls)
    # Plays, and for tables, which know them at once, the placements before them.
    placed = [each[:ply] for each in games[:2] for ply in range(len(rules.order))]
    games += placed if size == 3 else []
    large = [[in_grid(action, size, 5) for action in each] for each in games]
    boards = [replay_actions(rules, each).states[-1] for each in games]
    larger = [replay_actions(rules, each, grid=5).states[-1] for each in large]
    roomy = [with_room(rules, state, rules.stones + 1) for state in larger]
    expected = np.asarray(player.act(player.variables, stack(boards), key)).tolist()
    expected = [
        in_grid(slot * 52, size, 5) // 52 if len(each) < len(rules.order) else slot
        for slot, each in zip(expected, games, strict=True)
    ]
    for states in (larger, roomy):
        assert np.asarray(player.act(player.variables, stack(states), key)).tolist() == expected


def test_exact_player_refuses_boards_that_its_rules_do_not_fit(monkeypatch):
    monkeypatch.setattr(exact_player, "tables_of", lambda rules: ())  # those of TWO take long
    small = stack([replay_actions(ONE, []).states[-1]])
    for rules, said in ((LARGE, "of 4x4 cells, .* these of 3x3 cells"), (TWO, "2 stones each")):
        player = make_player("exact", rules)
        with pytest.raises(UsageError, match=said):
            player.act(player.variables, small, jax.random.key(0))


def test_rules_too_large_are_refused():
    for rules in (
        Rules(),
        Rules(size=3, stones=3, order=(0, 1) * 3),
        Rules(size=4, stones=2, order=(0, 1) * 2),
        Rules(size=3, stones=1, players=3, order=(0, 1, 2)),
        Rules(size=3, stones=1, order=(0, 1), walls=3),
    ):
        with pytest.raises(UsageError, match="solve"):
            make_player("exact", rules)
        with pytest.raises(UsageError, match="3x3"):
            check_solvable(rules, BY_TABLES)


@pytest.mark.parametrize("is_compiled", [False, COMPILED])
def test_search_that_grows_too_large_says_so(is_compiled):
    search = AlphaBeta(LARGE, node_limit=100, is_compiled=is_compiled)
    with pytest.raises(UsageError, match="0 walls on 4x4 cells needs more than 100 nodes"):
        best_slots(search, replay_actions(LARGE, [16 * 52, 16 * 52 + 5]).states[-1].position)


# Sampled positions are distinct, unfinished, and among those that are reachable.

PLACED = Rules(size=3, stones=1, start=((1, 1, 0), (0, 0, 1)), order=())


@pytest.fixture(scope="module")
def sampled() -> State:
    return sample_positions(PLACED, 300, min_walls=3, seed=1)


@pytest.mark.slow
def test_positions_are_distinct_reachable_and_have_the_walls(sampled):
    keys = keys_of(sampled)
    assert len(set(keys)) == len(keys) == 300
    assert not sampled.position.terminated.any()
    # There is no setup, so each ply before built a wall.
    assert (sampled.position.ply >= 3).all()
    assert len(np.unique(sampled.position.ply)) > 3
    reachable = set()
    for level in reachable_levels(PLACED):
        reachable |= set(keys_of(level))
    assert set(keys) < reachable


@pytest.mark.slow
def test_seed_names_the_sample(sampled):
    again, other = (sample_positions(PLACED, 300, min_walls=3, seed=seed) for seed in (1, 2))
    jax.tree.map(np.testing.assert_array_equal, sampled, again)
    assert set(keys_of(other)) != set(keys_of(sampled))
