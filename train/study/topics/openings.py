"""Openings with the board's symmetries taken out: a tree of first plies, and where stones stand.

Symmetries are those of the rules' start: turned by one of them, it has the same stones. A sequence
of plies stands for all its turned copies; its representative has the smallest action numbers.
"""

import collections
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.runtime.host import fetch
from train.study.frame.own_games import OwnGames
from train.study.frame.report import Picture, Table, percent
from wallgo_jax.board.geometry import NUM_SYMMETRIES
from wallgo_jax.game import symmetry
from wallgo_jax.game.actions import NO_ACTION
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.sizes import first_placement
from wallgo_jax.game.state import make_variant
from wallgo_jax.notation import COLOURS, cell_name, format_action

_SHOWN = 12
"""Branches of the table of openings, each with its commonest continuation."""


class Node(NamedTuple):
    """Games that share their first plies."""

    games: int
    points: float  # Red's wins, a draw as half


class Tree(NamedTuple):
    """The openings of some games."""

    rules: Rules
    games: int
    nodes: dict[tuple[int, ...], Node]  # by first plies, representatives
    setups: dict[tuple[int, ...], int]  # by placements in any order, representatives


def start_symmetries(rules: Rules) -> list[int]:
    """The symmetries that leave each player's stones of the start where they are."""
    variant = jax.tree.map(jnp.asarray, make_variant(rules))
    start = np.asarray(variant.start)
    kept = []
    for number in range(NUM_SYMMETRIES):
        turned = np.asarray(symmetry.turn_cells(variant.start, jnp.int32(number), variant))
        pairs = zip(start, turned, strict=True)
        if all(sorted(before) == sorted(after) for before, after in pairs):
            kept.append(number)
    return kept


def turned_actions(rules: Rules, actions: np.ndarray) -> np.ndarray:
    """int32[K, G, D]: actions [G, D] under each of the K symmetries of the start; NO_ACTION
    stays."""
    variant = jax.tree.map(jnp.asarray, make_variant(rules))
    valid = actions != NO_ACTION
    filled = jnp.asarray(np.where(valid, actions, 0))
    turned = [
        fetch(symmetry.turn_action(filled, jnp.int32(number), variant))
        for number in start_symmetries(rules)
    ]
    return np.where(valid, np.stack(turned), NO_ACTION)


def tree_of(games: OwnGames, *, depth: int) -> Tree:
    """Count openings.

    Args:
      games: finished ones.
      depth: plies that the tree goes down to; it goes down to the last placement at least.
    """
    rules, placements = games.rules, len(games.rules.order)
    depth = max(depth, placements)
    table = np.full((len(games.plies), depth), NO_ACTION, np.int32)
    for row, record in enumerate(games.recorded.records):
        first = record.actions[:depth]
        table[row, : len(first)] = first
    turned = turned_actions(rules, table)
    points = (1 + games.rewards[:, 0].clip(-1, 1)) / 2
    nodes: dict[tuple[int, ...], Node] = {}
    setups: collections.Counter[tuple[int, ...]] = collections.Counter()
    for row, gained in enumerate(points):
        copies = [tuple(int(action) for action in copy[row]) for copy in turned]
        best = min(copies)
        for length in range(1, depth + 1):
            path = best[:length]
            if path[-1] == NO_ACTION:
                break
            # A prefix of the smallest copy is the smallest copy of the prefix.
            old = nodes.get(path, Node(0, 0.0))
            nodes[path] = Node(old.games + 1, old.points + float(gained))
        if placements:
            setups[min(_setup(rules, copy[:placements]) for copy in copies)] += 1
        else:
            setups[()] += 1
    return Tree(rules, len(points), nodes, dict(setups))


def _setup(rules: Rules, placed: Sequence[int]) -> tuple[int, ...]:
    """Who stands where after the placements, in whatever order: player, cell, player, cell, ..."""
    pairs = sorted(zip(rules.order, placed, strict=False))
    return tuple(number for pair in pairs for number in pair)


