"""The lines around a board: rules, who moves or who won, territory, walls left, the last ply."""

from collections.abc import Sequence

from wallgo_jax.game.rules import Rules, name_of
from wallgo_jax.notation import COLOURS, LETTERS, SIDE_WORDS, cell_name, join_words
from wallgo_jax.view.snapshot import LastPly, Snapshot


def status_lines(snapshot: Snapshot) -> list[str]:
    """Return the whole caption, line by line."""
    grid = f" The board lies in a grid of {snapshot.grid}." if snapshot.grid > snapshot.size else ""
    lines = [
        f"Ply {snapshot.ply}: {status(snapshot)}.{grid}",
        f"Territory: {_tally(snapshot.territory)}.",
    ]
    if snapshot.walls_left is not None:
        lines.append(f"Walls left: {_tally(snapshot.walls_left)}.")
    if snapshot.last is not None:
        lines.append(f"Last: {ply_text(snapshot.last, grid=snapshot.grid)}")
    return lines


def status(snapshot: Snapshot) -> str:
    """Say who moves or who won."""
    if snapshot.by_illegal_action:
        return f"over by an illegal action of {COLOURS[snapshot.player]}"
    if snapshot.is_over:
        return "over" if snapshot.payoff is None else f"over, {result_text(snapshot.payoff)}"
    return f"{COLOURS[snapshot.player]} to {'place a stone' if snapshot.in_setup else 'move'}"


def result_text(payoff: Sequence[float]) -> str:
    """Say who won, from the rewards of the end."""
    winners = [COLOURS[player] for player, share in enumerate(payoff) if share > 0]
    return f"{join_words(winners)} won" if winners else "a draw"


def ply_text(last: LastPly, *, grid: int) -> str:
    """Write the last ply in human notation."""
    target = cell_name(last.target, grid=grid)
    if last.origin is None or last.side is None:
        return f"{LETTERS[last.player]} {target}"
    origin, side = cell_name(last.origin, grid=grid), SIDE_WORDS[last.side]
    return f"{LETTERS[last.player]} {origin}->{target}:{side}"


def step_text(snapshot: Snapshot) -> str:
    """Say in one line the ply, what was played, and who moves or who won."""
    last = "" if snapshot.last is None else f": {ply_text(snapshot.last, grid=snapshot.grid)}"
    return f"Ply {snapshot.ply}{last} · {status(snapshot)}"


def rules_text(rules: Rules) -> str:
    """Name the rules: the preset and what there is to place and to build."""
    stones = "1 stone" if rules.stones == 1 else f"{rules.stones} stones"
    walls = "" if rules.walls is None else f", {rules.walls} walls"
    return f"Rules: {name_of(rules)} ({rules.size}×{rules.size}, {stones}{walls} each)"


def _tally(values: Sequence[int]) -> str:
    return ", ".join(f"{COLOURS[player]} {value}" for player, value in enumerate(values))
