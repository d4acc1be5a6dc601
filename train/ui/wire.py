"""Games, rules and choices as plain JSON, for the page."""

import time
from typing import Any

import numpy as np

from train.search.report import SearchReport
from train.ui.game_server import GameServer
from train.ui.game_session import OPEN, GameSession, PuzzleTask, ReviewStatus
from train.ui.game_tree import Node
from train.ui.machine import DEFAULT_LEVEL, HINT, LEVELS, ZERO, Machine, ratings_of
from train.ui.saving import read_rules, write_copy
from wallgo_jax.formats import diagram
from wallgo_jax.formats.rules_text import write_rules
from wallgo_jax.game.rules import PRESETS, Rules, name_of
from wallgo_jax.notation import (
    COLOURS,
    decode_play,
    format_action,
    placement_of,
    target_of,
)
from wallgo_jax.view import captions
from wallgo_jax.view.snapshot import Snapshot, take_snapshot

MAX_HINTS = 5


def game_view(session: GameSession, name: str) -> dict[str, Any]:
    """Everything that a page shows of a game.

    Args:
      session: the game.
      name: its name in messages.
    """
    node, tree, clocks = session.tree.current, session.tree, session.clocks
    payoff = node.snapshot.payoff
    # Of each player in the win, once the game is over by the rules.
    shares = payoff and [(paid == max(payoff)) / payoff.count(max(payoff)) for paid in payoff]
    return {
        "type": "game",
        "game": name,
        "rules": _rules(tree.rules),
        "mode": session.mode,
        "current": node.number,
        "tip": session.tip.number,
        "nodes": [_node(each) for each in tree],
        "children": {
            each.number: [child.number for child in each.children] for each in tree if each.children
        },
        "position": position_view(node.snapshot),
        "seats": session.seats,
        "names": tree.names,
        "mayPlay": session.may_play,
        "isOver": node.snapshot.is_over or (node is session.tip and session.is_over),
        "isFinished": session.is_over,
        "status": status(session),
        "thinking": session.search is not None,
        "activity": activity(session),
        "end": ending(session),
        "error": session.error,
        "clocks": clocks
        and {
            "left": [round(clocks.left(player), 2) for player in range(tree.rules.players)],
            "running": clocks.running,
        },
        "evaluates": session.shows_evaluation,
        "evaluation": None if node.report is None else evaluation_view(node.report),
        "hint": session.hint == node.number,
        "hintSimulations": HINT.simulations,
        "result": shares,
        "puzzle": session.task and _puzzle(session.task),
        "review": session.review and _review(session.review),
        "copy": write_copy(session),
    }


def status(session: GameSession) -> str:
    """The player to move, or how the game ended."""
    node = session.tree.current
    snapshot, is_tip = node.snapshot, node is session.tip
    colour = COLOURS[snapshot.player]
    if is_tip and session.forfeit is not None:
        player, reason = session.forfeit
        return f"{COLOURS[player]} {reason}"
    if is_tip and session.is_posed:
        return f"Puzzle: {colour} to move"
    if snapshot.payoff is not None:
        return f"Game over: {captions.result_text(snapshot.payoff)}"
    if is_tip and session.is_machines_turn:
        return f"{colour} (machine) is thinking"
    return _capitalised(captions.status(snapshot))


def activity(session: GameSession) -> dict[str, Any] | None:
    """What the machine does now, for how many seconds, and the share that is done or None."""
    now = time.monotonic()
    if (state := session.machine.compilation(session.tree.rules)) is not None:
        parts = f": {state.done} of {state.total} parts" if state.total else ""
        text = f"The machine compiles its search for these rules{parts}"
        share = state.done / state.total if state.total else 0.0
        return {"text": text, "seconds": round(now - state.began, 1), "share": share}
    if session.search is None:
        return None
    level, began = session.search
    text = f"Searches with {count(level.simulations, 'simulation')}"
    return {"text": text, "seconds": round(now - began, 1), "share": None}


