"""Who wins small boards? The value of each first placement, up to symmetry, by the exact solvers.

3×3 has tables of all positions, 4×4 alpha-beta search. A value is that of best play by both, for
the player who places first; the next placements are counted for the player who makes them.
"""

import functools
from collections import Counter
from typing import Any

import numpy as np

from train.experiments import openings
from train.experiments.lib.pages import Report, Table
from train.experiments.lib.work import Work
from train.runtime.errors import UsageError
from train.solver.boards import BY_SEARCH, BY_TABLES, DRAW, LOSS, WIN, check_solvable
from train.solver.exact_player import make_placement_values
from wallgo_jax.game.rules import Rules
from wallgo_jax.notation import COLOURS, cell_name

_HEADS = ("board", "stones", "result", "first placement", "its value")
_HEADS += ("next placements won, drawn, lost",)
_WORDS = {WIN: "won", DRAW: "drawn", LOSS: "lost"}


def report(work: Work) -> Report:
    """Solve the boards."""
    scale, rows, data = work.scale.exact, [], []
    boards = [Rules.from_dict(each) for each in scale.boards]
    for rules in boards:
        check_solvable(rules, BY_SEARCH | BY_TABLES)
    for rules in boards:
        settings = {"rules": rules.to_dict(), "node_limit": scale.node_limit}
        with work.task(f"{rules.size}×{rules.size}", 1, "boards"):
            solve = functools.partial(_solve, rules, scale.node_limit)
            solved = work.cached("exact", settings, solve)
        data.append(settings | solved)
        rows += _rows(rules, solved)
    tables = [Table("Exact values", _HEADS, rows)]
    return Report("Exact values", tables, {"exact": data})


def _solve(rules: Rules, node_limit: int) -> dict[str, Any]:
    """The value for the player who places first, and for each first placement, up to symmetry, its
    value for that player and the values of the next placements; or why there are none."""
    values = make_placement_values(rules, node_limit=node_limit)
    try:
        first = values(())
        cells = np.array(sorted(first))
        by_cell = {
            str(cell): {"value": first[cell], "next": list(values((cell,)).values())}
            for cell in cells[openings.representatives(rules, cells[:, None])].tolist()
        }
    except UsageError as error:
        return {"unsolved": str(error)}
    return {"value": max(first.values()), "placements": by_cell}


def _rows(rules: Rules, solved: dict[str, Any]) -> list[list[str]]:
    """A row for each first placement; one alone where the board is not solved."""
    order = "".join(COLOURS[player][0] for player in rules.order)
    board = [f"{rules.size}×{rules.size}", f"{rules.stones} each, {order}"]
    if "unsolved" in solved:
        return [[*board, solved["unsolved"], "", "", ""]]
    mover, value = rules.order[0], solved["value"]
    result = f"{COLOURS[mover if value > 0 else 1 - mover]} wins" if value else "drawn"
    rows = []
    for cell, placed in solved["placements"].items():
        counts = Counter(placed["next"])
        replies = ", ".join(str(counts[each]) for each in (WIN, DRAW, LOSS))
        name = cell_name(int(cell), grid=rules.size)
        rows.append([*board, result, name, _WORDS[placed["value"]], replies])
    return rows
