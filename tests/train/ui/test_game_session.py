"""A game: whose turn it is, takeback, analysis, clocks, and the machine's moves."""

import asyncio
from types import SimpleNamespace

import pytest

from tests.support.play import PlainMachine
from train.ui import game_session, game_tree, wire
from train.ui.game_session import ANALYSE, PLAY, GameSession
from train.ui.game_tree import Clocks, ClockSettings, GameTree, path_to
from wallgo_jax.game.rules import PRESETS

RULES = PRESETS["wallzero-4stone"]
PERSON, MACHINE = "person", "expert"


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(game_session, "PACE_SECONDS", 0.0)


def texts(session):
    return [node.text for node in path_to(session.tip)[1:]]


async def until(session, is_reached):
    """Wait for the machine, a second at most."""
    for _ in range(1000):
        if is_reached():
            return
        await asyncio.sleep(0.001)
    raise AssertionError(f"the session stands still: {texts(session)}")


def in_a_session(*seats, mode=PLAY):
    """Runs a test as a coroutine of a session that somebody watches."""

    def decorate(test):
        async def run():
            session = GameSession(GameTree(RULES), seats, PlainMachine(), mode=mode)
            session.listen(lambda: None)
            await test(session)
            session.close()

        run.__name__ = test.__name__
        return run

    return decorate


@in_a_session(PERSON, MACHINE)
async def test_the_machine_answers_and_takeback_returns_to_the_persons_choice(session):
    session.play("D4")
    assert not session.may_play
    with pytest.raises(ValueError, match="Blue is played by the machine"):
        session.play("D5")
    # Blue places twice running; the plain machine takes the first free cells.
    await until(session, lambda: session.may_play)
    assert texts(session) == ["D4", "A1", "B1"]
    session.take_back()
    assert texts(session) == []
    assert session.may_play
    with pytest.raises(ValueError, match="no move of yours to take back"):
        session.take_back()


@in_a_session(PERSON, PERSON)
async def test_earlier_positions_are_for_looking(session):
    session.play("C3")
    session.go(0)
    assert not session.may_play
    with pytest.raises(ValueError, match="this is an earlier position"):
        session.play("D3")
    session.set_mode(ANALYSE)
    session.play("E3")
    assert len(session.tree.root.children) == 2
    session.set_mode(PLAY)
    assert texts(session) == ["E3"]
    assert session.tree.root.children[0].text == "E3"


@in_a_session(PERSON, MACHINE, mode=ANALYSE)
async def test_machine_rests_in_analysis_until_play_goes_on(session):
    session.play("C3")
    await asyncio.sleep(0.01)
    assert texts(session) == []
    assert session.tree.current.text == "C3"
    session.set_mode(PLAY)
    await until(session, lambda: session.may_play)
    assert texts(session)[0] == "C3"


@in_a_session(PERSON, PERSON)
async def test_a_resigned_game_is_over_and_names_its_winner(session):
    session.play("C3")
    assert wire.ending(session) is None
    session.resign()
    end = {"title": "Red won: Blue resigned", "cells": (0, 0), "ratio": None, "plies": 1}
    assert wire.ending(session) == end
    assert session.forfeit == (1, "resigned") and not session.may_play
    with pytest.raises(ValueError, match="no game that a person could resign"):
        session.resign()
    session.take_back()
    assert session.forfeit is None


ENDS = [
    ((3, 1), "Red won", 3.0),
    ((2, 6, 1), "Blue won", 4.0),
    ((9, 0), "Red won", None),
    ((4, 4), "A draw", None),
]


@pytest.mark.parametrize(("cells", "title", "ratio"), ENDS)
def test_a_finished_game_says_cells_and_their_ratio(cells, title, ratio):
    payoff = tuple(float(each == max(cells)) for each in cells)
    payoff = payoff if payoff.count(1.0) == 1 else (0.0,) * len(cells)
    snapshot = SimpleNamespace(territory=cells, payoff=payoff, players=len(cells), ply=9)
    tip = SimpleNamespace(snapshot=snapshot)
    session = SimpleNamespace(tip=tip, forfeit=None, is_over=True, task=None)
    end = wire.ending(session)
    assert end == {"title": title, "cells": cells, "ratio": ratio, "plies": 9}


