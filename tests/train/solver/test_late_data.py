"""Shipped proofs of 7x7 positions agree with a slow search that looks a few plies ahead."""

from pathlib import Path

import pytest

from tests.support.reference.referee import Game
from tests.support.reference.scores import play_bounds
from train.analysis.late_positions import LatePosition, plies_left, read_late

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


def decided_plays(game: Game, proof: LatePosition, plies: int) -> int:
    """Compare every play that the slow search decides; returns how many."""
    size, decided = game.board.size, 0
    cells = [row * size + column for row, column in game.board.stones[game.player]]
    for action in game.turns():
        low, high = play_bounds(game, action, plies)
        slot = cells.index(action // 52) * 52 + action % 52
        assert low <= proof.value
        if low == high:
            decided += 1
            assert (low == proof.value) == (slot in proof.best)
    return decided


def test_shortest_positions():
    assert DATA.stat().st_size < 200_000
    assert sum(decided_plays(*each, plies=1) for each in shortest(10)) >= 20


@pytest.mark.slow
def test_shortest_positions_two_plies_deep():
    assert sum(decided_plays(*each, plies=2) for each in shortest(3)) >= 20
