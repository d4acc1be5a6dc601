"""The page's view of a search, and which engines and sessions are kept."""

import asyncio
import threading
from concurrent.futures import Future

import numpy as np
import pytest

from tests.support.learner.reports import report_of
from train.runtime.host import fetch
from train.ui import machine as machine_lib
from train.ui import wire
from train.ui.game_session import GameSession
from train.ui.game_tree import GameTree
from train.ui.machine import Level, Machine
from wallgo_jax.game.actions import NO_ACTION
from wallgo_jax.game.rules import PRESETS, Rules
from wallgo_jax.game.state import initial_state
from wallgo_jax.notation import parse_action

TWO, THREE = PRESETS["wallzero-4stone"], PRESETS["playwallgo-3p"]
C3, D4, E5 = (parse_action(cell, grid=7).action for cell in ("C3", "D4", "E5"))


def report(rules, **changes):
    """A report of the first position, in which the first two slots were visited, the second more
    often."""
    fields = {
        "actions": np.array([C3, E5]),
        "legal": np.ones(2, bool),
        "prior": np.array([0.2, 0.6]),
        "visits": np.array([9, 12]),
        "qvalues": np.array([0.2, -0.4]),
        "policy": np.array([0.3, 0.7]),
        "completed": np.array([0.2, -0.4]),
        "best_values": np.array([0.2, -0.2]),
        "root_visits": np.array(22),
        "slots": np.array([0, 1]),
        "lines": np.array([[C3, D4, NO_ACTION], [E5, NO_ACTION, NO_ACTION]]),
    }
    return report_of(fetch(initial_state(rules)), C3, -0.1, **fields | changes)


def of_players(values):
    """Each player's value, of the position and after its best move."""
    return dict.fromkeys(("values", "best_values"), np.array(values))


def test_chances_are_those_of_the_best_move_and_hints_go_by_visits():
    view = wire.evaluation_view(report(TWO))
    assert view["chances"] == [0.6, 0.4]
    assert view["order"] == "the most visited first"
    assert [idea["visits"] for idea in view["ideas"]] == [12, 9]
    assert [idea["winChance"] for idea in view["ideas"]] == [0.3, 0.6]
    assert [idea["share"] for idea in view["ideas"]] == [0.7, 0.3]
    assert view["ideas"][1]["line"] == ["C3", "D4"]
    equal = wire.evaluation_view(report(TWO, visits=np.array([9, 9])))
    assert equal["ideas"][0]["line"] == ["C3", "D4"], "the search's choice"
    three = report(THREE, **of_players([1.0, -0.5, -0.5]))
    assert wire.evaluation_view(three)["chances"] == [1.0, 0.0, 0.0], "a loss is minus a half"
    # The value of a bound may lie below a loss.
    three = report(THREE, **of_players([-0.7, 0.55, 0.15]))
    assert sum(wire.evaluation_view(three)["chances"]) == pytest.approx(1, abs=1e-3)
    three = report(THREE, **of_players([0.4, -0.7, 0.3]))
    mover = float(three.chance(0.4))
    assert wire.evaluation_view(three)["chances"] == pytest.approx([mover, 0, 1 - mover], abs=1e-3)
    # Without visits the policy is all that is known.
    unseen = {"visits": np.zeros(2, int), "best_values": np.array([-0.1, 0.1])}
    view = wire.evaluation_view(report(TWO, root_visits=np.array(1), **unseen))
    assert (view["chances"], view["order"]) == ([0.45, 0.55], "the likeliest first")
    assert [idea["share"] for idea in view["ideas"]] == [0.7, 0.3]


class PlainSessions:
    """Sessions that find the same in every position."""

    def __init__(self, rules):
        self.rules, self.positions, self.asked, self.is_ended = rules, {}, [], False

    def open(self, rules, *, position):
        assert not self.is_ended
        name = f"{len(self.asked)}"
        self.positions[name] = position
        return name

    def close(self, name):
        del self.positions[name]

    def ask(self, name, *, simulations, temperature):
        assert temperature == simulations / 1000
        self.asked.append((self.positions[name].actions, simulations))
        future = Future()
        future.set_result(report(TWO))
        return future

    def shut_down(self):
        self.is_ended = True


