"""Games as files and back: records with their variations, positions as diagrams."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from train.ui.games.clocks import Clocks, read_clock
from train.ui.games.game_tree import MAX_NODES, GameTree, actions_of, path_to
from train.ui.games.seats import PERSON, Seat, read_seats
from train.ui.games.table import ANALYSE, PLAY, Table
from train.ui.games.thinking import Thinker
from wallgo_jax.cli.sources import read_games_of_text
from wallgo_jax.formats import diagram, records
from wallgo_jax.game.rules import PRESETS, Rules, name_of, named
from wallgo_jax.game.sizes import in_own_grid

MAX_NAME = 200
"""Characters that are kept of a player's name."""
_DIAGRAM = re.compile(rf"(\s|#.*\n)*({'|'.join(diagram.KEYS)})\s*:")


def read_rules(fields: object) -> Rules:
    """Read rules that a page sends: a preset's name or the fields of `Rules`.

    Raises:
      ValueError: what is wrong, and what is allowed.
    """
    if isinstance(fields, dict):
        return Rules.from_dict(fields)
    return named(fields)  # type: ignore[arg-type]  # It refuses what is no name.


def names_of(table: Table) -> tuple[str, ...]:
    """The players' names: those of the game that was loaded, else what the seats say."""
    return table.tree.names or tuple(seat.name for seat in table.seats)


def rules_fields(rules: Rules) -> str | dict[str, Any]:
    """Rules as `read_rules` takes them."""
    name = name_of(rules)
    return name if name in PRESETS else rules.to_dict()


def write_copy(table: Table) -> dict[str, Any]:
    """Everything that `read_copy` needs to set the table up again: a page keeps it for the case
    that the server is started anew."""
    tree, clocks = table.tree, table.clocks
    places = {node: place for place, node in enumerate(tree)}
    return {
        "rules": rules_fields(tree.rules),
        "position": None if tree.has_start else diagram.draw(tree.root.state),
        "plies": [[places[n.parent], n.action] for n in tree if n.parent is not None],
        "current": places[tree.current],
        "tip": places[table.tip],
        "mode": table.mode,
        "seats": [seat.to_dict() for seat in table.seats],
        "names": tree.names,
        "clock": None if clocks is None else clocks.settings._asdict(),
        "left": None if clocks is None else [clocks.left(p) for p in range(len(table.seats))],
        "forfeit": table.forfeit,
        "evaluates": table.shows_evaluation,
        "puzzle": None
        if table.task is None
        else {"key": table.task.key, "state": table.task.state},
    }


def read_copy(copy: Mapping[str, Any], thinker: Thinker) -> Table:
    """Set a table up from what `write_copy` returned.

    Raises:
      ValueError: what is wrong with it.
    """
    rules = read_rules(copy.get("rules"))
    position = copy.get("position")
    tree = GameTree(rules, None if position is None else diagram.parse(str(position)))
    nodes = _grow(tree, copy.get("plies"))
    tree.current = _at(nodes, copy.get("tip"), "tip")
    clocks = _read_clocks(copy, rules.players)
    seats = read_seats(copy.get("seats"), rules.players)
    tree.names = _read_names(copy.get("names"), rules.players)
    mode = ANALYSE if copy.get("mode") == ANALYSE else PLAY
    table = Table(tree, seats, thinker, clocks=clocks, mode=mode)
    tree.current = _at(nodes, copy.get("current"), "current")
    table.shows_evaluation = copy.get("evaluates") is True
    forfeit = copy.get("forfeit")
    if isinstance(forfeit, Sequence) and len(forfeit) == 2 and forfeit[0] in range(rules.players):
        table.forfeit = (int(forfeit[0]), str(forfeit[1])[:40])
    return table


def _read_names(names: object, players: int) -> tuple[str, ...] | None:
    if not isinstance(names, Sequence) or isinstance(names, str) or len(names) != players:
        return None
    return tuple(str(name)[:MAX_NAME] for name in names)


