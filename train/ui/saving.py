"""Games as files and back: records with their variations, positions as diagrams."""

import contextlib
import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field

from train.runtime.fields import Real, Whole
from train.ui.game_session import ANALYSE, PLAY, GameSession
from train.ui.game_tree import MAX_NODES, Clocks, ClockSettings, GameTree, Node, path_to
from train.ui.machine import DEFAULT_LEVEL, PERSON, Machine, Seat
from wallgo_jax.cli.sources import read_games_of_text
from wallgo_jax.formats import diagram, records
from wallgo_jax.formats.rules_text import write_rules
from wallgo_jax.game.rules import Rules, named
from wallgo_jax.game.sizes import in_own_grid

MAX_NAME = 200
"""Characters that are kept of a player's name."""
RulesFields = str | dict[str, Any]
"""A preset's name, or the fields of `Rules`."""
Mode = Literal["play", "analyse"]
_DIAGRAM = re.compile(rf"(\s|#.*\n)*({'|'.join(diagram.KEYS)})\s*:")
_Place = Annotated[Whole, Field(strict=True, ge=0)]
_Plies = Annotated[list[tuple[_Place, int]], Field(max_length=MAX_NODES - 1)]
_Name = Annotated[str, AfterValidator(lambda name: name[:MAX_NAME])]
_Seconds = Annotated[Real, Field(ge=0, le=1e6)]


class SessionCopy(BaseModel):
    """A whole game session as JSON: a page keeps it for a server that is started anew. One without
    plies is a new game."""

    rules: RulesFields | None = None  # those of the position, where there is one
    position: str | None = None
    plies: _Plies = []
    """The place of the position before each ply, and its action. A position's place is its number
    among all, parents before their children."""
    current: _Place = 0
    tip: _Place = 0
    mode: Mode = PLAY
    seats: tuple[Seat, ...] | None = None
    """By default a person against the machine, or people in analysis."""
    names: tuple[_Name, ...] | None = None
    clock: ClockSettings | None = None
    left: tuple[_Seconds, ...] | None = None  # seconds of each clock
    forfeit: tuple[int, Annotated[str, Field(max_length=40)]] | None = None
    evaluates: bool = False
    puzzle: dict[str, str] | None = None  # key and state of the puzzle that is set


def read_rules(fields: Any) -> Rules:
    """Read rules that a page sends: a preset's name or the fields of `Rules`.

    Raises:
      ValueError: what is wrong, and what is allowed.
    """
    return Rules.from_dict(fields) if isinstance(fields, dict) else named(fields)


def names_of(session: GameSession) -> tuple[str, ...]:
    """The players' names: those of the game that was loaded, else those of the seats."""
    seats = (seat if seat == PERSON else f"machine ({seat})" for seat in session.seats)
    return session.tree.names or tuple(seats)


def write_copy(session: GameSession) -> dict[str, Any]:
    """The fields of a session's copy."""
    tree, clocks, task = session.tree, session.clocks, session.task
    places = {node: place for place, node in enumerate(tree)}
    return {
        "rules": write_rules(tree.rules),
        "position": None if tree.has_start else diagram.draw(tree.root.state),
        "plies": [[places[n.parent], n.action] for n in tree if n.parent is not None],
        "current": places[tree.current],
        "tip": places[session.tip],
        "mode": session.mode,
        "seats": session.seats,
        "names": tree.names,
        "clock": None if clocks is None else clocks.settings._asdict(),
        "left": None if clocks is None else [clocks.left(p) for p in range(len(session.seats))],
        "forfeit": session.forfeit,
        "evaluates": session.shows_evaluation,
        "puzzle": None if task is None else {"key": task.key, "state": task.state},
    }


def read_copy(fields: Mapping[str, Any], machine: Machine) -> GameSession:
    """Set a session up from the fields of its copy.

    Raises:
      ValueError: what is wrong with them.
    """
    copy = SessionCopy.model_validate(fields)
    if copy.position is None:
        tree = GameTree(read_rules(copy.rules))
    else:
        state = diagram.parse(copy.position)
        tree = GameTree(diagram.rules_of(state), state)
    players, nodes = tree.rules.players, [tree.root]
    for place, action in copy.plies:
        nodes.append(tree.add(_at(nodes, place), action))
    rivals = PERSON if copy.mode == ANALYSE else DEFAULT_LEVEL
    default = (PERSON, *[rivals] * (players - 1))
    for counted in (copy.names, copy.left, copy.seats):
        if counted is not None and len(counted) != players:
            raise ValueError(f"names, left and seats: {players} of each are needed, one a player")
    tree.names = copy.names
    tree.current = _at(nodes, copy.tip)
    clocks = copy.clock and Clocks(
        copy.clock, [*(copy.left or [60 * copy.clock.minutes] * players)]
    )
    seats = default if copy.seats is None else copy.seats
    session = GameSession(tree, seats, machine, clocks=clocks, mode=copy.mode)
    tree.current = _at(nodes, copy.current)
    session.shows_evaluation = copy.evaluates
    if copy.forfeit is not None and copy.forfeit[0] in range(players):
        session.forfeit = copy.forfeit
    return session


def write_game(session: GameSession) -> tuple[str, str]:
    """Write a game down.

    Returns:
      the ending of the file's name, and its text: a record line of the line that leads to the end
      of the game, with the other lines under `tree`; JSON of the copy where the game starts from a
      position that no record can hold.
    """
    tree, copy = session.tree, write_copy(session)
    if not tree.has_start:
        keys = ("rules", "position", "plies", "tip", "names")
        return "json", json.dumps({key: copy[key] for key in keys})
    record = records.Record(
        rules=tree.rules,
        actions=session.tip.position.actions,
        players=names_of(session),
        result=session.tip.snapshot.payoff,
    )
    fields = json.loads(records.to_json(record))
    if len(tree) > len(path_to(session.tip)):
        fields["tree"] = copy["plies"]
    return "jsonl", json.dumps(fields) + "\n"


def read_game(text: str, machine: Machine, rules: Rules | None = None) -> GameSession:
    """Set a session for analysis up from a game: one line of a record file, moves, an HKOI code, a
    diagram, or the text of `write_game`. Moves that name no rules are of these.

    Raises:
      ValueError: what is wrong, where, and what is allowed.
    """
    fields: dict[str, Any] = {}
    if _DIAGRAM.match(text):
        fields = {"position": text}
    elif text.lstrip().startswith("{"):
        with contextlib.suppress(json.JSONDecodeError, RecursionError):
            fields, _ = json.JSONDecoder().raw_decode(text.lstrip())
    if "position" in fields:
        new = {"seats": None, "current": fields.get("tip", 0), "mode": ANALYSE}
        return read_copy(fields | new, machine)
    loaded = next(read_games_of_text(text, name="the game", default_rules=rules))
    copy = {"rules": write_rules(loaded.game.rules), "plies": fields.get("tree") or []}
    session = read_copy(copy | {"names": loaded.players, "mode": ANALYSE}, machine)
    for action in loaded.game.actions:
        own = in_own_grid(action, grid=loaded.game.grid, size=loaded.game.rules.size)
        session.tip = session.tree.play(own)
    return session


def _at(nodes: list[Node], place: int) -> Node:
    if place >= len(nodes):
        raise ValueError(f"plies, current or tip: {place} is not the place of a position before it")
    return nodes[place]
