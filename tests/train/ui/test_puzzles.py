"""Puzzles at a board: wrong moves are noted, the right one is played, the solution can be seen."""

import asyncio
import json

import pytest

from tests.support.play import PlainMachine, plain_puzzle
from train.ui import wire
from train.ui.connection import Connection
from train.ui.game_server import GameServer, Message, puzzles_by_key
from train.ui.game_session import OPEN, SHOWN, SOLVED
from wallgo_jax.game.rules import PRESETS

MOVES = ("A1", "A7", "G1", "G7")
EASY = plain_puzzle(MOVES, "B6->B5:up", "G1->G1:down", difficulty=1)
HARD = plain_puzzle(("A1", "A7", "G1", "F1"), "A1->A2:right", "G1->G2:down", difficulty=4)
RULES = PRESETS["wallzero-4stone"]


async def open_puzzle():
    """A connection to the easy puzzle, and its game session."""
    server = GameServer(PlainMachine(), RULES, puzzles=[HARD, EASY])
    connection = Connection(server, lambda message: asyncio.sleep(0))
    await send(connection, "puzzle", puzzle=wire.welcome(server)["puzzles"][0]["key"])
    return connection, connection.session


def played(session):
    return [node.text for node in session.tree][1:]


def send(connection, kind, **fields):
    return connection.do(Message(type=kind, **fields))


def test_the_easiest_come_first_and_keys_do_not_depend_on_the_file():
    both, one = puzzles_by_key([HARD, EASY]), puzzles_by_key([EASY])
    assert [puzzle.difficulty for puzzle in both.values()] == [1, 4]
    assert next(iter(both)) == next(iter(one))


async def test_a_wrong_move_is_noted_and_not_played():
    connection, session = await open_puzzle()
    here = session.tree.current.number
    await send(connection, "play", node=here, move="B6->B5:left")
    await send(connection, "play", node=here, move="B6->B4:left")
    await send(connection, "play", node=here, move="B6->B5:left")
    view = wire.game_view(session, "name")
    assert view["puzzle"]["tried"] == ["B6->B4:left", "B6->B5:left"]
    assert view["puzzle"]["state"] == OPEN
    assert "solution" not in view["puzzle"]
    assert "B6->B5:up" not in json.dumps({k: view[k] for k in ("puzzle", "nodes", "copy")})
    assert played(session) == list(MOVES)
    with pytest.raises(ValueError, match="two steps"):
        await send(connection, "play", node=here, move="B6->G1:left")


async def test_the_right_move_is_played_with_what_follows():
    connection, session = await open_puzzle()
    here = session.tree.current.number
    await send(connection, "play", node=here, move="B6->B5:up")
    view = wire.game_view(session, "name")["puzzle"]
    assert (view["state"], view["solution"], view["chance"]) == (SOLVED, "B6->B5:up", 0.93)
    assert played(session) == [*MOVES, "B6->B5:up", "G1->G1:down"]
    assert session.tree.current.text == "B6->B5:up"
    assert (session.mode, session.may_play) == ("analyse", True)
    with pytest.raises(ValueError, match="no puzzle to solve"):
        session.show_solution()


async def test_nothing_gives_the_solution_away_until_it_is_asked_for():
    connection, session = await open_puzzle()
    for kind in ("hint", "takeback", "mode", "resign", "review"):
        with pytest.raises(ValueError, match="this is a puzzle"):
            await send(connection, kind)
    await send(connection, "show", evaluation=True)
    assert session._next_search() is None
    await send(connection, "solution")
    assert session.task.state == SHOWN
    assert session.tree.current.text == "B6->B5:up"
    assert session._next_search() is not None


@pytest.mark.parametrize("is_solved", [False, True])
async def test_a_copy_brings_the_puzzle_back(is_solved):
    connection, session = await open_puzzle()
    if is_solved:
        await send(connection, "solution")
    copy = json.loads(json.dumps(wire.game_view(session, "name")["copy"]))
    await send(connection, "open", copy=copy)
    assert connection.session is not session
    assert played(connection.session) == played(session)
    assert connection.session.is_posed == (not is_solved)
