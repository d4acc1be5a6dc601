"""The page's view of an engine's answer, and which engines and sessions are kept."""

import asyncio
import dataclasses
import itertools
import threading

import pytest

from train.engine.answers import Candidate, Evaluation, Standing
from train.engine.trees.guide import make_guide_for_levels
from train.runtime.errors import UsageError
from train.ui import wire
from train.ui.games import machine as machine_lib
from train.ui.games.game_tree import GameTree
from train.ui.games.levels import Level
from train.ui.games.machine import Machine
from wallgo_jax.game.rules import PRESETS, Rules
from wallgo_jax.notation import parse_action

TWO = PRESETS["wallzero-4stone"]
BEST = Candidate("C3", prior=0.2, visits=9, value=0.2, win_chance=0.6, line=("C3", "D4"))
OTHER = Candidate("E5", prior=0.6, visits=12, value=-0.4, win_chance=0.3, line=("E5",))


def answer(**changes):
    found = Evaluation(
        session="1",
        ply=3,
        player=1,
        best_move="C3",
        action=parse_action("C3", grid=7).action,
        evaluation=0.1,
        win_chance=0.45,
        simulations=21,
        visits=21,
        candidates=(BEST, OTHER),
        policy=(("E5", 0.7), ("C3", 0.3)),
    )
    return dataclasses.replace(found, **changes)


def test_chances_are_those_of_the_best_move():
    view = wire.evaluation_view(answer(), TWO)
    assert view["chances"] == [0.4, 0.6]
    assert [idea["winChance"] for idea in view["ideas"]] == [0.6, 0.3]
    assert [idea["share"] for idea in view["ideas"]] == [0.3, 0.7]
    assert view["ideas"][0]["line"] == ["C3", "D4"]


def test_without_visits_the_policy_is_all_that_is_known():
    view = wire.evaluation_view(answer(candidates=(), player=0), TWO)
    assert view["chances"] == [0.45, 0.55]
    assert [idea["share"] for idea in view["ideas"]] == [0.7, 0.3]


def test_of_three_players_a_loss_is_minus_a_half():
    assert wire.chances(answer(evaluation=(1.0, -0.5, -0.5)), 3) == [1.0, 0.0, 0.0]


class PlainSessions:
    """Sessions that follow games and find the same in every position."""

    def __init__(self, rules):
        self.rules, self.plies, self.asked, self.is_ended = rules, {}, [], False
        self._numbers = itertools.count(1)

    def open(self, rules, *, position):
        assert not self.is_ended
        name = str(next(self._numbers))
        self.plies[name] = []
        return name

    def close(self, name):
        del self.plies[name]

    def standing(self, name):
        played = tuple(self.plies[name])
        return Standing(name, self.rules, None, len(played), 0, (), played, None)

    def takeback(self, name, ply):
        del self.plies[name][ply:]

    def apply(self, name, action):
        self.plies[name].append(action)

    async def evaluate(self, name, *, simulations, temperature, details):
        assert temperature == simulations / 1000
        assert not self.is_ended
        self.asked.append((name, tuple(self.plies[name]), simulations))
        return Evaluation(name, 0, 0, "A1", 0, 0.0, 0.5, simulations, simulations)

    def shut_down(self):
        self.is_ended = True


@pytest.fixture
def made(monkeypatch):
    """The engines that were made, and locks by size, for which new ones wait."""
    found, locks = [], {}

    def make(player, rules, *, options):
        if rules.size in locks:
            locks[rules.size].wait()
        found.append(PlainSessions(rules))
        return found[-1]

    monkeypatch.setattr(machine_lib, "make_sessions", make)
    yield found, locks
    for lock in locks.values():
        lock.set()


def level_of(simulations):
    return Level("any", simulations, simulations / 1000)


def rules_of(size):
    return Rules(size=size, stones=1, order=(0, 1))


def test_hints_teach_the_machine_nothing(made):
    engines, _ = made

    async def body():
        machine, tree = Machine("any"), GameTree(rules_of(3))
        await machine.search(tree.rules, tree.root, level_of(256), is_move=False)
        await machine.search(tree.rules, tree.root, level_of(1), is_move=True)
        node = tree.play(min(tree.root.snapshot.legal))
        await machine.search(tree.rules, node, level_of(1), is_move=True)
        await machine.search(tree.rules, node, level_of(64), is_move=False)
        return machine, tree, node.action

    machine, tree, action = asyncio.run(body())
    assert engines[0].asked == [
        ("1", (), 256),
        ("2", (), 1),
        ("2", (action,), 1),
        ("1", (action,), 64),
    ]
    machine.forget(tree.root)
    assert engines[0].plies == {}


async def test_the_engine_that_was_not_asked_for_longest_makes_room(made, monkeypatch):
    monkeypatch.setattr(machine_lib, "MAX_ENGINES", 2)
    engines, _ = made
    machine = Machine("any")
    # Engines differ by the shape of rules alone, so one position stands for all.
    roots = {size: GameTree(rules_of(3)).root for size in (3, 4, 5)}
    for size in (3, 4, 3, 5):
        await machine.search(rules_of(size), roots[size], level_of(1), is_move=True)
    await asyncio.sleep(0)
    # A game of the engine that is gone goes on with a new one.
    await machine.search(rules_of(4), roots[4], level_of(1), is_move=True)
    assert [each.rules.size for each in engines] == [3, 4, 5, 4]
    assert [each.is_ended for each in engines[:2]] == [True, True]
    assert [each.is_ended for each in engines[2:]] == [False, False]
    assert len(engines[0].asked) == 2 and len(engines[-1].asked) == 1


async def test_an_engine_that_is_dropped_while_it_compiles_ends(made, monkeypatch):
    monkeypatch.setattr(machine_lib, "MAX_ENGINES", 1)
    engines, locks = made
    locks[3] = threading.Event()
    machine, root = Machine("any"), GameTree(rules_of(3)).root
    waiting = asyncio.ensure_future(machine.search(rules_of(3), root, level_of(1), is_move=True))
    await asyncio.sleep(0)
    other = GameTree(rules_of(3)).root
    await machine.search(rules_of(4), other, level_of(1), is_move=True)
    assert machine.is_compiling
    locks[3].set()
    await asyncio.wait_for(waiting, 20)
    assert not machine.is_compiling
    first, again = (each for each in engines if each.rules.size == 3)
    assert first.is_ended and not first.asked
    assert not again.is_ended and len(again.asked) == 1


@pytest.mark.parametrize("name", ["heuristic-search:wjx@512", "heuristic-search:wjx@1s", "net:x"])
def test_a_machine_whose_name_says_how_long_it_searches_is_refused(name):
    with pytest.raises(UsageError, match="levels"):
        make_guide_for_levels(name)
