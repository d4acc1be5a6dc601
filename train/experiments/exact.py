"""Who wins small boards? The value of each first placement, up to symmetry, by the exact solvers.

3×3 has tables of all positions, 4×4 alpha-beta search. A value is that of best play by both, for
the player who places first; the next placements are counted for the player who makes them.
"""

from collections import Counter
from typing import Any

import numpy as np

from train.experiments.lib import openings
from train.experiments.lib.pages import Report, Table, paragraphs
from train.experiments.lib.work import Work
from train.runtime.errors import UsageError
from train.solver.boards import BY_SEARCH, BY_TABLES, DRAW, LOSS, WIN, check_solvable
from train.solver.exact_player import make_placement_values
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.sizes import first_placement
from wallgo_jax.notation import COLOURS, cell_name

_WORDS = {WIN: "won", DRAW: "drawn", LOSS: "lost"}
_HEADS = ("board", "stones", "result", "first placement", "its value")
_HEADS += ("next placements won, drawn, lost",)


def report(work: Work) -> Report:
    """Solve the boards."""
    scale = work.scale.exact
    boards = [Rules.from_dict(each) for each in scale.boards]
    for rules in boards:
        check_solvable(rules, BY_SEARCH | BY_TABLES)
    rows, data = [], []
    for rules in boards:
        settings = {"rules": rules.to_dict(), "node_limit": scale.node_limit}

        def solve(rules: Rules = rules) -> dict[str, Any]:
            with work.task(f"{rules.size}×{rules.size}", 1, "boards"):
                return _solve(rules, scale.node_limit)

        solved = work.cache.cached("exact", settings, solve)
        data.append(settings | solved)
        rows += _rows(rules, solved)
    return Report(
        "Exact values",
        paragraphs(__doc__),
        [Table("Exact values", _HEADS, rows)],
        [],
        {"exact": data},
    )


def _solve(rules: Rules, node_limit: int) -> dict[str, Any]:
    """The value for the player who places first, and for each first placement, up to symmetry, its
    value for that player and the values of the next placements; or why there are none."""
    values = make_placement_values(rules, node_limit=node_limit)
    try:
        first = values(())
        placements = {
            str(cell): {"value": first[cell], "next": list(values((cell,)).values())}
            for cell in _representatives(rules, sorted(first))
        }
    except UsageError as error:
        return {"unsolved": str(error)}
    return {"value": max(first.values()), "placements": placements}


def _representatives(rules: Rules, cells: list[int]) -> list[int]:
    """The cells that no symmetry of the start turns into an earlier one."""
    actions = np.array(cells)[:, None] + first_placement(rules.size)
    turned = openings.turned_actions(rules, actions)[:, :, 0]
    return [cell for cell, copies in zip(cells, turned.T, strict=True) if copies[0] == copies.min()]


def _rows(rules: Rules, solved: dict[str, Any]) -> list[list[str]]:
    order = "".join(COLOURS[player][0] for player in rules.order)
    board = [f"{rules.size}×{rules.size}", f"{rules.stones} each, {order}"]
    if "unsolved" in solved:
        return [[*board, solved["unsolved"], "", "", ""]]
    mover, value = rules.order[0], solved["value"]
    winner = COLOURS[mover if value > 0 else 1 - mover]
    result, rows = f"{winner} wins" if value else "drawn", []
    for cell, placed in solved["placements"].items():
        counts = Counter(placed["next"])
        rows.append(
            [
                *board,
                result,
                cell_name(int(cell), grid=rules.size),
                _WORDS[placed["value"]],
                ", ".join(str(counts[each]) for each in (WIN, DRAW, LOSS)),
            ]
        )
    return rows
