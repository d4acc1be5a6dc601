"""A thinker without a search, and a server of the page in a thread, for tests of `train.ui`."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator, Sequence

from aiohttp import web

from train.puzzles.puzzle_file import Puzzle
from train.ui.games.game_tree import Node
from train.ui.games.thoughts import Idea, Thought
from train.ui.hall import Hall
from train.ui.puzzles import PuzzleBook
from train.ui.reviewing import Reviewer
from train.ui.server import make_app
from wallgo_jax.formats.records import Record
from wallgo_jax.game.rules import PRESETS, Rules
from wallgo_jax.notation import parse_action


class PlainThinker:
    """Answers at once: every legal move is as good, and the first is chosen."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    async def think(self, rules: Rules, node: Node, simulations: int, *, is_move: bool) -> Thought:
        self.asked.append((node.number, simulations))
        await asyncio.sleep(0)
        legal = sorted(node.snapshot.legal)
        ideas = tuple(Idea(action, 0.5, 1 / len(legal), (action,)) for action in legal)
        chances = tuple(1 / rules.players for _ in range(rules.players))
        owners = ((*chances, 0.0),) * rules.size**2
        policy = tuple((action, 1 / len(legal)) for action in legal)
        return Thought(legal[0], chances, ideas, policy, owners, simulations)

    def prepare(self, rules: Rules) -> None:
        pass

    def is_ready(self, rules: Rules) -> bool:
        return True

    def forget(self, root: Node) -> None:
        pass


def plain_puzzle(moves: Sequence[str], solution: str, then: str, difficulty: int = 2) -> Puzzle:
    """A puzzle in which one move is said to win."""
    rules = PRESETS["wallzero-4stone"]
    actions = [parse_action(move, grid=rules.size).action for move in (*moves, solution, then)]
    record = Record(rules=rules, actions=tuple(actions[:-2]))
    line = tuple(actions[-2:])
    return Puzzle(record, line[0], line, difficulty, 0.5, 0.93, 0.4, None, "nobody")


@contextlib.contextmanager
def served(rules: Rules, puzzles: Sequence[Puzzle] = (), *, port: int = 0) -> Iterator[str]:
    """The address of a server that ends with the context; its reviews are shallow."""
    ready, found = threading.Event(), []

    async def serve() -> None:
        ended = asyncio.Event()
        reviewer = Reviewer("heuristic-search:wjx", simulations=4)
        hall = Hall(PlainThinker(), rules, reviewer=reviewer, puzzles=PuzzleBook(puzzles))
        runner = web.AppRunner(make_app(hall), shutdown_timeout=0.1)
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
