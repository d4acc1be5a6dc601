"""A slow search that keeps its tree, written without looking at the fast one: one node at a time.

It follows the papers: Danihelka et al., "Policy improvement by planning with Gumbel" (ICLR 2022),
without noise, and the AlphaZero rule with values scaled as MuZero's, or as they are, with
MiniZero's or KataGo's value for a slot without visits. Of more than two players all others play
against the one at the root (Sturtevant and Korf, "On Pruning Techniques for Multi-Player Games",
2000), so that a tree is of use to that player alone.
"""

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from train.search.config import SearchConfig
from wallgo_jax.game.state import State

Look = Callable[[State], tuple[np.ndarray, np.ndarray, np.ndarray]]
"""state -> logits [A], values of the mover and the players after it [P], legal bool[A]"""
Step = Callable[[State, int], tuple[State, np.ndarray, bool]]
"""(state, slot) -> (state after, rewards by player [P], over)"""


@dataclasses.dataclass
class Node:
    state: State
    logits: np.ndarray
    legal: np.ndarray
    raw_value: float
    is_over: bool = False
    same_side: bool = False  # as the one that moved here
    reward: float = 0.0
    returns: list[float] = dataclasses.field(default_factory=list)  # of each visit, own first
    children: dict[int, "Node"] = dataclasses.field(default_factory=dict)

    @property
    def visits(self) -> int:
        return len(self.returns)

    @property
    def value(self) -> float:
        # A finished game is worth nothing beyond its reward.
        return 0.0 if self.is_over else float(np.mean(self.returns))

    def q(self, slot: int) -> float:
        child = self.children[slot]
        return child.reward + (child.value if child.same_side else -child.value)

    def prior(self) -> np.ndarray:
        shown = np.where(self.legal, self.logits, -np.inf)
        exp = np.exp(shown - shown.max())
        return exp / exp.sum()


def mover_of(state: State) -> int:
    return int(state.position.player)


