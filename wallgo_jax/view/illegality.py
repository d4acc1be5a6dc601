"""The reason why an action is illegal, in words; the referee decides whether it is."""

from wallgo_jax.board.geometry import SIDE_OFFSETS, SIDES, STAY
from wallgo_jax.notation import (
    COLOURS,
    SIDE_NAMES,
    SIDE_WORDS,
    Play,
    cell_name,
    decode_play,
    format_action,
    placement_of,
    target_of,
)
from wallgo_jax.view.snapshot import Snapshot
from wallgo_jax.view.walks import open_paths


def illegality(snapshot: Snapshot, action: int) -> str | None:
    """Say which rule a public action of the player to move breaks; None if it is legal."""
    if action in snapshot.legal:
        return None
    try:
        text = format_action(action, grid=snapshot.grid)
    except ValueError as error:
        return str(error)
    return f"{text}: {broken_rule(snapshot, action) or 'the referee does not allow it'}"


def broken_rule(snapshot: Snapshot, action: int) -> str | None:
    """Find the first rule that an action on the grid breaks, without asking whether it is legal.

    The answer is None for exactly the actions that the referee allows; a test compares the two.
    """
    if snapshot.is_over:
        return "the game is over"
    cell = placement_of(action, grid=snapshot.grid)
    if snapshot.in_setup != (cell is not None):
        wanted = "a stone has to be placed" if snapshot.in_setup else "every stone is placed"
        return f"{wanted}; write {'C3' if snapshot.in_setup else 'B6->B5:up'}"
    if cell is not None:
        return _why_not_enter(snapshot, cell)
    play = decode_play(action)
    return _why_not_move(snapshot, play) or _why_not_build(snapshot, play)


def _why_not_enter(snapshot: Snapshot, cell: int) -> str | None:
    name = cell_name(cell, grid=snapshot.grid)
    if cell not in snapshot.cells:
        return f"{name} lies outside the {snapshot.size}x{snapshot.size} board"
    if cell in snapshot.stone_at:
        return f"{COLOURS[snapshot.stone_at[cell][0]]} already stands on {name}"
    return None


def _why_not_move(snapshot: Snapshot, play: Play) -> str | None:
    colour, name = COLOURS[snapshot.player], cell_name(play.cell, grid=snapshot.grid)
    if play.cell not in snapshot.stones[snapshot.player]:
        own = ", ".join(
            sorted(cell_name(c, grid=snapshot.grid) for c in snapshot.stones[snapshot.player])
        )
        return f"{colour} has no stone on {name}; its stones: {own}"
    if snapshot.walls_left is not None and snapshot.walls_left[snapshot.player] == 0:
        return f"{colour} has no walls left"
    if play.move == STAY:
        has_room = any(play.cell in snapshot.free_exits[side] for side in SIDES)
        if snapshot.stay_needs_room and not has_room:
            return f"the stone on {name} has no room to step out and back"
        return None
    target = _target(snapshot, play)
    if (reason := _why_not_enter(snapshot, target)) is not None:
        return reason
    if not open_paths(snapshot, play):
        return f"walls or stones block the way to {cell_name(target, grid=snapshot.grid)}"
    return None


def _target(snapshot: Snapshot, play: Play) -> int:
    target = target_of(play, grid=snapshot.grid)
    assert target is not None, "an action on the grid ends on the grid"
    return target


def _why_not_build(snapshot: Snapshot, play: Play) -> str | None:
    target = _target(snapshot, play)
    if target in snapshot.exits[play.side]:
        return None
    what = "the border" if _is_border(snapshot, target, play.side) else "a wall"
    side, name = SIDE_NAMES[play.side], cell_name(target, grid=snapshot.grid)
    free = [SIDE_WORDS[s] for s in SIDES if target in snapshot.exits[s]]
    allowed = f"; free there: {', '.join(free)}" if free else ""
    return f"the {side} side of {name} is {what}{allowed}"


def _is_border(snapshot: Snapshot, cell: int, side: int) -> bool:
    row, column = divmod(cell, snapshot.grid)
    row, column = row + SIDE_OFFSETS[side][0], column + SIDE_OFFSETS[side][1]
    return not (0 <= row < snapshot.size and 0 <= column < snapshot.size)
