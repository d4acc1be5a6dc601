"""A game with its variations: a tree of positions, each reached by one ply from its parent."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import jax

from train.ui.games.thoughts import Thought
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.state import State, initial_state
from wallgo_jax.notation import format_action
from wallgo_jax.view.game_replay import play_action
from wallgo_jax.view.snapshot import Snapshot, take_snapshot

MAX_NODES = 2000
ROOT = 0


@dataclasses.dataclass(eq=False)
class Node:
    """A position of the tree.

    Attributes:
      number: its name in messages; a number is never used twice.
      parent: the position before; None at the root.
      action: public id of the ply that leads here; None at the root.
      mover: who played it.
      depth: plies from the root.
      state: the position.
      snapshot: the position in plain data.
      payoff: each player's reward where the game is over by the rules, else None.
      children: the plies that were tried from here, the main line first.
      thought: the deepest search of the position so far.
      mark: what a review says of the ply that leads here, such as `?!`; empty for nothing.
    """

    number: int
    parent: Node | None
    action: int | None
    mover: int | None
    depth: int
    state: State
    snapshot: Snapshot
    payoff: tuple[float, ...] | None
    children: list[Node] = dataclasses.field(default_factory=list)
    thought: Thought | None = None
    mark: str = ""

    @property
    def text(self) -> str:
        """The ply that leads here in human notation; empty at the root."""
        if self.action is None:
            return ""
        return format_action(self.action, grid=self.snapshot.grid)


class GameTree:
    """A tree of positions and the one that is looked at.

    Attributes:
      rules: of the game.
      has_start: whether it starts as the rules say, not from a position of its own.
      current: the position that is looked at.
      names: who played the game that was loaded, one for each player; None where nobody says.
    """

    def __init__(self, rules: Rules, position: State | None = None) -> None:
        """Start from the rules' start, or from a position of these rules."""
        self.rules = rules
        self.has_start = position is None
        self.names: tuple[str, ...] | None = None
        state = jax.device_get(initial_state(rules) if position is None else position)
        snapshot = take_snapshot(state)
        self.root = Node(ROOT, None, None, None, 0, state, snapshot, snapshot.payoff)
        self.current = self.root
        self._nodes = {ROOT: self.root}
        self._next = ROOT + 1
        if snapshot.legal:
            # Compiled here, the first ply of a person need not wait for it.
            play_action(state, min(snapshot.legal))

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Node]:
        """Every position, parents before their children."""
        return iter(self._nodes.values())

    def node(self, number: int) -> Node:
        """Find a position.

        Raises:
          ValueError: there is no such position.
        """
        if number not in self._nodes:
            raise ValueError(f"node: {number} is not a position of this game")
        return self._nodes[number]

    def play(self, action: int) -> Node:
        """Play a public action in the current position and go there; a ply that was tried before
        is not added again.

        Raises:
          ValueError: the action is not allowed, or the tree is full.
        """
        before = self.current
        for child in before.children:
            if child.action == action:
                self.current = child
                return child
        if len(self._nodes) >= MAX_NODES:
            raise ValueError(f"this game already holds {MAX_NODES} positions; start a new one")
        state, rewards = play_action(before.state, action)
        snapshot = take_snapshot(state)
        payoff = rewards if snapshot.is_over else None
        mover, depth = before.snapshot.player, before.depth + 1
        node = Node(self._next, before, action, mover, depth, state, snapshot, payoff)
        self._nodes[node.number] = node
        self._next += 1
        before.children.append(node)
        self.current = node
        return node

    def go(self, number: int) -> None:
        """Look at another position."""
        self.current = self.node(number)

    def remove(self, number: int) -> None:
        """Take a position and all that follows from it out of the tree.

        Raises:
          ValueError: there is no such position, or it is the root.
        """
        node = self.node(number)
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

    def promote(self, number: int) -> None:
        """Make the line to a position the main line."""
        for node in path_to(self.node(number)):
            if node.parent is not None:
                node.parent.children.remove(node)
                node.parent.children.insert(0, node)


def path_to(node: Node) -> list[Node]:
    """The positions from the root to a node, both included."""
    found = [node]
    while (parent := found[-1].parent) is not None:
        found.append(parent)
    return found[::-1]


def main_line(root: Node) -> list[Node]:
    """The positions from a node to the end of its main line, the node included."""
    found = [root]
    while found[-1].children:
        found.append(found[-1].children[0])
    return found


def actions_of(nodes: Sequence[Node]) -> tuple[int, ...]:
    """The plies that lead to nodes, without a root's."""
    return tuple(node.action for node in nodes if node.action is not None)
