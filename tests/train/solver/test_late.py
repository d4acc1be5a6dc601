"""Proofs of late positions agree with the slow solver, which knows no contests and no bounds; those
that are shipped with a slow search."""

import dataclasses
import importlib.util
import random
from collections import Counter
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from tests.support.reference.games import Record, random_game
from tests.support.reference.referee import TIES, Game
from tests.support.reference.solver import Solver, copy_of, game_at, play_bounds, score_of
from tests.train.solver.test_solver import game_after
from train.analysis.late_positions import LatePosition, plies_left, read_late
from train.data.record_dataset import RecordedGames, make_examples
from train.runtime.errors import UsageError
from train.runtime.host import fetch
from train.solver import compiled
from train.solver.boards import DRAW, LOSS, WIN, Board, board_of, opening, openings_of, plays
from train.solver.claims import check_provable
from train.solver.contest import free_waits, geometry_of, sure_turns
from train.solver.late import Proof, Refusal, prove, reduce
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


def slow_scores(record: Record, ply: int) -> dict[int, int]:
    """The score of each play by its slot, by the slow referee alone."""
    look, size = record.plies[ply], record.rules["size"]
    scores = Solver(record.rules, score_of).values(game_at(record.rules, look.board, look.player))
    cells = [row * size + column for row, column in look.board.stones[look.player]]
    return {cells.index(action // 52) * 52 + action % 52: score for action, score in scores.items()}


def slow_scores_of(board: Board, rules: dict[str, Any]) -> dict[int, int]:
    """The same of a position that stands without a game."""
    size = rules["size"]
    walls = set()
    for cell in range(size * size):
        row, column = divmod(cell, size)
        if row + 1 < size and not board.down >> cell & 1:
            walls.add(frozenset({(row, column), (row + 1, column)}))
        if column + 1 < size and not board.right >> cell & 1:
            walls.add(frozenset({(row, column), (row, column + 1)}))
    game = Game(rules)
    stones = [[divmod(cell, size) for cell in own] for own in board.stones]
    built = dataclasses.replace(game.board, walls=dict.fromkeys(walls, 0), stones=stones)
    scores = Solver(rules, score_of).values(game_at(rules, built, board.player))
    own = board.stones[board.player]
    return {own.index(action // 52) * 52 + action % 52: score for action, score in scores.items()}


def sign(number: int) -> int:
    return (number > 0) - (number < 0)


def agree(proof: Proof, scores: dict[int, int]) -> None:
    """Hold a proof against the scores of all plays."""
    value = max(scores.values())
    assert proof.slots == tuple(sorted(scores))
    assert proof.value == sign(value)
    assert proof.best == tuple(s for s in proof.slots if sign(scores[s]) == proof.value)
    # A score is the lead plus the result.
    if proof.margin is not None:
        assert proof.margin == (value - sign(value) if abs(value) > 1 else 0)
    if proof.margins is not None:
        expected = [scores[slot] for slot in proof.slots]
        assert proof.margins == tuple(s - sign(s) if abs(s) > 1 else 0 for s in expected)


def counted_proofs(size: int, stones: int, openings: int, games: int, seed: int) -> Counter[str]:
    """Compare proofs with the slow solver in random games, and count what was proven."""
    rng, counts = random.Random(seed), Counter()
    for index in range(games):
        rules = rules_of(rng, size, stones, TIES[index % len(TIES)])
        record = random_game(rng, rules, grid=size)
        # Each ply builds a wall; many games end before so few openings are left.
        ply = 2 * size * (size - 1) - openings
        if ply >= len(record.actions):
            continue
        board = board_at(record, ply)
        proof = prove(board, Rules.from_dict(rules), node_limit=20_000, is_compiled=False)
        counts["tried"] += 1
        if isinstance(proof, Proof):
            agree(proof, slow_scores(record, ply))
            counts["proven"] += 1
            counts["margin"] += proof.margin is not None
            counts[f"value {proof.value}"] += 1
    return counts


@pytest.mark.parametrize(
    ("size", "stones", "openings", "games"), [(3, 1, 7, 40), (3, 2, 6, 60), (4, 2, 7, 300)]
)
def test_proofs_agree_with_the_slow_solver(size, stones, openings, games):
    counts = counted_proofs(size, stones, openings, games, seed=size * 10 + stones)
    assert counts["tried"] >= 5
    assert counts["value 1"]
    assert counts["proven"] >= counts["tried"] * 0.8
    assert counts["margin"] >= counts["tried"] * 0.6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "stones", "openings", "games"),
    [(3, 1, 8, 60), (3, 2, 7, 40), (4, 1, 7, 60), (4, 2, 8, 300), (3, 3, 6, 40)],
)
def test_many_proofs_agree_with_the_slow_solver(size, stones, openings, games):
    counts = counted_proofs(size, stones, openings, games, seed=1)
    assert counts["proven"] >= counts["tried"] * 0.7


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
    # Two by two cells, one stone: four openings, three hold the cells together. The second wall
    # costs a cell, the third one another; then a single cell is left.
    inside = down & 0b000_000_011, right & 0b000_001_001
    waits, pays, largest = sure_turns(*inside, 1, 3)
    assert (waits, largest) == (1, 4)
    assert 1 <= pays <= 3
    assert free_waits(*inside, 1, square.bit_count()) == 1
    # A second stone may part the region without losing a cell.
    assert free_waits(*inside, 0b11, square.bit_count()) == 2
    assert sure_turns(*inside, 0b1001, 3)[0] == 2


def test_too_few_nodes_prove_nothing():
    down, right = openings_of(7)
    board = Board(down, right, ((36, 12), (8, 40)), 0)
    assert prove(board, Rules(), node_limit=10, is_compiled=False) is Refusal.NODES


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")
def test_compiled_search_is_the_same():
    rng = random.Random(3)
    for openings in (8, 10, 12):
        rules = rules_of(rng, 4, 2, ("region",))
        record = random_game(rng, rules, grid=4)
        board = board_at(record, min(24 - openings, len(record.actions) - 1))
        found = [
            prove(board, Rules.from_dict(rules), node_limit=3_000, is_compiled=fast)
            for fast in (False, True)
        ]
        assert found[0] == found[1]


def pairs_and_singles(waits: tuple[bool, bool]) -> Board:
    """The stones of A3 and B3 face each other across one opening. Red also holds A1 and B1, Blue
    A2 and B2; a pair has a turn to spend if its cells are joined. Nobody owns the right column."""
    right = 1 << 6 | (1 if waits[0] else 0) | (1 << 3 if waits[1] else 0)
    return Board(0, right, ((0, 1, 6), (3, 4, 7)), 0)


@pytest.mark.parametrize(
    ("waits", "value", "best"),
    [
        # Whoever closes the last opening loses the tie: Red waits, so Blue must close it.
        ((True, False), WIN, {1, 52 + 3}),
        # Blue answers Red's wait by its own.
        ((True, True), LOSS, {1, 52 + 3, 104 + 1}),
        ((False, True), LOSS, {104 + 1}),
        ((False, False), LOSS, {104 + 1}),
    ],
)
def test_waiting_turns_decide_who_must_move(waits, value, best):
    cells = [(0, 0, 0), (0, 1, 0), (2, 0, 0), (1, 0, 1), (1, 1, 1), (2, 1, 1)]
    rules = Rules(size=3, stones=3, start=tuple(cells), order=(), tie=("mover_loses",))
    board = pairs_and_singles(waits)
    for is_compiled in (False, compiled.is_available(3)):
        proof = prove(board, rules, is_compiled=is_compiled)
        assert isinstance(proof, Proof)
        assert (proof.value, set(proof.best), proof.margin) == (value, best, 0)
        agree(proof, slow_scores_of(board, rules.to_dict()))


def test_settled_regions_of_a_claim():
    """The claimant counts turns that it surely has, the other side all that it could have."""
    rules = Rules(size=3, stones=1, start=((0, 0, 0), (2, 2, 1)), order=(), tie=())
    # A wall parts the left column, a line of three cells, from a square of two by three.
    down, right = openings_of(3)
    right &= ~0b001_001_001
    board = Board(down, right, ((0,), (8,)), 0)
    found = [reduce(board, claimant, geometry_of(rules)) for claimant in (0, 1)]
    # The column has no turn without loss, the square two: 7 openings, 5 hold six cells together.
    assert [(each.lead, each.first, each.waits) for each in found] == [(-3, 0, -2), (-3, 0, -2)]
    assert found[0].pays >= 1
    assert found[1].pays >= 1


@pytest.mark.parametrize("changes", [{"walls": 20}, {"stay_needs_room": True}])
def test_other_rules_are_refused(changes):
    with pytest.raises(UsageError, match="late positions"):
        check_provable(Rules(**changes))


def test_drawn_position():
    """One opening is left between two single cells: the last wall levels all that counts."""
    board = Board(0, 0b1, ((0,), (1,)), 0)
    rules = Rules(size=3, stones=1, start=((0, 0, 0), (0, 1, 1)), order=(), tie=())
    proof = prove(board, rules)
    assert isinstance(proof, Proof)
    assert (proof.value, proof.best, proof.margin) == (DRAW, (1,), 0)


# Shipped proofs of 7x7 positions agree with a slow search that looks a few plies ahead.

DATA = Path(__file__).parents[2] / "data" / "late.jsonl.gz"


def shortest(count: int) -> list[tuple[Game, LatePosition]]:
    """Positions before the last ply of their games, by the slow referee."""
    found = []
    for game in read_late(DATA):
        for each in game.proven:
            if plies_left(game, each.ply) == 1 and len(found) < count:
                found.append((game_after(game.record.rules, game.record.actions[: each.ply]), each))
    return found


def slots_of(game: Game) -> dict[int, int]:
    """The slot of each legal play of the slow referee."""
    size = game.board.size
    cells = [row * size + column for row, column in game.board.stones[game.player]]
    return {action: cells.index(action // 52) * 52 + action % 52 for action in game.turns()}


def decided_plays(game: Game, proof: LatePosition, plies: int) -> int:
    """Compare every play that the slow search decides; returns how many."""
    decided = 0
    for action, slot in slots_of(game).items():
        low, high = play_bounds(game, action, plies)
        assert low <= proof.value
        if low == high:
            decided += 1
            assert (low == proof.value) == (slot in proof.best)
    return decided


def test_shortest_positions():
    assert DATA.stat().st_size < 200_000
    assert sum(decided_plays(*each, plies=1) for each in shortest(10)) >= 20


def ended_margins(game: Game, proof: LatePosition) -> int:
    """Compare the margin of every play that ends the game; returns how many."""
    ended, slots = 0, slots_of(game)
    assert proof.margins is not None and len(proof.margins) == len(slots)
    margins = dict(zip(sorted(slots.values()), proof.margins, strict=True))
    for action, slot in slots.items():
        after = copy_of(game)
        after.act(action)
        if after.over:
            own, other = after.territory()[game.player], after.territory()[1 - game.player]
            ended += 1
            assert margins[slot] == own - other
    return ended


@pytest.mark.slow
def test_all_positions_before_the_last_ply():
    found = shortest(1000)
    assert len(found) > 100
    assert sum(decided_plays(*each, plies=1) for each in found) >= 3 * len(found)
    proven = [each for each in found if each[1].margins is not None]
    assert sum(ended_margins(*each) for each in proven) >= 3 * len(proven)


def test_positions_are_spread_over_plies_left():
    counts = Counter(plies_left(game, each.ply) for game in read_late(DATA) for each in game.proven)
    assert counts.total() == 1000
    assert set(counts) == set(range(1, 11))
    assert min(counts.values()) >= 40


@pytest.mark.slow
def test_positions_are_proven_again():
    """Every fiftieth game's first position, by the search as it is installed, and the shorter ones
    of them without compiled code, too."""
    games = read_late(DATA)[::50]
    examples = fetch(
        make_examples(RecordedGames(tuple(game.record for game in games), ("game",) * len(games)))
    )
    for number, game in enumerate(games):
        found, rules = game.proven[0], game.record.rules
        at = np.searchsorted(examples.game, number) + found.ply
        position = jax.tree.map(lambda x, at=at: x[at], examples.position)
        board = board_of(position, rules.size)
        is_short = plies_left(game, found.ply) <= 3 and number % 2 == 0
        for is_compiled in (None, False) if is_short else (None,):
            proof = prove(board, rules, node_limit=game.node_limit, is_compiled=is_compiled)
            assert isinstance(proof, Proof)
            assert (proof.value, proof.best) == (found.value, found.best)
            # Margins that were not proven then may be now.
            assert found.margin in (None, proof.margin)
            assert found.margins in (None, proof.margins)


@pytest.mark.slow
def test_shortest_positions_two_plies_deep():
    assert sum(decided_plays(*each, plies=2) for each in shortest(3)) >= 20