def table(tree: Tree, *, title: str) -> Table:
    """The commonest setups and the commonest line after each."""
    placements = len(tree.rules.order)
    ends = [path for path in tree.nodes if len(path) == max(placements, 1)]
    ends.sort(key=lambda path: (-tree.nodes[path].games, path))
    rows = []
    for path in ends[:_SHOWN]:
        node = tree.nodes[path]
        line = commonest_line(tree, path)
        rows.append(
            (
                _words(tree.rules, path),
                percent(node.games / tree.games),
                percent(node.points / node.games),
                _words(tree.rules, line[len(path) :]),
                percent(tree.nodes[line].games / node.games),
            )
        )
    heads = ("first plies", "share", "Red wins", "commonest line after them", "share of these")
    return Table(title, heads, tuple(rows))


def commonest_line(tree: Tree, path: tuple[int, ...]) -> tuple[int, ...]:
    """A path with its commonest continuation, ply by ply, to the tree's depth."""
    while True:
        longer = [
            (node.games, tuple(-action for action in other), other)
            for other, node in tree.nodes.items()
            if len(other) == len(path) + 1 and other[: len(path)] == path
        ]
        if not longer:
            return path
        path = max(longer)[2]


def record(tree: Tree) -> list[dict[str, Any]]:
    """JSON-ready nodes that at least one game in two hundred passes, the commonest first."""
    least = max(2, tree.games // 200)
    chosen = [(path, node) for path, node in tree.nodes.items() if node.games >= least]
    chosen.sort(key=lambda item: (-item[1].games, item[0]))
    return [
        {"actions": list(path), "games": node.games, "red": node.points / node.games}
        for path, node in chosen
    ]


def placement_counts(games: OwnGames) -> np.ndarray:
    """float[P, N]: stones that each player placed on each cell, a game, symmetry taken out.

    Each game counts with all its copies under the start's symmetries, so the map has them too.
    """
    rules, cells = games.rules, games.rules.size**2
    placements = len(rules.order)
    placed = np.array([record.actions[:placements] for record in games.recorded.records])
    turned = turned_actions(rules, placed.reshape(len(placed), placements))
    counts = np.zeros((rules.players, cells))
    for column, player in enumerate(rules.order):
        cells_placed = turned[:, :, column].ravel() - first_placement(rules.size)
        np.add.at(counts[player], cells_placed, 1.0)
    return counts / (turned.shape[0] * turned.shape[1])


def pictures(games: OwnGames, tree: Tree, *, name: str) -> list[Picture]:
    """Heat maps of each player's placements; none where nobody places a stone."""
    from train.metrics.plot_style import INK, new_figure

    if not tree.rules.order:
        return []
    counts, size = placement_counts(games), tree.rules.size
    players = tree.rules.players
    figure = new_figure(size=(3.6 * players + 0.6, 3.9), dpi=144)
    axes = figure.subplots(1, players, squeeze=False)[0]
    for player, (plot, colour) in enumerate(zip(axes, COLOURS, strict=False)):
        shares = counts[player].reshape(size, size)
        image = plot.imshow(shares, cmap="viridis", vmin=0.0, vmax=counts.max())
        for row, column in np.ndindex(size, size):
            if shares[row, column] >= 0.005:
                bright = shares[row, column] > 0.6 * counts.max()
                plot.text(
                    column,
                    row,
                    f"{100 * shares[row, column]:.0f}",
                    ha="center",
                    va="center",
                    fontsize=7,
                    color="#000000" if bright else "#ffffff",
                )
        plot.set_xticks(range(size), [cell_name(i, grid=size)[0] for i in range(size)])
        plot.set_yticks(range(size), [str(row + 1) for row in range(size)])
        plot.set_title(f"{colour} places", loc="left", fontsize=11, color=INK)
        if player == players - 1:
            figure.colorbar(image, ax=list(axes), shrink=0.8, label="stones a game")
    caption = f"{name}, {tree.games:,} games; numbers in per cent of games, symmetry taken out"
    stem = "placements-" + "".join(c if c.isalnum() else "-" for c in name)
    return [Picture(stem, caption, figure)]


def _words(rules: Rules, path: Sequence[int]) -> str:
    return " ".join(format_action(action, grid=rules.size) for action in path)