def ending(session: GameSession) -> dict[str, Any] | None:
    """How the game that is played ended: who won, the cells of each player, the winner's cells over
    the mean of the others' (None without one winner, or where others have none), and plies."""
    snapshot, forfeit = session.tip.snapshot, session.forfeit
    if not session.is_over or session.task is not None:
        return None
    cells, ratio = snapshot.territory, None
    if forfeit is not None:
        title = f"{COLOURS[forfeit[0]]} {forfeit[1]}"
        title = title if snapshot.players > 2 else f"{COLOURS[1 - forfeit[0]]} won: {title}"
    else:
        payoff = snapshot.payoff or ()
        winners = [player for player, reward in enumerate(payoff) if reward > 0]
        title = captions.result_text(payoff)
        rest = sum(cells) - sum(cells[winner] for winner in winners)
        if len(winners) == 1 and rest:
            ratio = round(cells[winners[0]] * (len(cells) - 1) / rest, 2)
    about = {"cells": cells, "ratio": ratio, "plies": snapshot.ply}
    return {"title": _capitalised(title)} | about


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def count(number: int, word: str) -> str:
    """A number of things, such as `1 ply` and `2 plies`."""
    many = f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"
    return f"{number:,} {word if number == 1 else many}"


def _review(status: ReviewStatus) -> dict[str, Any]:
    seconds = round(time.monotonic() - status.began, 1) if status.is_running else 0.0
    doing = f"{100 * status.share:.0f} % searched" if status.share else "compiling the search"
    doing = doing if status.share < 1 else "drawing the page"
    text = f"Reviewing {count(status.positions, 'position')}: {doing}"
    return status._asdict() | {"text": text, "seconds": seconds}


def _rules(rules: Rules) -> dict[str, Any]:
    return {
        "name": name_of(rules),
        "fields": write_rules(rules),
        "size": rules.size,
        "players": rules.players,
        "stones": rules.stones,
        "text": captions.rules_text(rules),
    }


def _node(node: Node) -> list[Any]:
    """[number, parent's number, move, mover, first player's chance to win or None, mark,
    simulations behind the chance]."""
    parent, report = None if node.parent is None else node.parent.number, node.report
    chance = None if report is None else round(report.win_chances[0], 3)
    simulations = 0 if report is None else report.simulations
    return [node.number, parent, node.text, node.mover, chance, node.mark, simulations]


def position_view(snapshot: Snapshot) -> dict[str, Any]:
    """A position, with the plies that the referee allows in it."""
    last = snapshot.last
    same = ("size", "ply", "player", "stones", "walls", "owner", "territory")
    return {name: getattr(snapshot, name) for name in same} | {
        "inSetup": snapshot.in_setup,
        "isOver": snapshot.is_over,
        "wallsLeft": snapshot.walls_left,
        "last": last and last._asdict(),
        "legal": _legal(snapshot),
    }


def _legal(snapshot: Snapshot) -> dict[str, Any]:
    """The cells to place on; and for each stone's cell, the cells it can end on with the sides
    that are free there."""
    cells: list[int] = []
    plays: dict[int, dict[int, list[int]]] = {}
    for action in sorted(snapshot.legal):
        origin, target, side = _parts(action, snapshot.grid)
        if origin is None:
            cells.append(target)
        else:
            plays.setdefault(origin, {}).setdefault(target, []).append(side)
    return {"cells": cells, "plays": plays}


def _parts(action: int, grid: int) -> tuple[int | None, int, Any]:
    """Origin, target and side of a move; origin and side are None for a placement."""
    cell = placement_of(action, grid=grid)
    if cell is not None:
        return None, cell, None
    play = decode_play(action)
    target = target_of(play, grid=grid)
    assert target is not None, "a legal play ends on the grid"
    return play.cell, target, play.side


