"""The ways that a stone walks from cell to cell, over the exits that the referee found."""

from collections.abc import Sequence

from wallgo_jax.board.geometry import MOVE_PATHS, side_delta
from wallgo_jax.notation import Play
from wallgo_jax.view.snapshot import Snapshot


def can_walk(snapshot: Snapshot, start: int, path: Sequence[int]) -> bool:
    """Whether the stone on a cell can step over these sides, one after the other."""
    cell = start
    for side in path:
        target = cell + side_delta(side, snapshot.grid)
        # The stone has left its own cell, which it may enter again.
        exits = snapshot.exits if target == start else snapshot.free_exits
        if cell not in exits[side]:
            return False
        cell = target
    return True


def open_paths(snapshot: Snapshot, play: Play) -> list[tuple[int, ...]]:
    """The ways that are open to a play's move, each a tuple of sides; a legal play has one or two.

    The order is that of `board.geometry.MOVE_PATHS`.
    """
    return [path for path in MOVE_PATHS[play.move] if can_walk(snapshot, play.cell, path)]
