"""What is said under a board: who moves or who won, territory, walls left, the last ply."""

from collections.abc import Sequence

from wallgo_jax.notation import COLOURS, LETTERS, cell_name, join_words
from wallgo_jax.scene import LastPly, Scene


def status_lines(scene: Scene) -> list[str]:
    """Everything, a line each."""
    grid = f" The board lies in a grid of {scene.grid}." if scene.grid > scene.size else ""
    lines = [f"Ply {scene.ply}: {status(scene)}.{grid}", f"Territory: {_tally(scene.territory)}."]
    if scene.walls_left is not None:
        lines.append(f"Walls left: {_tally(scene.walls_left)}.")
    if scene.last is not None:
        lines.append(f"Last: {ply_text(scene.last, grid=scene.grid)}")
    return lines


def status(scene: Scene) -> str:
    """Who moves or who won."""
    if scene.by_illegal_action:
        return f"over by an illegal action of {COLOURS[scene.player]}"
    if scene.is_over:
        return "over" if scene.payoff is None else f"over, {result_text(scene.payoff)}"
    return f"{COLOURS[scene.player]} to {'place a stone' if scene.in_setup else 'move'}"


def result_text(payoff: Sequence[float]) -> str:
    """Who won, from what the end paid."""
    winners = [COLOURS[player] for player, share in enumerate(payoff) if share > 0]
    return f"{join_words(winners)} won" if winners else "a draw"


def ply_text(last: LastPly, *, grid: int) -> str:
    """The last ply in human notation."""
    target = cell_name(last.target, grid=grid)
    if last.origin is None:
        return f"{LETTERS[last.player]} {target}"
    return f"{LETTERS[last.player]} {cell_name(last.origin, grid=grid)}->{target}:W{last.side}"


def _tally(values: Sequence[int]) -> str:
    return ", ".join(f"{COLOURS[player]} {value}" for player, value in enumerate(values))
