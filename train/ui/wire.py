"""What the page is told: a table as plain JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from train.ui.games.game_tree import Node
from train.ui.games.levels import DEFAULT_LEVEL, HINT_SIMULATIONS, LEVELS, ZERO, opponent_for
from train.ui.games.saving import read_rules, rules_fields, write_copy
from train.ui.games.table import PLAY, Table
from train.ui.games.thoughts import Thought
from wallgo_jax.game.rules import PRESETS, Rules, name_of
from wallgo_jax.notation import COLOURS, decode_play, format_action, placement_of, target_of
from wallgo_jax.view import captions
from wallgo_jax.view.snapshot import Snapshot

MAX_HINTS = 5


def table_view(table: Table, name: str) -> dict[str, Any]:
    """Everything that a page shows of a table.

    Args:
      table: the table.
      name: its name in messages.
    """
    node, tree = table.tree.current, table.tree
    return {
        "type": "table",
        "table": name,
        "rules": _rules(tree.rules),
        "mode": table.mode,
        "current": node.number,
        "tip": table.tip.number,
        "nodes": [_node(each) for each in tree],
        "children": {
            each.number: [child.number for child in each.children] for each in tree if each.children
        },
        "position": position_view(node.snapshot),
        "seats": [seat.to_dict() for seat in table.seats],
        "names": table.tree.names,
        "mayPlay": table.may_play,
        "isOver": node.snapshot.is_over or (node is table.tip and table.is_over),
        "isFinished": table.is_over,
        "status": status(table),
        "thinking": table.is_thinking,
        "preparing": table.is_preparing,
        "complaint": table.complaint,
        "clocks": _clocks(table),
        "evaluates": table.shows_evaluation,
        "thought": None if node.thought is None else _thought(node, node.thought),
        "hint": table.hint == node.number,
        "hintSimulations": HINT_SIMULATIONS,
        "result": _result(node),
        "puzzle": None if table.task is None else table.task.to_dict(),
        "review": None if table.review is None else table.review.to_dict(),
        "copy": write_copy(table),
    }


def status(table: Table) -> str:
    """Say who moves, or how the game ended."""
    node = table.tree.current
    if table.forfeit is not None and node is table.tip:
        player, reason = table.forfeit
        return f"{COLOURS[player]} {reason}"
    snapshot = node.snapshot
    if table.is_posed and node is table.tip:
        return f"Puzzle: {COLOURS[snapshot.player]} to move"
    if node.payoff is not None:
        return f"Game over: {captions.result_text(node.payoff)}"
    told = captions.status(snapshot)
    if table.mode == PLAY and node is table.tip and table.seats[snapshot.player].is_machine:
        return f"{COLOURS[snapshot.player]} (machine) is thinking"
    return told[:1].upper() + told[1:]


def _rules(rules: Rules) -> dict[str, Any]:
    return {
        "name": name_of(rules),
        "fields": rules_fields(rules),
        "size": rules.size,
        "players": rules.players,
        "stones": rules.stones,
        "text": captions.rules_text(rules),
    }


def _node(node: Node) -> list[Any]:
    """[number, parent's number, move, mover, first player's chance to win or None, mark]."""
    parent = None if node.parent is None else node.parent.number
    chance = None if node.thought is None else round(node.thought.chances[0], 3)
    return [node.number, parent, node.text, node.mover, chance, node.mark]


def position_view(snapshot: Snapshot) -> dict[str, Any]:
    """A position, with the plies that the referee allows in it."""
    last = snapshot.last
    return {
        "size": snapshot.size,
        "ply": snapshot.ply,
        "player": snapshot.player,
        "inSetup": snapshot.in_setup,
        "isOver": snapshot.is_over,
        "stones": snapshot.stones,
        "walls": snapshot.walls,
        "owner": snapshot.owner,
        "territory": snapshot.territory,
        "wallsLeft": snapshot.walls_left,
        "last": None if last is None else last._asdict(),
        "legal": _legal(snapshot),
    }


def _legal(snapshot: Snapshot) -> dict[str, Any]:
    """The cells to place on; and for each stone's cell, the cells it can end on with the sides
    that are free there."""
    cells: list[int] = []
    plays: dict[int, dict[int, list[int]]] = {}
    for action in sorted(snapshot.legal):
        cell = placement_of(action, grid=snapshot.grid)
        if cell is not None:
            cells.append(cell)
            continue
        play = decode_play(action)
        target = target_of(play, grid=snapshot.grid)
        assert target is not None, "a legal play ends on the grid"
        plays.setdefault(play.cell, {}).setdefault(target, []).append(play.side)
    return {"cells": cells, "plays": plays}


def _result(node: Node) -> list[float] | None:
    """Each player's share of the win once the game is over by the rules, else None."""
    if node.payoff is None:
        return None
    winners = [payoff > 0 for payoff in node.payoff]
    shares = winners if any(winners) else [True] * len(winners)
    return [share / sum(shares) for share in shares]


