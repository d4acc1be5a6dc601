"""Proofs of late positions agree with the slow solver, which knows no contests and no bounds."""

import random
from typing import Any

import pytest

from tests.support.reference.games import Record, random_game
from tests.support.reference.referee import TIES
from tests.support.reference.solver import Solver, game_at
from train.runtime.errors import UsageError
from train.solver.contest import Board, free_waits, opening, openings_of, sure_waits
from train.solver.late import check_provable, plays, prove
from train.solver.values import DRAW, LOSS, WIN
from wallgo_jax.board.geometry import DOWN, RIGHT
from wallgo_jax.game.rules import Rules


def rules_of(rng: random.Random, size: int, stones: int, tie: tuple[str, ...]) -> dict[str, Any]:
    """Rules of a board on which random stones stand beforehand."""
    cells = rng.sample([(row, column) for row in range(size) for column in range(size)], 2 * stones)
    start = [[*cell, index % 2] for index, cell in enumerate(cells)]
    return {
        "size": size,
        "players": 2,
        "stones": stones,
        "start": start,
        "order": [],
        "walls": None,
        "stay_needs_room": False,
        "tie": list(tie),
    }


def board_at(record: Record, ply: int) -> Board:
    """A position of the slow referee as the prover's board."""
    look, size = record.plies[ply], record.rules["size"]
    down, right = openings_of(size)
    for wall in look.board.walls:
        (row, column), other = sorted(wall)
        below, beside = opening(row * size + column, DOWN if other[0] > row else RIGHT, size)
        down, right = down & ~below, right & ~beside
    stones = [tuple(row * size + column for row, column in own) for own in look.board.stones]
    return Board(down, right, (stones[0], stones[1]), look.player)


def slow_best(record: Record, ply: int, solver: Solver) -> tuple[int, set[int]]:
    """The value, and the slots of the plays that keep it, by the slow referee alone."""
    look, size = record.plies[ply], record.rules["size"]
    game = game_at(record.rules, look.board, look.player)
    solved = solver.solve(game)
    own = look.board.stones[look.player]
    slots = set()
    for action, (stone, end, wall) in game.turns().items():
        if (own[stone], end, wall) in solved.best:
            slots.add(stone * 52 + action - (own[stone][0] * size + own[stone][1]) * 52)
    return solved.value, slots


@pytest.mark.parametrize(
    ("size", "stones", "openings", "games"), [(3, 1, 7, 40), (3, 2, 6, 60), (4, 2, 8, 200)]
)
def test_proofs_agree_with_the_slow_solver(size, stones, openings, games):
    rng = random.Random(size * 10 + stones)
    values, proven, tried = set(), 0, 0
    for index in range(games):
        rules = rules_of(rng, size, stones, TIES[index % len(TIES)])
        record = random_game(rng, rules, grid=size)
        # Each ply builds a wall; many games end before so few openings are left.
        ply = 2 * size * (size - 1) - openings
        if ply >= len(record.actions):
            continue
        tried += 1
        proof = prove(board_at(record, ply), Rules.from_dict(rules), node_limit=20_000)
        if proof is not None:
            proven += 1
            values.add(proof.value)
            assert (proof.value, set(proof.best)) == slow_best(record, ply, Solver(rules))
    assert tried >= 5
    assert values >= {WIN, LOSS}
    assert proven >= tried * 0.8


def test_plays_are_the_legal_ones():
    rng = random.Random(1)
    record = random_game(rng, rules_of(rng, 4, 2, ()), grid=4)
    for ply, look in enumerate(record.plies[:-1]):
        own = look.board.stones[look.player]
        cells = [row * 4 + column for row, column in own]
        found = plays(board_at(record, ply), 4)
        actions = [cells[play.slot // 52] * 52 + play.slot % 52 for play in found]
        assert sorted(actions) == look.legal


def test_waits_of_a_settled_region():
    down, right = openings_of(3)
    square = 0b000_011_011
    # Two by two cells, one stone: four openings, three hold the cells together.
    inside = down & 0b000_000_011, right & 0b000_001_001
    assert sure_waits(*inside, 1, 3) == 1
    assert free_waits(*inside, 1, square.bit_count()) == 1
    # A second stone may part the region without losing a cell.
    assert free_waits(*inside, 0b11, square.bit_count()) == 2


def test_too_few_nodes_prove_nothing():
    down, right = openings_of(7)
    board = Board(down, right, ((36, 12), (8, 40)), 0)
    assert prove(board, Rules(), node_limit=10) is None


@pytest.mark.parametrize("changes", [{"walls": 20}, {"stay_needs_room": True}])
def test_other_rules_are_refused(changes):
    with pytest.raises(UsageError, match="late positions"):
        check_provable(Rules(**changes))


def test_drawn_position():
    """One opening is left between two single cells: the last wall levels all that counts."""
    board = Board(0, 0b1, ((0,), (1,)), 0)
    proof = prove(board, Rules(size=3, stones=1, start=((0, 0, 0), (0, 1, 1)), order=(), tie=()))
    assert proof is not None
    assert (proof.value, proof.best) == (DRAW, (1,))
