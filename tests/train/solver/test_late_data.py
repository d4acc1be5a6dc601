"""Shipped proofs of 7x7 positions agree with a slow search that looks a few plies ahead."""

from collections import Counter
from pathlib import Path

import jax
import numpy as np
import pytest

from tests.support.reference.referee import Game
from tests.support.reference.solver import copy_of, play_bounds
from train.analysis.late_positions import LatePosition, plies_left, read_late
from train.data.record_dataset import RecordedGames, make_examples
from train.runtime.host import fetch
from train.solver.boards import board_of
from train.solver.late import Proof, prove

DATA = Path(__file__).parents[2] / "data" / "late.jsonl.gz"


def shortest(count: int) -> list[tuple[Game, LatePosition]]:
    """Positions before the last ply of their games, by the slow referee."""
    found = []
    for game in read_late(DATA):
        for each in game.proven:
            if plies_left(game, each.ply) == 1 and len(found) < count:
                referee = Game(game.record.rules.to_dict())
                for action in game.record.actions[: each.ply]:
                    referee.act(action)
                found.append((referee, each))
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
            assert (proof.margin, proof.margins) == (found.margin, found.margins)


@pytest.mark.slow
def test_shortest_positions_two_plies_deep():
    assert sum(decided_plays(*each, plies=2) for each in shortest(3)) >= 20
