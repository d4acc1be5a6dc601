"""A machine without a search, and a server of the page in a thread, for tests of `train.ui`."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator, Sequence

import numpy as np
from aiohttp import web

from tests.support.learner.reports import report_of
from train.review.puzzle_file import Puzzle, WinChances
from train.search.report import SearchReport
from train.ui.game_server import GameServer
from train.ui.game_tree import Node
from train.ui.machine import Level, Machine
from train.ui.reviewing import Reviewer
from train.ui.server import make_app
from wallgo_jax.formats.records import Record
from wallgo_jax.game.rules import PRESETS, Rules
from wallgo_jax.notation import parse_action


class PlainMachine(Machine):
    """Answers at once: every legal move is as good, and the first is chosen."""

    is_compiling = False

    def __init__(self, player: str = "") -> None:
        super().__init__(player)
        self.asked: list[tuple[int, int]] = []

    async def search(self, rules: Rules, node: Node, level: Level) -> SearchReport:
        self.asked.append((node.number, level.simulations))
        await asyncio.sleep(0)
        legal, players = np.array(sorted(node.snapshot.legal), np.int32), rules.players
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
            "owners": np.broadcast_to(owners, (node.state.grid, node.state.grid, players + 1)),
            "simulations": level.simulations,
        }
        values = dict.fromkeys(("values", "best_values", "network_values"), none)
        return report_of(node.state, int(legal[0]), 0.0, **fields | values)

    def prepare(self, rules: Rules) -> asyncio.Future:
        ready = asyncio.get_running_loop().create_future()
        ready.set_result(None)
        return ready


def plain_puzzle(moves: Sequence[str], solution: str, then: str, difficulty: int = 2) -> Puzzle:
    """A puzzle in which one move is said to win."""
    rules = PRESETS["wallzero-4stone"]
    actions = [parse_action(move, grid=rules.size).action for move in (*moves, solution, then)]
    record = Record(rules=rules, actions=tuple(actions[:-2]))
    line = tuple(actions[-2:])
    chances = WinChances(0.5, 0.93, 0.4)
    return Puzzle(record, line[0], line, difficulty, chances, None, "nobody")


@contextlib.contextmanager
def served(rules: Rules, puzzles: Sequence[Puzzle] = (), *, port: int = 0) -> Iterator[str]:
    """The address of a server that ends with the context; its reviews are shallow."""
    ready, found = threading.Event(), []

    async def serve() -> None:
        ended = asyncio.Event()
        reviewer = Reviewer(Machine("heuristic-search:wjx"), simulations=4)
        games = GameServer(PlainMachine(), rules, reviewer=reviewer, puzzles=puzzles)
        runner = web.AppRunner(make_app(games), shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        address = f"http://127.0.0.1:{runner.addresses[0][1]}"
        found.extend([address, asyncio.get_running_loop(), ended])
        ready.set()
        await ended.wait()
        await runner.cleanup()

    # A thread of its own: the driver of a browser keeps a loop in the thread of the tests.
    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(60)
    address, loop, ended = found
    try:
        yield address
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