class SlowSearch:
    """A tree that is searched, moved on, and searched again."""

    def __init__(self, state: State, config: SearchConfig, look: Look, step: Step) -> None:
        self.config, self.look, self.step = config, look, step
        self.player = mover_of(state)  # whose share the tree's values are
        self.root = self.node(state)
        self.noisy_root: Node | None = None  # one whose prior has noise

    def node(self, state: State) -> Node:
        logits, values, legal = self.look(state)
        # The values begin with the mover's; the root's player stands this many places behind.
        value = float(values[(self.player - mover_of(state)) % len(values)]) * self.side(state)
        return Node(state, logits, legal, value, returns=[value])

    def side(self, state: State) -> int:
        return 1 if mover_of(state) == self.player else -1

    def move_on(self, slot: int) -> None:
        if slot in self.root.children:
            self.root = self.root.children[slot]
        else:
            self.root = self.node(self.step(self.root.state, slot)[0])

    def begin_anew(self) -> None:
        """Drop the tree: it is another player's."""
        self.player = mover_of(self.root.state)
        self.root = self.node(self.root.state)

    def search(self, simulations: int) -> tuple[int, dict[int, int]]:
        """The chosen slot, and the new visits of the root's slots."""
        before = {slot: child.visits for slot, child in self.root.children.items()}
        dues = self.dues(simulations)
        for due in dues:
            new = self.new_visits(before)
            if self.config.kind == "puct":
                slot = self.puct(self.root)
            else:
                slot = self.best([s for s in self.root_slots() if new.get(s, 0) == due])
            self.visit(self.root, slot)
        new = self.new_visits(before)
        if self.config.kind == "puct":
            prior = self.root.prior()
            visited = self.root.children
            return max(visited, key=lambda s: (visited[s].visits, prior[s])), new
        most = max(new.values(), default=0)
        return self.best([s for s in self.root_slots() if new.get(s, 0) == most]), new

    def new_visits(self, before: dict[int, int]) -> dict[int, int]:
        found = {s: child.visits - before.get(s, 0) for s, child in self.root.children.items()}
        return {slot: visits for slot, visits in found.items() if visits}

    def root_slots(self) -> list[int]:
        return np.flatnonzero(self.root.legal).tolist()

    def dues(self, simulations: int) -> list[int]:
        """Visits that the next slot has had: rounds of equal shares, the slots halved each time."""
        left = min(len(self.root_slots()), self.config.max_considered_actions)
        if left < 2:
            return list(range(simulations))
        phases, found, had = math.ceil(math.log2(left)), [], 0
        while len(found) < simulations:
            rounds = max(1, simulations // (phases * left))
            found += [had + number for number in range(rounds) for _ in range(left)]
            had, left = had + rounds, max(2, left // 2)
        return found[:simulations]

    def best(self, slots: list[int]) -> int:
        score = self.root.logits + self.completed(self.root)
        return max(slots, key=lambda slot: (score[slot], -slot))

    def completed(self, node: Node) -> np.ndarray:
        """Scaled values of all slots; those without visits get the mean of what is known."""
        prior, seen = node.prior(), list(node.children)
        mean = node.raw_value
        if seen:
            weights = prior[seen]
            known = float((weights * [node.q(slot) for slot in seen]).sum() / weights.sum())
            count = sum(node.children[slot].visits for slot in seen)
            mean = (node.raw_value + count * known) / (1 + count)
        values = np.full(len(prior), mean)
        for slot in seen:
            values[slot] = node.q(slot)
        if self.config.rescale_values:
            values = (values - values.min()) / max(values.max() - values.min(), self.config.spread)
        most = max((child.visits for child in node.children.values()), default=0)
        return self.config.value_scale * (self.config.visit_offset + most) * values

    def below(self, node: Node) -> int:
        if self.config.kind == "puct":
            return self.puct(node)
        score = np.where(node.legal, node.logits + self.completed(node), -np.inf)
        policy = np.exp(score - score.max())
        policy /= policy.sum()
        visits = np.zeros(len(policy))
        for slot, child in node.children.items():
            visits[slot] = child.visits
        return int(np.argmax(policy - visits / node.visits))

    def puct(self, node: Node) -> int:
        values = {slot: node.q(slot) for slot in node.children}
        if self.config.first_play == "mctx":
            known = [node.value, *values.values()]
            low, high = min(known), max(known)
            values = {s: (value - low) / max(high - low, 1e-8) for s, value in values.items()}
            unseen = 0.0
        elif self.config.first_play == "minizero":
            unseen = (sum(values.values()) - 1) / (len(values) + 1)
        else:
            tried = sum(node.prior()[slot] for slot in values)
            unseen = node.value - (0.0 if node is self.noisy_root else 0.2) * math.sqrt(tried)
        c_base = self.config.c_base
        weight = self.config.c_init + math.log((node.visits + c_base + 1) / c_base)
        prior = node.prior()
        best, chosen = -math.inf, -1
        for slot in np.flatnonzero(node.legal).tolist():
            visits = node.children[slot].visits if slot in values else 0
            exploration = weight * math.sqrt(node.visits) * prior[slot] / (1 + visits)
            score = values.get(slot, unseen) + exploration
            if score > best:
                best, chosen = score, slot
        return chosen

    def visit(self, node: Node, slot: int) -> float:
        """Visit a slot of a node; returns what the visit is worth for the node's mover."""
        child = node.children.get(slot)
        if child is None:
            state, rewards, is_over = self.step(node.state, slot)
            child = self.node(state)
            child.is_over = is_over
            child.reward = float(rewards[self.player]) * self.side(node.state)
            child.same_side = self.side(state) == self.side(node.state)
            node.children[slot] = child
            worth = 0.0 if is_over else child.raw_value
        elif child.is_over:
            child.returns.append(0.0)
            worth = 0.0
        else:
            worth = self.visit(child, self.below(child))
        found = child.reward + (worth if child.same_side else -worth)
        node.returns.append(found)
        return found
