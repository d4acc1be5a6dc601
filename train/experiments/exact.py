"""Who wins small boards? The value of each first placement, up to symmetry, by the exact solvers.

3×3 has tables of all positions, 4×4 alpha-beta search. A value is the result of best play by both,
for the player who places first. The next placements are counted from the point of view of the
player who makes them.

For larger boards, proof-number search asks whether Red wins and whether Red at least draws. A
question ends when it is decided, after its minutes, or by Ctrl-C. Then the page says how far the
search came, and the same command continues from there.
"""

import contextlib
import dataclasses
import functools
import time
from collections import Counter
from typing import Any, Literal

import numpy as np

from train.experiments import lab, openings
from train.experiments.tables import Table
from train.runtime.errors import UsageError
from train.solver.boards import DRAW, LOSS, WIN, check_solvable
from train.solver.claims import BY_PROOF_NUMBERS, Claim
from train.solver.exact_player import make_placement_values
from wallgo_jax.game.rules import Rules
from wallgo_jax.notation import COLOURS, cell_name

_TARGETS, _CLAIMS = {"draw": DRAW, "win": WIN}, {DRAW: "at least draws", WIN: "wins"}
_NODES = 1 << 14  # between two looks at the clock
_WORDS = {WIN: "won", DRAW: "drawn", LOSS: "lost"}


SMALL = (
    Rules(size=3, stones=1, order=(0, 1)),
    Rules(size=3, stones=2, order=(0, 1, 1, 0)),
    Rules(size=4, stones=1, order=(0, 1)),
)
LARGE = (Rules(size=4, stones=2, order=(0, 1, 1, 0)), Rules(size=5, stones=1, order=(0, 1)))


@dataclasses.dataclass(frozen=True)
class Scale(lab.Options):
    """The scale of the page."""

    large: bool = False
    """Ask 4×4 with two stones each and 5×5 with one, in place of solving the smaller boards."""
    node_limit: int = 3_000_000
    """Nodes of one question to alpha-beta search."""
    asked: tuple[Literal["draw", "win"], ...] = ("draw", "win")
    """Does Red reach at least this on a large board?"""
    minutes: float = 120.0
    """Minutes of one question to proof numbers."""
    entries: int = 65_000_000
    """Entries of their table, at 48 bytes each."""


def main(work: lab.Lab) -> dict[str, Any]:
    """Solve the boards."""
    scale = work.scale
    rows = []
    if scale.large:
        for rules in LARGE:
            check_solvable(rules, BY_PROOF_NUMBERS)
            rows += [_answer(rules, result, _ask(work, rules, result)) for result in scale.asked]
        heads = [["board", "board"], ["stones each", "stones"], ["question", "question"]]
        heads += [["answer", "answer"], ["positions", "positions"]]
        heads += [["first placements decided", "placements"], ["fewest walls decided", "walls"]]
        return work.finish({"large": Table("Questions to proof numbers", heads, rows)})
    for rules in SMALL:
        key = {"rules": rules.to_dict(), "node_limit": scale.node_limit}
        solve = functools.partial(_solve, rules, scale.node_limit)
        rows += _rows(rules, work.keep("exact", key, solve))
    heads = [["board", "board"], ["stones each", "stones"], ["result", "result"]]
    heads += [["first placement", "placement"], ["its value", "value"]]
    heads += [["next placements won, drawn, lost", "next"]]
    return work.finish({"small": Table("Exact values", heads, rows)})


def _ask(work: lab.Lab, rules: Rules, result: str) -> dict[str, Any]:
    """Search for a claim of Red's and, if that is refuted, for the opposite claim of Blue's: a
    refuted claim may hold where players have several stones."""
    target = _TARGETS[result]
    answer = _search(work, rules, 0, target)
    if answer["holds"] is False and rules.stones > 1:
        answer = _search(work, rules, 1, 1 - target)
        answer["holds"] = False if answer["holds"] else None
    return answer


def _search(work: lab.Lab, rules: Rules, player: int, target: int) -> dict[str, Any]:
    """Search for a claim until it is decided, its minutes are over, or Ctrl-C."""
    minutes = work.scale.minutes
    entries = work.scale.entries
    settings = {"rules": rules.to_dict(), "player": player, "target": target, "entries": entries}
    decided = work.find("claim", settings)
    if decided is not None:
        return decided
    claim = Claim(rules, player, target, entries=entries)
    began, minutes_spent, holds = time.time(), 0.0, None
    place = work.scale.out / f"claim-{rules.size}x{rules.size}-{rules.stones}-{player}-{target}.npy"
    if place.exists():
        claim.load(place)
    with contextlib.suppress(KeyboardInterrupt):
        while holds is None and minutes_spent < minutes:
            holds = claim.decide(claim.start(), _NODES)
            minutes_spent = (time.time() - began) / 60
    cells = range(rules.size**2)
    answer = {
        "holds": holds,
        "nodes": claim.nodes,
        "placements": [claim.decide(claim.start((cell,)), 1) for cell in cells],
        "decided_by_walls": claim.decided(),
    }
    if holds is not None:
        return work.keep("claim", settings, lambda: answer)
    place.parent.mkdir(parents=True, exist_ok=True)
    claim.save(place)
    return answer


def _answer(rules: Rules, result: str, answer: dict[str, Any]) -> dict[str, Any]:
    """The row of a question."""
    placements, walls = answer["placements"], answer["decided_by_walls"]
    return {
        "board": f"{rules.size}×{rules.size}",
        "stones": rules.stones,
        "question": f"does Red {'at least ' * (result == 'draw')}{result}?",
        "answer": {True: "yes", False: "no", None: "not decided"}[answer["holds"]],
        "positions": answer["nodes"],
        "placements": f"{sum(holds is not None for holds in placements)} of {len(placements)}",
        "walls": f"{min(map(int, walls))}" if walls else "",
    }


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


def _rows(rules: Rules, solved: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each first placement; one alone where the board is not solved."""
    order = "".join(COLOURS[player][0] for player in rules.order)
    board = {"board": f"{rules.size}×{rules.size}", "stones": f"{rules.stones}, {order}"}
    if "unsolved" in solved:
        return [board | {"result": solved["unsolved"]}]
    mover, value = rules.order[0], solved["value"]
    result = f"{COLOURS[mover if value > 0 else 1 - mover]} wins" if value else "drawn"
    rows = []
    for cell, placed in solved["placements"].items():
        counts = Counter(placed["next"])
        row = board | {"result": result, "placement": cell_name(int(cell), grid=rules.size)}
        row["next"] = ", ".join(str(counts[each]) for each in (WIN, DRAW, LOSS))
        rows.append(row | {"value": _WORDS[placed["value"]]})
    return rows


if __name__ == "__main__":
    lab.start(main, Scale, __file__)
