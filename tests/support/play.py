"""Engines without a search, and a server of the page in a thread, for tests of `train.ui`."""

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future

import numpy as np
from aiohttp import web

from tests.support.learner.reports import report_of
from train.engine.searcher import GamePosition, begin_game, play_moves
from train.review.puzzle_file import Puzzle, WinChances
from train.search.report import SearchReport
from train.ui.machine import Machine
from train.ui.reviewing import Reviewer
from train.ui.server import make_app
from wallgo_jax.formats.records import Record
from wallgo_jax.game.rules import PRESETS, Rules
from wallgo_jax.notation import parse_action
from wallgo_jax.view.snapshot import take_snapshot


class PlainSessions:
    """Sessions of an engine that answers at once: every legal move is as good, and the first is
    chosen."""

    def __init__(self) -> None:
        self.positions: dict[str, GamePosition] = {}
        self.rules: dict[str, Rules] = {}
        self.asked: list[tuple[tuple[int, ...], int]] = []
        self.is_slow = False
        self.is_ended = False

    def open(self, rules, *, moves=(), position=None, name=None, simulations=None, seconds=None):
        name = name or next(n for n in map(str, itertools.count(1)) if n not in self.positions)
        start = begin_game(rules) if position is None else position
        self.positions[name], self.rules[name] = play_moves(start, moves), rules
        return name

    def position(self, name, **kwargs):
        return self.positions[name]

    def close(self, name):
        del self.positions[name]

    def ask(self, name, *, simulations, temperature, **kwargs):
        position = self.positions[name]
        self.asked.append((position.actions, simulations))
        future: Future[SearchReport] = Future()
        if not self.is_slow:
            future.set_result(plain_report(position, self.rules[name], simulations))
        return future

    def shut_down(self):
        self.is_ended = True


def plain_report(position: GamePosition, rules: Rules, simulations: int) -> SearchReport:
    """A search that finds every legal move as good, and chooses the first."""
    snapshot, players = take_snapshot(position.state), rules.players
    legal = np.array(sorted(snapshot.legal), np.int32)
    each, none = np.ones(len(legal), np.float32), np.zeros(players, np.float32)
    owners = np.array([*[1 / players] * players, 0.0], np.float32)
    fields = {
        "actions": legal,
        "legal": each > 0,
        "prior": each / len(legal),
        "visits": each.astype(np.int32),
        "qvalues": 0 * each,
        "completed": 0 * each,
        "policy": each / len(legal),
        "slots": np.arange(len(legal)),
        "lines": legal[:, None],
        "owners": np.broadcast_to(owners, (rules.size, rules.size, players + 1)),
        "simulations": simulations,
        "root_visits": np.array(simulations + 1),
    }
    values = dict.fromkeys(("values", "best_values", "network_values"), none)
    return report_of(position.state, int(legal[0]), 0.0, **fields | values)


class PlainMachine(Machine):
    """A machine whose engine is a plain one, and compiled at once."""

    is_compiling = False

    def __init__(self, player: str = "") -> None:
        super().__init__(player)
        self.sessions = PlainSessions()

    async def prepare(self, rules, tell):
        return self.sessions

    def shut_down(self):
        self.sessions.shut_down()


def plain_puzzle(moves: Sequence[str], solution: str, then: str, difficulty: int = 2) -> Puzzle:
    """A puzzle in which one move is said to win."""
    rules = PRESETS["wallzero-4stone"]
    actions = [parse_action(move, grid=rules.size).action for move in (*moves, solution, then)]
    record = Record(rules=rules, actions=tuple(actions[:-2]))
    line = tuple(actions[-2:])
    chances = WinChances(0.5, 0.93, 0.4)
    return Puzzle(record, line[0], line, difficulty, chances, None, "nobody")


@contextlib.contextmanager
def served(
    rules: Rules, puzzles: Sequence[Puzzle] = (), *, port: int = 0, is_slow: bool = False
) -> Iterator[str]:
    """The address of a server that ends with the context; its reviews are shallow, and no search
    of a slow one ends."""
    machine = PlainMachine()
    machine.sessions.is_slow = is_slow
    reviewer = Reviewer(Machine("heuristic-search:wjx"), simulations=4)
    app = make_app(machine, rules, puzzles=puzzles, reviewer=reviewer)
    with in_thread(app, port) as address:
        yield address


@contextlib.contextmanager
def in_thread(app: web.Application, port: int = 0) -> Iterator[str]:
    """The address of a web server in a thread of its own: the driver of a browser keeps a loop in
    the thread of the tests."""
    ready, found = threading.Event(), []

    async def serve() -> None:
        ended = asyncio.Event()
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        address = f"http://127.0.0.1:{runner.addresses[0][1]}"
        found.extend([address, asyncio.get_running_loop(), ended])
        ready.set()
        await ended.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(60)
    address, loop, ended = found
    try:
        yield address
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
