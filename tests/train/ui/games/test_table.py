"""A table: whose turn it is, takeback, analysis, clocks, and the machine's moves."""

import asyncio

import pytest

from tests.support.play import PlainThinker
from train.ui.games import game_tree
from train.ui.games import table as table_lib
from train.ui.games.clocks import Clocks, ClockSettings
from train.ui.games.game_tree import GameTree
from train.ui.games.seats import Seat
from train.ui.games.table import ANALYSE, PLAY, Table
from wallgo_jax.game.rules import PRESETS

RULES = PRESETS["wallzero-4stone"]
PERSON, MACHINE = Seat("person"), Seat("machine", "expert")


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(table_lib, "PACE_SECONDS", 0.0)


def texts(table):
    node, found = table.tip, []
    while node.parent is not None:
        found.append(node.text)
        node = node.parent
    return found[::-1]


async def until(table, is_reached):
    """Wait for the machine, a second at most."""
    for _ in range(1000):
        if is_reached():
            return
        await asyncio.sleep(0.001)
    raise AssertionError(f"the table stands still: {texts(table)}")


def on_a_table(*seats, clocks=None, mode=PLAY):
    """Runs a test as a coroutine of a table that somebody watches."""

    def decorate(test):
        def run():
            async def body():
                table = Table(GameTree(RULES), seats, PlainThinker(), clocks=clocks, mode=mode)
                table.listen(lambda: None)
                await test(table)
                table.close()

            asyncio.run(body())

        run.__name__ = test.__name__
        return run

    return decorate


@on_a_table(PERSON, MACHINE)
async def test_machine_answers(table):
    table.play("D4")
    assert not table.may_play
    with pytest.raises(ValueError, match="Blue is played by the machine"):
        table.play("D5")
    # Blue places twice running; the plain thinker takes the first free cells.
    await until(table, lambda: table.may_play)
    assert texts(table) == ["D4", "A1", "B1"]


@on_a_table(PERSON, MACHINE)
async def test_takeback_returns_to_the_persons_choice(table):
    table.play("D4")
    await until(table, lambda: table.may_play)
    table.take_back()
    assert texts(table) == []
    assert table.may_play
    with pytest.raises(ValueError, match="no move of yours to take back"):
        table.take_back()


@on_a_table(PERSON, PERSON)
async def test_takeback_between_people_is_one_ply(table):
    for move in ("C3", "D3"):
        table.play(move)
    table.take_back()
    assert texts(table) == ["C3"]


@on_a_table(PERSON, PERSON)
async def test_earlier_positions_are_for_looking(table):
    table.play("C3")
    table.go(0)
    assert not table.may_play
    with pytest.raises(ValueError, match="this is an earlier position"):
        table.play("D3")
    table.set_mode(ANALYSE)
    table.play("E3")
    assert len(table.tree.root.children) == 2
    table.set_mode(PLAY)
    assert texts(table) == ["E3"]
    assert table.tree.root.children[0].text == "E3"


@on_a_table(PERSON, MACHINE, mode=ANALYSE)
async def test_machine_rests_in_analysis_until_play_goes_on(table):
    table.play("C3")
    await asyncio.sleep(0.01)
    assert texts(table) == []
    assert table.tree.current.text == "C3"
    table.set_mode(PLAY)
    await until(table, lambda: table.may_play)
    assert texts(table)[0] == "C3"


@on_a_table(PERSON, PERSON)
async def test_resigned_games_are_over(table):
    table.play("C3")
    table.resign()
    assert table.forfeit == (1, "resigned")
    assert not table.may_play
    with pytest.raises(ValueError, match="no game that a person could resign"):
        table.resign()
    table.take_back()
    assert table.forfeit is None


@on_a_table(PERSON, PERSON)
async def test_hint_searches_deeper_than_a_glance(table):
    table.show_evaluation(True)
    await until(table, lambda: table.tree.current.thought is not None)
    table.ask_hint()
    await until(table, lambda: table.tree.current.thought.simulations == 256)
    assert table._thinker.asked == [(0, 64), (0, 256)]


class FailingThinker(PlainThinker):
    """Raises an error in place of each answer."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    async def think(self, rules, node, simulations, *, is_move):
        await super().think(rules, node, simulations, is_move=is_move)
        raise self.error


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RuntimeError("out of memory"), "the machine failed; the console says why"),
        (ValueError("no room:\n a tree is full"), "no room: a tree is full"),
    ],
)
def test_a_machine_that_fails_is_not_asked_again_until_something_changes(error, told):
    async def body():
        table = Table(GameTree(RULES), (MACHINE, PERSON), FailingThinker(error))
        table.listen(lambda: None)
        await until(table, lambda: table.complaint)
        await asyncio.sleep(0.02)
        assert (table.complaint, len(table._thinker.asked)) == (told, 1)
        assert not table.is_thinking
        table.set_seats((PERSON, PERSON))
        assert table.complaint == ""
        table.ask_hint()
        await until(table, lambda: table.complaint)
        assert len(table._thinker.asked) == 2
        table.close()

    asyncio.run(body())


def test_a_machine_without_room_for_its_move_leaves_the_view_alone(monkeypatch):
    monkeypatch.setattr(game_tree, "MAX_NODES", 2)

    async def body():
        table = Table(GameTree(RULES), (PERSON, MACHINE), PlainThinker())
        table.play("D4")
        table.go(0)
        table.listen(lambda: None)
        await until(table, lambda: table.complaint)
        assert "already holds 2 positions" in table.complaint
        assert table.tree.current is table.tree.root and texts(table) == ["D4"]
        table.close()

    asyncio.run(body())


def out_of_time(test):
    """Run a test with a table on which Blue has lost on time after two moves."""
    now = [0.0]
    clocks = Clocks(ClockSettings(0.1, 0.0), 2, now=lambda: now[0])

    async def body():
        table = Table(GameTree(RULES), (PERSON, PERSON), PlainThinker(), clocks=clocks)
        table.play("C3")
        table.play("D3")
        assert clocks.running == 1
        now[0] += 10
        table._check_time()
        test(table)
        table.close()

    asyncio.run(body())


def test_time_runs_out():
    def test(table):
        assert table.forfeit == (1, "ran out of time")
        assert not table.may_play
        assert table.clocks.running is None

    out_of_time(test)


def test_nothing_is_taken_back_where_no_time_is_left():
    def test(table):
        with pytest.raises(ValueError, match="time is over: analyse, or start a new game"):
            table.take_back()
        assert texts(table) == ["C3", "D3"]
        table.set_mode(ANALYSE)
        table.go(table.tip.parent.number)
        table.play("E5")
        table.take_back()
        with pytest.raises(ValueError, match="time is over"):
            table.set_mode(PLAY)
        table.go(table.tip.number)
        table.set_mode(PLAY)
        assert table.forfeit == (1, "ran out of time")

    out_of_time(test)


@on_a_table(PERSON, PERSON)
async def test_variations_taken_back_leave_the_game_as_it_ended(table):
    table.play("C3")
    table.play("D3")
    table.resign()
    table.set_mode(ANALYSE)
    table.go(table.tip.parent.number)
    table.play("E5")
    table.take_back()
    assert table.forfeit == (1, "resigned") and texts(table) == ["C3", "D3"]
    table.go(table.tip.number)
    table.take_back()
    assert table.forfeit is None and texts(table) == ["C3"]
    table.go(0)
    with pytest.raises(ValueError, match="no move of yours to take back"):
        table.take_back()
