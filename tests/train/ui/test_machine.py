"""Which engines are kept, and what is told while they are compiled."""

import asyncio
import threading

import pytest

from tests.support.play import PlainSessions
from train.ui import machine as machine_lib
from train.ui.machine import Machine
from wallgo_jax.game.rules import Rules


@pytest.fixture
def made(monkeypatch):
    """The engines that were made, by the size of their rules, and locks by size, for which new ones
    wait."""
    found, locks = [], {}

    def make(player, rules, options, on_compiled):
        if rules.size in locks:
            locks[rules.size].wait()
            on_compiled(1, 4)
        found.append((rules.size, PlainSessions()))
        return found[-1][1]

    monkeypatch.setattr(machine_lib, "make_evaluating_player", str)
    monkeypatch.setattr(machine_lib, "Sessions", make)
    yield found, locks
    for lock in locks.values():
        lock.set()


def rules_of(size):
    return Rules(size=size, stones=1, order=(0, 1))


def ignore(done, total):
    pass


async def test_the_engine_that_was_not_asked_for_longest_makes_room(made, monkeypatch):
    monkeypatch.setattr(machine_lib, "MAX_ENGINES", 2)
    engines, machine = made[0], Machine("any")
    for size in (3, 4, 3, 5):
        await machine.prepare(rules_of(size), ignore)
    await asyncio.sleep(0)
    # A game of the engine that is gone goes on with a new one.
    await machine.prepare(rules_of(4), ignore)
    assert [size for size, _ in engines] == [3, 4, 5, 4]
    assert [each.is_ended for _, each in engines] == [True, True, False, False]


async def test_an_engine_that_is_dropped_while_it_compiles_ends(made, monkeypatch):
    monkeypatch.setattr(machine_lib, "MAX_ENGINES", 1)
    engines, locks = made
    locks[3], machine = threading.Event(), Machine("any")
    waiting = asyncio.ensure_future(machine.prepare(rules_of(3), ignore))
    await asyncio.sleep(0)
    await machine.prepare(rules_of(4), ignore)
    assert machine.is_compiling
    locks[3].set()
    found = await asyncio.wait_for(waiting, 20)
    assert not machine.is_compiling
    first, again = (each for size, each in engines if size == 3)
    assert first.is_ended and found is again and not again.is_ended


async def test_all_who_wait_hear_how_far_new_rules_are_compiled(made):
    _, locks = made
    locks[3], machine, told = threading.Event(), Machine("any"), []
    tells = [lambda *parts, who=who: told.append((who, *parts)) for who in "ab"]
    waiting = [asyncio.ensure_future(machine.prepare(rules_of(3), tell)) for tell in tells]
    while len(told) < 2:
        await asyncio.sleep(0.01)
    locks[3].set()
    assert len({id(each) for each in await asyncio.gather(*waiting)}) == 1
    await asyncio.sleep(0)
    assert told == [("a", 0, 0), ("b", 0, 0), ("a", 1, 4), ("b", 1, 4)]
    assert not machine.is_compiling
