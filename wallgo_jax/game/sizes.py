"""The sizes of the two action spaces, and where placements begin in the public one."""

from wallgo_jax.board.geometry import PLAYS_PER_STONE


def num_slots(stones: int, *, grid: int) -> int:
    """A: the size of the compact action space, plays of S stones or placements on N cells."""
    return max(stones * PLAYS_PER_STONE, grid * grid)


def num_actions(grid: int) -> int:
    """The size of the public action space: plays from each cell, then a placement on each cell."""
    return first_placement(grid) + grid * grid


def first_placement(grid: int) -> int:
    """The public action that places a stone on cell 0; the plays come before it."""
    return grid * grid * PLAYS_PER_STONE


def in_own_grid(action: int, *, grid: int, size: int) -> int:
    """The public action of a board's own grid for one of a larger grid, in whose corner it lies."""
    is_placement = action >= first_placement(grid)
    cell, play = (
        (action - first_placement(grid), 0) if is_placement else divmod(action, PLAYS_PER_STONE)
    )
    row, column = divmod(cell, grid)
    cell = row * size + column
    return first_placement(size) + cell if is_placement else cell * PLAYS_PER_STONE + play
