"""Why an action is not allowed, in words; it decides nothing, the referee does."""

from collections.abc import Sequence

from wallgo_jax.board.geometry import MOVE_PATHS, PLAYS_PER_STONE, SIDE_OFFSETS, SIDES, STAY
from wallgo_jax.notation import (
    COLOURS,
    SIDE_NAMES,
    Play,
    cell_name,
    format_action,
    placement_of,
    take_apart,
    target_of,
)
from wallgo_jax.view.snapshot import Snapshot, wall_on_side


def illegality(snapshot: Snapshot, action: int) -> str | None:
    """The first rule that a public action of the player to move breaks; None if it is legal."""
    try:
        text = format_action(action, grid=snapshot.grid)
    except ValueError as error:
        return str(error)
    reason = _illegality(snapshot, action)
    return None if reason is None else f"{text}: {reason}"


def _illegality(snapshot: Snapshot, action: int) -> str | None:
    if snapshot.is_over:
        return "the game is over"
    cell = placement_of(action, grid=snapshot.grid)
    if snapshot.in_setup != (cell is not None):
        wanted = "a stone has to be placed" if snapshot.in_setup else "every stone is placed"
        return f"{wanted}; write {'C3' if snapshot.in_setup else 'B6->B5:W0'}"
    if cell is not None:
        return _cell_illegality(snapshot, cell)
    play = take_apart(action)
    return _move_illegality(snapshot, play) or _wall_illegality(snapshot, play)


def has_turn(snapshot: Snapshot) -> bool:
    """Whether the player to move has a legal action."""
    cells = snapshot.cells if snapshot.in_setup else snapshot.stones[snapshot.player]
    base = snapshot.grid**2 * PLAYS_PER_STONE
    if snapshot.in_setup:
        return any(illegality(snapshot, base + cell) is None for cell in cells)
    plays = [cell * PLAYS_PER_STONE + play for cell in cells for play in range(PLAYS_PER_STONE)]
    return any(illegality(snapshot, action) is None for action in plays)


def _cell_illegality(snapshot: Snapshot, cell: int) -> str | None:
    name = cell_name(cell, grid=snapshot.grid)
    if cell not in snapshot.cells:
        return f"{name} lies outside the {snapshot.size}x{snapshot.size} board"
    if cell in snapshot.stone_at:
        return f"{COLOURS[snapshot.stone_at[cell][0]]} already stands on {name}"
    return None


def _move_illegality(snapshot: Snapshot, play: Play) -> str | None:
    colour, name = COLOURS[snapshot.player], cell_name(play.cell, grid=snapshot.grid)
    if play.cell not in snapshot.stones[snapshot.player]:
        own = ", ".join(
            sorted(cell_name(c, grid=snapshot.grid) for c in snapshot.stones[snapshot.player])
        )
        return f"{colour} has no stone on {name}; its stones: {own}"
    if snapshot.walls_left is not None and snapshot.walls_left[snapshot.player] == 0:
        return f"{colour} has no walls left"
    if play.move == STAY:
        stuck = snapshot.stay_needs_room and not any(
            can_walk(snapshot, play.cell, (side,)) for side in SIDES
        )
        return f"the stone on {name} has no room to step out and back" if stuck else None
    target = target_of(play, grid=snapshot.grid)
    assert target is not None
    if (reason := _cell_illegality(snapshot, target)) is not None:
        return reason
    if not any(can_walk(snapshot, play.cell, path) for path in MOVE_PATHS[play.move]):
        return f"walls or stones block the way to {cell_name(target, grid=snapshot.grid)}"
    return None


def can_walk(snapshot: Snapshot, cell: int, path: Sequence[int]) -> bool:
    """Whether a stone on a cell can step over these sides, one after the other."""
    start = cell
    for side in path:
        if not _is_open(snapshot, cell, side):
            return False
        cell += SIDE_OFFSETS[side][0] * snapshot.grid + SIDE_OFFSETS[side][1]
        if cell in snapshot.stone_at and cell != start:
            return False
    return True


def _is_border(snapshot: Snapshot, cell: int, side: int) -> bool:
    row, column = divmod(cell, snapshot.grid)
    row, column = row + SIDE_OFFSETS[side][0], column + SIDE_OFFSETS[side][1]
    return not (0 <= row < snapshot.size and 0 <= column < snapshot.size)


def _is_open(snapshot: Snapshot, cell: int, side: int) -> bool:
    if _is_border(snapshot, cell, side):
        return False
    return wall_on_side(cell, side, grid=snapshot.grid) not in snapshot.builder_at


def _wall_illegality(snapshot: Snapshot, play: Play) -> str | None:
    target = target_of(play, grid=snapshot.grid)
    assert target is not None
    if _is_open(snapshot, target, play.side):
        return None
    what = "the border" if _is_border(snapshot, target, play.side) else "a wall"
    side, name = SIDE_NAMES[play.side], cell_name(target, grid=snapshot.grid)
    free = [f"W{s}" for s in SIDES if _is_open(snapshot, target, s)]
    allowed = f"; free there: {', '.join(free)}" if free else ""
    return f"the {side} side of {name} is {what}{allowed}"
