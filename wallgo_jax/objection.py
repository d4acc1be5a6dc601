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
from wallgo_jax.scene import Scene, wall_on_side


def objection(scene: Scene, action: int) -> str | None:
    """The first rule that a public action of the player to move breaks; None if it is legal."""
    try:
        text = format_action(action, grid=scene.grid)
    except ValueError as error:
        return str(error)
    reason = _objection(scene, action)
    return None if reason is None else f"{text}: {reason}"


def _objection(scene: Scene, action: int) -> str | None:
    if scene.is_over:
        return "the game is over"
    cell = placement_of(action, grid=scene.grid)
    if scene.in_setup != (cell is not None):
        wanted = "a stone has to be placed" if scene.in_setup else "every stone is placed"
        return f"{wanted}; write {'C3' if scene.in_setup else 'B6->B5:W0'}"
    if cell is not None:
        return _cell_objection(scene, cell)
    play = take_apart(action)
    return _move_objection(scene, play) or _wall_objection(scene, play)


def has_turn(scene: Scene) -> bool:
    """Whether the player to move has a legal action."""
    cells = scene.cells if scene.in_setup else scene.stones[scene.player]
    base = scene.grid**2 * PLAYS_PER_STONE
    if scene.in_setup:
        return any(objection(scene, base + cell) is None for cell in cells)
    plays = [cell * PLAYS_PER_STONE + play for cell in cells for play in range(PLAYS_PER_STONE)]
    return any(objection(scene, action) is None for action in plays)


def _cell_objection(scene: Scene, cell: int) -> str | None:
    name = cell_name(cell, grid=scene.grid)
    if cell not in scene.cells:
        return f"{name} lies outside the {scene.size}x{scene.size} board"
    if cell in scene.stone_at:
        return f"{COLOURS[scene.stone_at[cell][0]]} already stands on {name}"
    return None


def _move_objection(scene: Scene, play: Play) -> str | None:
    colour, name = COLOURS[scene.player], cell_name(play.cell, grid=scene.grid)
    if play.cell not in scene.stones[scene.player]:
        own = ", ".join(sorted(cell_name(c, grid=scene.grid) for c in scene.stones[scene.player]))
        return f"{colour} has no stone on {name}; its stones: {own}"
    if scene.walls_left is not None and scene.walls_left[scene.player] == 0:
        return f"{colour} has no walls left"
    if play.move == STAY:
        stuck = scene.stay_needs_room and not any(
            can_walk(scene, play.cell, (side,)) for side in SIDES
        )
        return f"the stone on {name} has no room to step out and back" if stuck else None
    target = target_of(play, grid=scene.grid)
    assert target is not None
    if (reason := _cell_objection(scene, target)) is not None:
        return reason
    if not any(can_walk(scene, play.cell, path) for path in MOVE_PATHS[play.move]):
        return f"walls or stones block the way to {cell_name(target, grid=scene.grid)}"
    return None


def can_walk(scene: Scene, cell: int, path: Sequence[int]) -> bool:
    """Whether a stone on a cell can step over these sides, one after the other."""
    start = cell
    for side in path:
        if not _is_open(scene, cell, side):
            return False
        cell += SIDE_OFFSETS[side][0] * scene.grid + SIDE_OFFSETS[side][1]
        if cell in scene.stone_at and cell != start:
            return False
    return True


def _is_border(scene: Scene, cell: int, side: int) -> bool:
    row, column = divmod(cell, scene.grid)
    row, column = row + SIDE_OFFSETS[side][0], column + SIDE_OFFSETS[side][1]
    return not (0 <= row < scene.size and 0 <= column < scene.size)


def _is_open(scene: Scene, cell: int, side: int) -> bool:
    if _is_border(scene, cell, side):
        return False
    return wall_on_side(cell, side, grid=scene.grid) not in scene.builder_at


def _wall_objection(scene: Scene, play: Play) -> str | None:
    target = target_of(play, grid=scene.grid)
    assert target is not None
    if _is_open(scene, target, play.side):
        return None
    what = "the border" if _is_border(scene, target, play.side) else "a wall"
    side, name = SIDE_NAMES[play.side], cell_name(target, grid=scene.grid)
    free = [f"W{s}" for s in SIDES if _is_open(scene, target, s)]
    allowed = f"; free there: {', '.join(free)}" if free else ""
    return f"the {side} side of {name} is {what}{allowed}"