def _clocks(table: Table) -> dict[str, Any] | None:
    clocks = table.clocks
    if clocks is None:
        return None
    left = [round(clocks.left(player), 2) for player in range(len(table.seats))]
    return {"left": left, "running": clocks.running, **clocks.settings._asdict()}


def _thought(node: Node, thought: Thought) -> dict[str, Any]:
    grid = node.snapshot.grid
    return {
        "simulations": thought.simulations,
        "chances": [round(chance, 4) for chance in thought.chances],
        "owners": thought.owners
        and [[round(share, 3) for share in shares] for shares in thought.owners],
        "ideas": [
            {
                **_parts(idea.action, grid),
                "winChance": round(idea.win_chance, 4),
                "share": round(idea.share, 4),
                "line": [format_action(action, grid=grid) for action in idea.line],
            }
            for idea in thought.ideas[:MAX_HINTS]
        ],
    }


def _parts(action: int, grid: int) -> dict[str, Any]:
    """A move as text and as its cells: origin and side are None for a placement."""
    text = format_action(action, grid=grid)
    cell = placement_of(action, grid=grid)
    if cell is not None:
        return {"move": text, "origin": None, "target": cell, "side": None}
    play = decode_play(action)
    target = target_of(play, grid=grid)
    return {"move": text, "origin": play.cell, "target": target, "side": play.side}


def welcome(
    own_rules: Rules, puzzles: Sequence[Mapping[str, Any]] = (), *, player: str = ""
) -> dict[str, Any]:
    """What a page is told first: the rules, levels and puzzles to choose from.

    Args:
      own_rules: those that the server was started with, offered first where no preset has them.
      puzzles: as `PuzzleBook.listing` returns them.
      player: the machine that the server was started with, or empty for the rules' own.
    """
    presets = list(PRESETS.values())
    offered = presets if own_rules in presets else [own_rules, *presets]
    return {
        "type": "welcome",
        "presets": [_choice(rules, player) for rules in offered],
        "defaultLevel": DEFAULT_LEVEL,
        "colours": COLOURS,
        "puzzles": list(puzzles),
    }


def rules_view(fields: object, *, player: str = "") -> dict[str, Any]:
    """Tell the dialog of a new game whether rules can be played.

    Args:
      fields: of `Rules`, as the page has them.
      player: as in `welcome`.

    Returns:
      the rules as in `welcome`, or under `error` what is wrong with them.
    """
    try:
        rules = read_rules(fields)
    except (ValueError, TypeError) as error:
        return {"type": "rules", "error": str(error)}
    return {"type": "rules", "error": "", "choice": _choice(rules, player)}


def _choice(rules: Rules, player: str) -> dict[str, Any]:
    """Rules to choose, by all their fields too, with the machine that plays them."""
    return _rules(rules) | {"all": rules.to_dict(), "machine": _machine(rules, player)}


def _machine(rules: Rules, player: str) -> dict[str, Any]:
    """The machine that plays some rules, its levels, and their Elo where it was measured."""
    own = opponent_for(rules)
    ratings = own.ratings if player in ("", own.name) else {}
    levels = []
    for level in LEVELS.values():
        rating = ratings.get(level.name)
        measured = None if rating is None else rating._asdict()
        levels.append(level._asdict() | {"rating": measured})
    return {"name": player or own.name, "levels": levels, "zero": ZERO}
