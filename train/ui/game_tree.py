"""A game with its variations: a tree of positions, each reached by one ply from its parent.

Its chess clocks have time for a whole game, and an increment after each move.
"""

import dataclasses
import time
from collections.abc import Callable, Iterator
from typing import Annotated, NamedTuple

from pydantic import Field

from train.engine.searcher import GamePosition, begin_game
from train.runtime.fields import Real
from train.runtime.host import fetch
from train.search.report import SearchReport
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State
from wallgo_jax.notation import format_action
from wallgo_jax.view.snapshot import Snapshot, take_snapshot


class ClockSettings(NamedTuple):
    """Time of each player, as a page may choose it."""

    minutes: Annotated[Real, Field(strict=True, ge=0.1, le=180)]
    increment: Annotated[Real, Field(strict=True, ge=0, le=180)] = 0.0  # seconds


@dataclasses.dataclass(eq=False)
class Clocks:
    """The clocks of all players; at most one of them runs."""

    settings: ClockSettings  # time of each player
    seconds: list[float]  # of each player when the clocks last stopped; see `left`
    now: Callable[[], float] = time.monotonic  # returns the time in seconds
    running: int | None = None  # whose clock runs, or None
    _since: float = 0.0

    def left(self, player: int) -> float:
        """Seconds that a player has left, 0 once the time is over."""
        passed = self.now() - self._since if player == self.running else 0.0
        return max(0.0, self.seconds[player] - passed)

    def start(self, player: int) -> None:
        """Start a player's clock, and stop the one that runs."""
        if player != self.running:
            self.stop()
            self.running, self._since = player, self.now()

    def stop(self) -> None:
        """Stop the clock that runs."""
        if self.running is not None:
            self.seconds[self.running] = self.left(self.running)
        self.running = None


MAX_NODES = 2000


@dataclasses.dataclass(eq=False)
class Node:
    """A position of the tree."""

    number: int  # its name in messages; a number is never used twice
    parent: "Node | None"  # the position before; None at the root
    position: GamePosition  # the position, and the plies from the root
    snapshot: Snapshot  # the position in plain data
    children: list["Node"] = dataclasses.field(default_factory=list)
    """The plies that were tried from here, the main line first."""
    report: SearchReport | None = None  # of the deepest search of the position so far
    mark: str = ""  # a review's mark of the ply that leads here, such as `?!`; empty for none

    @property
    def state(self) -> State:
        """The board."""
        return self.position.state

    @property
    def action(self) -> int | None:
        """Public id of the ply that leads here; None at the root."""
        return None if self.parent is None else self.position.actions[-1]

    @property
    def mover(self) -> int | None:
        """The player of the ply that leads here; None at the root."""
        return None if self.parent is None else self.parent.snapshot.player

    @property
    def text(self) -> str:
        """The ply that leads here in human notation; empty at the root."""
        return "" if self.action is None else format_action(self.action, grid=self.snapshot.grid)

    def note(self, report: SearchReport) -> None:
        """Keep a search of the position, unless a deeper one is known."""
        if self.report is None or self.report.simulations <= report.simulations:
            self.report = report


class GameTree:
    """A tree of positions and the one that is looked at.

    Attributes:
      rules: of the game.
      has_start: whether it starts as the rules say, not from a position that was set up.
      root: the first position.
      current: the position that is looked at.
      names: the players' names of a loaded game, in order; None for those of the seats.
    """

    def __init__(self, rules: Rules, position: State | None = None) -> None:
        """Start from the rules' start, or from a position of these rules."""
        self.rules, self.has_start = rules, position is None
        self.names: tuple[str, ...] | None = None
        first = begin_game(rules, None if position is None else fetch(position))
        self.root = self.current = Node(0, None, first, take_snapshot(first.state))
        self._nodes, self._next = {0: self.root}, 1
        if legal := self.root.snapshot.legal:
            # Compiled here, the first ply of a person need not wait for it.
            first.play(min(legal))

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Node]:
        """Every position, parents before their children."""
        return iter(self._nodes.values())

    def node(self, number: int | None) -> Node:
        """Find a position.

        Raises:
          ValueError: there is no such position.
        """
        if number not in self._nodes:
            raise ValueError(f"node: {number} is not a position of this game")
        return self._nodes[number]

    def play(self, action: int) -> Node:
        """Play a public action in the current position and go there; errors are those of `add`."""
        self.current = self.add(self.current, action)
        return self.current

    def add(self, before: Node, action: int) -> Node:
        """The position after a public action; a ply that was tried before is not added again.

        Raises:
          ValueError: the action is not allowed, or the tree is full.
        """
        for child in before.children:
            if child.action == action:
                return child
        if len(self._nodes) >= MAX_NODES:
            raise ValueError(f"this game already holds {MAX_NODES} positions; start a new one")
        position = before.position.play(action)
        node = Node(self._next, before, position, take_snapshot(position.state))
        self._nodes[node.number] = node
        self._next += 1
        before.children.append(node)
        return node

    def remove(self, node: Node) -> None:
        """Take a position and all that follows from it out of the tree.

        Raises:
          ValueError: it is the root.
        """
        if node.parent is None:
            raise ValueError("the start of a game cannot be taken back")
        if node in path_to(self.current):
            self.current = node.parent
        node.parent.children.remove(node)
        waiting = [node]
        while waiting:
            gone = waiting.pop()
            waiting += gone.children
            del self._nodes[gone.number]

    def promote(self, node: Node) -> None:
        """Make the line to a position the main line."""
        for each in path_to(node)[1:]:
            siblings = each.parent.children if each.parent is not None else []
            siblings.remove(each)
            siblings.insert(0, each)


def path_to(node: Node) -> list[Node]:
    """The positions from the root to a node, both included."""
    path = [node]
    while (parent := path[-1].parent) is not None:
        path.append(parent)
    return path[::-1]
