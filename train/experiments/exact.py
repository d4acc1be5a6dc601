"""Who wins small boards? The value of each first placement, up to symmetry, by the exact solvers.

3×3 has tables of all positions, 4×4 alpha-beta search. A value is that of best play by both, for
the player who places first; the next placements are counted for the player who makes them.

Larger boards are asked whether Red wins, and whether Red at least draws, by proof numbers. A
question ends when it is decided, after its minutes, or by Ctrl-C. Then the page says how far it
came, and the same command goes on from there.
"""

import contextlib
import functools
import math
import time
from collections import Counter
from typing import Any

import numpy as np

from train.experiments import openings
from train.experiments.lib.pages import Report
from train.experiments.lib.work import Work
from train.runtime.display import Table
from train.runtime.errors import UsageError
from train.solver.boards import BY_SEARCH, BY_TABLES, DRAW, LOSS, WIN, check_solvable
from train.solver.claims import BY_PROOF_NUMBERS, Claim
from train.solver.exact_player import make_placement_values
from wallgo_jax.game.rules import Rules
from wallgo_jax.notation import COLOURS, cell_name

_HEADS = ("board", "stones", "result", "first placement", "its value")
_HEADS += ("next placements won, drawn, lost",)
_ASKED = ("board", "stones", "question", "answer", "positions looked at")
_ASKED += ("first placements decided", "fewest walls of a decided position")
_TARGETS, _CLAIMS = {"draw": DRAW, "win": WIN}, {DRAW: "at least draws", WIN: "wins"}
_NODES = 1 << 14  # between two looks at the clock
_WORDS = {WIN: "won", DRAW: "drawn", LOSS: "lost"}


def report(work: Work) -> Report:
    """Solve the boards."""
    scale, solvable = work.scale.exact, BY_SEARCH | BY_TABLES
    boards = [Rules.from_dict(each) for each in scale.boards]
    large = [rules for rules in boards if rules.stones > solvable.get(rules.size, 0)]
    for rules in boards:
        check_solvable(rules, BY_PROOF_NUMBERS if rules in large else solvable)
    rows, answers, data = [], [], []
    for rules in boards:
        if rules in large:
            answers += [_ask(work, rules, result) for result in scale.asked]
            continue
        settings = {"rules": rules.to_dict(), "node_limit": scale.node_limit}
        with work.task(f"{rules.size}×{rules.size}", 1, "boards"):
            solve = functools.partial(_solve, rules, scale.node_limit)
            solved = work.cached("exact", settings, solve)
        data.append(settings | solved)
        rows += _rows(rules, solved)
    tables = [Table("Exact values", _HEADS, rows)] if rows else []
    if answers:
        asked = [_answer(*each) for each in answers]
        tables.append(Table("Questions to proof numbers", _ASKED, asked))
    data += [{"rules": rules.to_dict(), "asked": asked} | by for rules, asked, by in answers]
    return Report("Exact values", tables, {"exact": data})


def _ask(work: Work, rules: Rules, result: str) -> tuple[Rules, str, dict[str, Any]]:
    """Search for a claim of Red's and, if that is refuted, for the opposite claim of Blue's: a
    refuted claim may hold where players have several stones."""
    target = _TARGETS[result]
    answer = _search(work, rules, 0, target)
    if answer["holds"] is False and rules.stones > 1:
        answer = _search(work, rules, 1, 1 - target)
        answer["holds"] = False if answer["holds"] else None
    return rules, result, answer


def _search(work: Work, rules: Rules, player: int, target: int) -> dict[str, Any]:
    """Search for a claim until it is decided, its minutes are over, or Ctrl-C."""
    minutes, entries = work.scale.exact.minutes, work.scale.exact.entries
    settings = {"rules": rules.to_dict(), "player": player, "target": target, "entries": entries}
    decided = work.find("claim", settings)
    if decided is not None:
        return decided
    claim = Claim(rules, player, target, entries=entries)
    began, minutes_spent, holds = time.time(), 0.0, None
    place = work.directory / f"claim-{rules.size}x{rules.size}-{rules.stones}-{player}-{target}.npy"
    if place.exists():
        claim.load(place)
    title = f"{rules.size}×{rules.size}: {COLOURS[player]} {_CLAIMS[target]}"
    with (
        work.task(title, math.ceil(minutes), "minutes") as on_progress,
        contextlib.suppress(KeyboardInterrupt),
    ):
        while holds is None and minutes_spent < minutes:
            holds = claim.decide(claim.start(), _NODES)
            minutes_spent = (time.time() - began) / 60
            on_progress(min(int(minutes_spent), int(minutes)))
    cells = range(rules.size**2)
    answer = {
        "holds": holds,
        "nodes": claim.nodes,
        "placements": [claim.decide(claim.start((cell,)), 1) for cell in cells],
        "decided_by_walls": claim.decided(),
    }
    if holds is not None:
        return work.cached("claim", settings, lambda: answer, seconds_before=60 * minutes_spent)
    place.parent.mkdir(parents=True, exist_ok=True)
    claim.save(place)
    return answer


def _answer(rules: Rules, result: str, answer: dict[str, Any]) -> list[str]:
    """The row of a question."""
    placements, walls = answer["placements"], answer["decided_by_walls"]
    return [
        f"{rules.size}×{rules.size}",
        f"{rules.stones} each",
        f"does Red {'at least ' * (result == 'draw')}{result}?",
        {True: "yes", False: "no", None: "not decided"}[answer["holds"]],
        f"{answer['nodes']:,}",
        f"{sum(holds is not None for holds in placements)} of {len(placements)}",
        f"{min(map(int, walls))}" if walls else "",
    ]


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