@pytest.fixture
def made(monkeypatch):
    """The engines that were made, and locks by size, for which new ones wait."""
    found, locks = [], {}

    def make(player, rules, options, on_compiled):
        on_compiled(1, 4)
        if rules.size in locks:
            locks[rules.size].wait()
        found.append(PlainSessions(rules))
        return found[-1]

    monkeypatch.setattr(machine_lib, "make_evaluating_player", str)
    monkeypatch.setattr(machine_lib, "Sessions", make)
    yield found, locks
    for lock in locks.values():
        lock.set()


def level_of(simulations):
    return Level("any", simulations, simulations / 1000)


def rules_of(size):
    return Rules(size=size, stones=1, order=(0, 1))


async def test_each_search_has_a_session_of_its_own(made):
    engines, _ = made
    machine, tree = Machine("any"), GameTree(rules_of(3))
    await machine.search(tree.rules, tree.root, level_of(256))
    node = tree.play(min(tree.root.snapshot.legal))
    await machine.search(tree.rules, node, level_of(1))
    assert engines[0].asked == [((), 256), ((node.action,), 1)]
    assert engines[0].positions == {}


async def test_the_engine_that_was_not_asked_for_longest_makes_room(made, monkeypatch):
    monkeypatch.setattr(machine_lib, "MAX_ENGINES", 2)
    engines, _ = made
    machine = Machine("any")
    # Engines differ by the shape of rules alone, so one position stands for all.
    roots = {size: GameTree(rules_of(3)).root for size in (3, 4, 5)}
    for size in (3, 4, 3, 5):
        await machine.search(rules_of(size), roots[size], level_of(1))
    await asyncio.sleep(0)
    # A game of the engine that is gone goes on with a new one.
    await machine.search(rules_of(4), roots[4], level_of(1))
    assert [each.rules.size for each in engines] == [3, 4, 5, 4]
    assert [each.is_ended for each in engines[:2]] == [True, True]
    assert [each.is_ended for each in engines[2:]] == [False, False]
    assert len(engines[0].asked) == 2 and len(engines[-1].asked) == 1


async def test_an_engine_that_is_dropped_while_it_compiles_ends(made, monkeypatch):
    monkeypatch.setattr(machine_lib, "MAX_ENGINES", 1)
    engines, locks = made
    locks[3] = threading.Event()
    machine, root = Machine("any"), GameTree(rules_of(3)).root
    waiting = asyncio.ensure_future(machine.search(rules_of(3), root, level_of(1)))
    await asyncio.sleep(0)
    other = GameTree(rules_of(3)).root
    await machine.search(rules_of(4), other, level_of(1))
    assert machine.is_compiling
    locks[3].set()
    await asyncio.wait_for(waiting, 20)
    assert not machine.is_compiling
    first, again = (each for each in engines if each.rules.size == 3)
    assert first.is_ended and not first.asked
    assert not again.is_ended and len(again.asked) == 1


async def test_the_page_hears_how_far_new_rules_are_compiled_while_a_person_moves(made):
    _, locks = made
    locks[3] = threading.Event()
    machine, tree, views = Machine("any"), GameTree(rules_of(3)), []
    session = GameSession(tree, ["person", "expert"], machine)
    machine.prepare(tree.rules)
    session.listen(lambda: views.append(wire.activity(session)))

    async def wait_for(is_there):
        while not (views and is_there(views[-1])):
            await asyncio.sleep(0.01)

    await asyncio.wait_for(wait_for(lambda view: view and view["share"] == 0.25), 20)
    assert session.may_play and session.search is None
    assert views[-1]["text"].endswith("compiles its search for these rules: 1 of 4 parts")
    assert 0 <= views[-1]["seconds"] < 20
    locks[3].set()
    await asyncio.wait_for(wait_for(lambda view: view is None), 20)
    session.close()
