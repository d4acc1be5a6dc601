"""Puzzles at a table: wrong moves are noted, the right one is played, the solution can be seen."""

import asyncio
import json

import pytest

from tests.support.play import PlainThinker, plain_puzzle
from train.ui import hall as hall_lib
from train.ui import wire
from train.ui.games.puzzle_task import OPEN, SHOWN, SOLVED
from train.ui.hall import Hall
from train.ui.puzzles import PuzzleBook
from wallgo_jax.game.rules import PRESETS

MOVES = ("A1", "A7", "G1", "G7")
EASY = plain_puzzle(MOVES, "B6->B5:up", "G1->G1:down", difficulty=1)
HARD = plain_puzzle(("A1", "A7", "G1", "F1"), "A1->A2:right", "G1->G2:down", difficulty=4)
RULES = PRESETS["wallzero-4stone"]


def at_a_puzzle(test):
    """Run a test with the hall and a table of the easy puzzle."""

    async def body():
        hall = Hall(PlainThinker(), RULES, puzzles=PuzzleBook([HARD, EASY]))
        key = hall.puzzles.listing()[0]["key"]
        name, table = await hall.pose({"type": "puzzle", "puzzle": key})
        test(hall, table)
        hall.close()
        return name

    asyncio.run(body())


def played(table):
    return [node.text for node in table.tree][1:]


def send(table, kind, **fields):
    hall_lib.act(table, {"type": kind, **fields})


def test_the_easiest_come_first_and_keys_do_not_depend_on_the_file():
    both, one = PuzzleBook([HARD, EASY]).listing(), PuzzleBook([EASY]).listing()
    assert [puzzle["difficulty"] for puzzle in both] == [1, 4]
    assert both[0] == one[0]
    assert both[0]["rules"] == "wallzero-4stone"
    with pytest.raises(ValueError, match="puzzle: 'x' is not one of the 1 puzzles here"):
        PuzzleBook([EASY]).table("x", PlainThinker())


def test_a_wrong_move_is_noted_and_not_played():
    def test(hall, table):
        here = table.tree.current.number
        send(table, "play", node=here, move="B6->B5:left")
        send(table, "play", node=here, move="B6->B4:left")
        send(table, "play", node=here, move="B6->B5:left")
        view = wire.table_view(table, "name")
        assert view["puzzle"]["tried"] == ["B6->B4:left", "B6->B5:left"]
        assert view["puzzle"]["state"] == OPEN
        assert "solution" not in view["puzzle"]
        assert "B6->B5:up" not in json.dumps({k: view[k] for k in ("puzzle", "nodes", "copy")})
        assert played(table) == list(MOVES)
        with pytest.raises(ValueError, match="two steps"):
            send(table, "play", node=here, move="B6->G1:left")

    at_a_puzzle(test)


def test_the_right_move_is_played_with_what_follows():
    def test(hall, table):
        send(table, "play", node=table.tree.current.number, move="B6->B5:up")
        told = wire.table_view(table, "name")["puzzle"]
        assert (told["state"], told["solution"], told["chance"]) == (SOLVED, "B6->B5:up", 0.93)
        assert played(table) == [*MOVES, "B6->B5:up", "G1->G1:down"]
        assert table.tree.current.text == "B6->B5:up"
        assert (table.mode, table.may_play) == ("analyse", True)
        with pytest.raises(ValueError, match="no puzzle to solve"):
            table.show_solution()

    at_a_puzzle(test)


def test_nothing_gives_the_solution_away_until_it_is_asked_for():
    def test(hall, table):
        for kind in ("hint", "takeback", "mode", "seats", "resign"):
            with pytest.raises(ValueError, match="this is a puzzle"):
                send(table, kind)
        send(table, "show", evaluation=True)
        assert table._next_search() is None
        send(table, "solution")
        assert table.task.state == SHOWN
        assert table.tree.current.text == "B6->B5:up"
        assert table._next_search() is not None

    at_a_puzzle(test)


@pytest.mark.parametrize("is_solved", [False, True])
def test_a_copy_brings_the_puzzle_back(is_solved):
    def test(hall, table):
        if is_solved:
            send(table, "solution")
        copy = json.loads(json.dumps(wire.table_view(table, "name")["copy"]))
        again = hall._restore(copy)
        assert played(again) == played(table)
        assert again.is_posed == (not is_solved)

    at_a_puzzle(test)