def _grow(tree: GameTree, plies: object) -> list[Any]:
    """Play plies, each a pair of the place of the position before it and an action."""
    if not isinstance(plies, list) or len(plies) >= MAX_NODES:
        raise ValueError(f"plies: not a list of less than {MAX_NODES} pairs")
    nodes = [tree.root]
    for entry in plies:
        if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[1], int):
            raise ValueError(f"plies: {entry!r} is not a pair of a place and an action")
        tree.current = _at(nodes, entry[0], "plies")
        nodes.append(tree.play(entry[1]))
    return nodes


def _at(nodes: list[Any], place: object, key: str) -> Any:
    if isinstance(place, bool) or not isinstance(place, int) or not 0 <= place < len(nodes):
        raise ValueError(f"{key}: {place!r} is not the place of a position before it")
    return nodes[place]


def _read_clocks(copy: Mapping[str, Any], players: int) -> Clocks | None:
    settings = read_clock(copy.get("clock"))
    if settings is None:
        return None
    clocks = Clocks(settings, players)
    left = copy.get("left")
    if isinstance(left, list) and len(left) == players:
        for player, seconds in enumerate(left):
            if isinstance(seconds, int | float) and 0 <= seconds <= 1e6:
                clocks.set(player, float(seconds))
    return clocks


def write_game(table: Table) -> tuple[str, str]:
    """Write a game down.

    Returns:
      the ending of the file's name, and its text: a record line of the line that leads to the end
      of the game, with the other lines under `tree`; JSON of its own where the game starts from a
      position that no record can hold.
    """
    tree = table.tree
    if tree.has_start:
        line = path_to(table.tip)
        record = records.Record(
            rules=tree.rules,
            actions=actions_of(line),
            players=names_of(table),
            result=table.tip.payoff,
        )
        fields = json.loads(records.to_json(record))
        if len(tree) > len(line):
            fields["tree"] = write_copy(table)["plies"]
        return "jsonl", json.dumps(fields) + "\n"
    copy = write_copy(table)
    return "json", json.dumps(
        {key: copy[key] for key in ("rules", "position", "plies", "tip", "names")}
    )


def read_game(text: str, thinker: Thinker, rules: Rules | None = None) -> Table:
    """Set a table for analysis up from a game: one line of a record file, moves, an HKOI code, a
    diagram, or what `write_game` wrote. Moves that name no rules are of these.

    Raises:
      ValueError: what is wrong, where, and what is allowed.
    """
    if _DIAGRAM.match(text):
        state = diagram.parse(text)
        tree = GameTree(diagram.rules_of(state), state)
        return _analysis(tree, thinker)
    fields = _first_object(text)
    if "position" in fields:
        players = read_rules(fields.get("rules")).players
        seats = [{"kind": PERSON}] * players
        copy = fields | {"seats": seats, "current": fields.get("tip"), "mode": ANALYSE}
        return read_copy(copy, thinker)
    played = next(read_games_of_text(text, name="the game", default_rules=rules))
    tree = GameTree(played.game.rules)
    if "tree" in fields:
        _grow(tree, fields["tree"])
        tree.current = tree.root
    for action in played.game.actions:
        tree.play(in_own_grid(action, grid=played.game.grid, size=tree.rules.size))
    tree.names = _read_names(played.players, tree.rules.players)
    return _analysis(tree, thinker)


def _analysis(tree: GameTree, thinker: Thinker) -> Table:
    seats = [Seat(PERSON)] * tree.rules.players
    return Table(tree, seats, thinker, mode=ANALYSE)


def _first_object(text: str) -> dict[str, Any]:
    """The JSON object that a text begins with, or an empty one."""
    if not text.lstrip().startswith("{"):
        return {}
    try:
        found, _ = json.JSONDecoder().raw_decode(text.lstrip())
    except (json.JSONDecodeError, RecursionError):
        return {}
    return found