@in_a_session(PERSON, PERSON)
async def test_hint_searches_deeper_than_a_glance_and_says_so_while_somebody_waits(session):
    told = []
    session.listen(lambda: told.append(wire.activity(session)))
    session.show_evaluation(True)
    await until(session, lambda: session.tree.current.report is not None)
    assert not any(told)
    session.ask_hint()
    await until(session, lambda: session.tree.current.report.simulations == 256)
    assert session.machine.asked == [(0, 64), (0, 256)]
    await until(session, lambda: session.search is None)
    assert {each["text"] for each in told if each} == {"Searches with 256 simulations"}


@in_a_session(PERSON, PERSON)
async def test_a_hint_goes_with_its_position_and_does_not_come_back(session):
    session.ask_hint()
    await until(session, lambda: session.tree.current.report is not None)
    assert wire.game_view(session, "game")["hint"]
    session.play("D4")
    session.take_back()
    assert session.tree.current is session.tree.root
    assert not wire.game_view(session, "game")["hint"]


class FailingMachine(PlainMachine):
    """Raises an error in place of each answer."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    async def search(self, rules, node, level):
        await super().search(rules, node, level)
        raise self.error


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RuntimeError("out of memory"), "the machine failed; the console says why"),
        (ValueError("no room:\n a tree is full"), "no room: a tree is full"),
    ],
)
async def test_a_machine_that_fails_is_not_asked_again_until_something_changes(error, told):
    session = GameSession(GameTree(RULES), (MACHINE, PERSON), FailingMachine(error))
    session.listen(lambda: None)
    await until(session, lambda: session.error)
    await asyncio.sleep(0.02)
    assert (session.error, len(session.machine.asked)) == (told, 1)
    assert session.search is None
    session.set_mode(ANALYSE)
    assert session.error == ""
    session.ask_hint()
    await until(session, lambda: session.error)
    assert len(session.machine.asked) == 2
    session.close()


async def test_a_machine_without_room_for_its_move_leaves_the_view_alone(monkeypatch):
    monkeypatch.setattr(game_tree, "MAX_NODES", 2)
    session = GameSession(GameTree(RULES), (PERSON, MACHINE), PlainMachine())
    session.play("D4")
    session.go(0)
    session.listen(lambda: None)
    await until(session, lambda: session.error)
    assert "already holds 2 positions" in session.error
    assert session.tree.current is session.tree.root and texts(session) == ["D4"]
    session.close()


async def test_nothing_is_taken_back_where_no_time_is_left():
    now = [0.0]
    clocks = Clocks(ClockSettings(0.1, 1.0), [6.0] * 2, now=lambda: now[0])
    session = GameSession(GameTree(RULES), (PERSON, PERSON), PlainMachine(), clocks=clocks)
    session.play("C3")
    session.play("D3")
    assert clocks.running == 1 and clocks.left(1) == 7, "with the increment of a move"
    now[0] += 10
    session._check_time()
    assert session.forfeit == (1, "ran out of time")
    assert not session.may_play and clocks.running is None
    with pytest.raises(ValueError, match="time is over: analyse, or start a new game"):
        session.take_back()
    assert texts(session) == ["C3", "D3"]
    session.set_mode(ANALYSE)
    session.go(session.tip.parent.number)
    session.play("E5")
    session.take_back()
    with pytest.raises(ValueError, match="time is over"):
        session.set_mode(PLAY)
    session.go(session.tip.number)
    session.set_mode(PLAY)
    assert session.forfeit == (1, "ran out of time")
    session.close()


@in_a_session(PERSON, PERSON)
async def test_variations_taken_back_leave_the_game_as_it_ended(session):
    session.play("C3")
    session.play("D3")
    session.resign()
    session.set_mode(ANALYSE)
    session.go(session.tip.parent.number)
    session.play("E5")
    session.take_back()
    assert session.forfeit == (1, "resigned") and texts(session) == ["C3", "D3"]
    session.go(session.tip.number)
    session.take_back()
    assert session.forfeit is None and texts(session) == ["C3"]
    session.go(0)
    with pytest.raises(ValueError, match="no move of yours to take back"):
        session.take_back()