def _puzzle(task: PuzzleTask) -> dict[str, Any]:
    """A puzzle; the solution only when it is known."""
    puzzle = task.puzzle

    def text(action: int | None) -> str | None:
        return None if action is None else format_action(action, grid=puzzle.grid)

    view: dict[str, Any] = {name: getattr(task, name) for name in ("key", "mover", "state")}
    view |= {"difficulty": puzzle.difficulty, "tried": [text(action) for action in task.tried]}
    if task.state != OPEN:
        view |= {"solution": text(puzzle.solution), "played": text(puzzle.played)}
        chances = puzzle.win_chance
        view |= {"chance": round(chances.solution, 3), "nextBest": round(chances.next_best, 3)}
    return view


def evaluation_view(report: SearchReport) -> dict[str, Any]:
    """A search of a position that shows what the moves are worth, the moves of the most visits
    first, of equal visits the search's choice."""
    grid, slots, owners = report.state.grid, np.flatnonzero(report.legal), report.owners
    seen = sorted(filter(lambda each: each.visits, report.candidates), key=lambda x: -x.visits)
    ideas = [(each.line, each.win_chance, each.policy, each.visits) for each in seen]
    if not ideas:  # A search without visits, such as the raw policy.
        order = slots[np.argsort(-report.policy[slots], kind="stable")]
        policy = ((int(report.actions[slot]), float(report.policy[slot])) for slot in order)
        ideas = [((action,), report.win_chance, share, 0) for action, share in policy]
    cells = () if owners is None else owners.reshape(-1, owners.shape[-1]).tolist()
    return {
        "simulations": report.simulations,
        "chances": [round(chance, 4) for chance in report.win_chances],
        "owners": [[round(share, 3) for share in shares] for shares in cells] or None,
        "order": "the most visited first" if seen else "the likeliest first",
        "ideas": [
            {
                **dict(zip(("origin", "target", "side"), _parts(line[0], grid), strict=True)),
                "winChance": round(chance, 4),
                "share": round(share, 4),
                "visits": visits,
                "line": [format_action(action, grid=grid) for action in line],
            }
            for line, chance, share, visits in ideas[:MAX_HINTS]
        ],
    }


def check_position(text: str) -> dict[str, Any]:
    """Answer the editor whether a diagram is a position to play from: the position, or under
    `error` what is wrong with the diagram."""
    try:
        snapshot = take_snapshot(diagram.parse(text))
    except ValueError as error:
        return {"type": "checked", "error": str(error)}
    return {"type": "checked", "error": "", "position": position_view(snapshot)}


def welcome(server: GameServer) -> dict[str, Any]:
    """The rules, levels and puzzles to choose from; rules of the server that no preset has come
    first."""
    presets = list(PRESETS.values())
    offered = presets if server.default_rules in presets else [server.default_rules, *presets]
    return {
        "type": "welcome",
        "presets": [_choice(rules, server.machine) for rules in offered],
        "defaultLevel": DEFAULT_LEVEL,
        "colours": COLOURS,
        "puzzles": [
            {"key": key, "difficulty": puzzle.difficulty, "rules": name_of(puzzle.record.rules)}
            for key, puzzle in server.puzzles.items()
        ],
    }


def rules_view(fields: Any, machine: Machine) -> dict[str, Any]:
    """Answer the dialog of a new game whether rules can be played: the rules as in `welcome`, or
    under `error` what is wrong with them."""
    try:
        rules = read_rules(fields)
    except (ValueError, TypeError) as error:
        return {"type": "rules", "error": str(error)}
    return {"type": "rules", "error": "", "choice": _choice(rules, machine)}


def _choice(rules: Rules, machine: Machine) -> dict[str, Any]:
    """Rules to choose, by all their fields too, with the machine that plays them."""
    name = machine.name_for(rules)
    elo = ratings_of(name)
    levels = [level._asdict() | {"rating": elo.get(level.name)} for level in LEVELS.values()]
    shown = {"name": name, "levels": levels, "zero": ZERO}
    return _rules(rules) | {"all": rules.to_dict(), "machine": shown}
