"""Openings with the board's symmetries taken out: a tree of first plies, and where stones stand.

Symmetries are those of the rules' start: turned by one of them, it has the same stones. A sequence
of plies stands for all its turned copies; its representative has the smallest action numbers.

G games, P players, N cells, D plies, K symmetries.
"""

import collections
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from train.arena.result import wilson_interval
from train.experiments.lib import stats
from train.experiments.lib.pages import Picture, Table
from train.experiments.lib.stats import Estimate
from train.experiments.lib.work import SelfplayGames
from train.metrics.plot_style import GREY, INK, new_figure
from train.runtime.host import fetch
from wallgo_jax.board.geometry import NUM_SYMMETRIES
from wallgo_jax.game import symmetry
from wallgo_jax.game.actions import NO_ACTION
from wallgo_jax.game.rules import Rules
from wallgo_jax.game.sizes import first_placement
from wallgo_jax.game.state import make_variant
from wallgo_jax.notation import COLOURS, cell_name, format_action

Plies = tuple[int, ...]
_LINES = 12
"""Branches of the table of lines, each with its most common continuation."""
_LEAVES, _NODES = 18, 60
"""Most branches and plies of the tree that are shown."""
_LEAST = 0.005  # share of the games that a shown ply must have
_SPACE = "\u2003\u2003"  # Markdown and consoles keep it


class OpeningNode(NamedTuple):
    """Games that share their first plies."""

    games: int
    points: float  # Red's wins, a draw as half


class OpeningTree(NamedTuple):
    """The openings of some games."""

    rules: Rules
    games: int
    nodes: dict[Plies, OpeningNode]  # by first plies, representatives
    setups: dict[Plies, int]  # by placements in any order, representatives

    def words(self, path: Sequence[int]) -> str:
        """Plies in the notation of moves."""
        return " ".join(format_action(action, grid=self.rules.size) for action in path)


class ShownPly(NamedTuple):
    """A ply of the tree that is shown."""

    path: Plies
    node: OpeningNode
    row: float  # of the drawing, from the top; a parent stands at the middle of its children


def start_symmetries(rules: Rules) -> list[int]:
    """The symmetries that leave each player's stones of the start where they are."""
    variant = jax.tree.map(jnp.asarray, make_variant(rules))

    def stands_alike(number: int) -> bool:
        turned = symmetry.turn_cells(variant.start, jnp.int32(number), variant)
        return bool((np.sort(turned) == np.sort(variant.start)).all())

    return list(filter(stands_alike, range(NUM_SYMMETRIES)))


def turned_actions(rules: Rules, actions: np.ndarray) -> np.ndarray:
    """int32[K, G, D]: actions [G, D] under each symmetry of the start; NO_ACTION stays."""
    variant = jax.tree.map(jnp.asarray, make_variant(rules))
    is_action = actions != NO_ACTION
    filled = jnp.asarray(np.where(is_action, actions, 0))
    turned = [
        fetch(symmetry.turn_action(filled, jnp.int32(number), variant))
        for number in start_symmetries(rules)
    ]
    return np.where(is_action, np.stack(turned), NO_ACTION)


def tree_of(games: SelfplayGames, *, depth: int) -> OpeningTree:
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
    nodes: dict[Plies, OpeningNode] = {}
    setups: collections.Counter[Plies] = collections.Counter()
    for row, gained in enumerate(points):
        copies = [tuple(int(action) for action in copy[row]) for copy in turned]
        best = min(copies)
        for length in range(1, depth + 1):
            path = best[:length]
            if path[-1] == NO_ACTION:
                break
            # A prefix of the smallest copy is the smallest copy of the prefix.
            old = nodes.get(path, OpeningNode(0, 0.0))
            nodes[path] = OpeningNode(old.games + 1, old.points + float(gained))
        setups[min(setup_of(rules, copy[:placements]) for copy in copies)] += 1
    return OpeningTree(rules, len(points), nodes, dict(setups))


def setup_of(rules: Rules, placed: Sequence[int]) -> Plies:
    """The placements in any order, sorted: player, cell, player, cell, ..."""
    pairs = sorted(zip(rules.order, placed, strict=False))
    return tuple(number for pair in pairs for number in pair)


def record(tree: OpeningTree) -> list[dict[str, Any]]:
    """JSON-ready nodes that at least one game in two hundred passes, the most common first."""
    least = max(2, tree.games // 200)
    chosen = [(path, node) for path, node in tree.nodes.items() if node.games >= least]
    chosen.sort(key=lambda item: (-item[1].games, item[0]))
    return [
        {"actions": list(path), "games": node.games, "red": node.points / node.games}
        for path, node in chosen
    ]


def line_table(tree: OpeningTree, *, title: str) -> Table:
    """The most common setups and the most common line after each."""
    placements = max(len(tree.rules.order), 1)
    ends = [path for path in tree.nodes if len(path) == placements]
    ends.sort(key=lambda path: (-tree.nodes[path].games, path))
    rows = []
    for path in ends[:_LINES]:
        node, line = tree.nodes[path], _longest_line(tree, path)
        rows.append(
            [
                tree.words(path),
                stats.percent(node.games / tree.games),
                stats.percent(node.points / node.games),
                tree.words(line[len(path) :]),
                stats.percent(tree.nodes[line].games / node.games),
            ]
        )
    heads = ("first plies", "share", "Red wins", "most common line after them", "share of these")
    return Table(title, heads, rows)


def _longest_line(tree: OpeningTree, path: Plies) -> Plies:
    """A path with its most common continuation, ply by ply, to the tree's depth."""
    while True:
        longer = [
            (node.games, tuple(-action for action in other), other)
            for other, node in tree.nodes.items()
            if len(other) == len(path) + 1 and other[: len(path)] == path
        ]
        if not longer:
            return path
        path = max(longer)[2]


def most_common(tree: OpeningTree, *, leaves: int = _LEAVES, nodes: int = _NODES) -> list[ShownPly]:
    """The most common plies, each after its parent and before less common siblings.

    Args:
      tree: of openings.
      leaves: most branches.
      nodes: most plies.
    """
    least = max(2, _LEAST * tree.games)
    # A parent has at least the games of its child and is shorter, so it comes first.
    ordered = sorted(tree.nodes, key=lambda path: (-tree.nodes[path].games, len(path), path))
    children: dict[Plies, list[Plies]] = {(): []}
    ends = 0
    for path in ordered:
        if tree.nodes[path].games < least or len(children) > nodes:
            break
        parent = path[:-1]
        if parent not in children:
            continue  # it was left out for its many siblings
        more = bool(children[parent]) or not parent
        if more and ends == leaves:
            continue
        ends += more
        children[parent].append(path)
        children[path] = []
    shown: list[ShownPly] = []
    rows = 0

    def place(path: Plies) -> float:
        nonlocal rows
        below = []
        for child in children[path]:
            number = len(shown)
            shown.append(ShownPly(child, tree.nodes[child], 0.0))
            below.append(place(child))
            shown[number] = shown[number]._replace(row=below[-1])
        if not below:
            rows += 1
            return rows - 1.0
        return (below[0] + below[-1]) / 2

    place(())
    return shown


def tree_table(tree: OpeningTree, *, title: str) -> Table:
    """The tree as text: deeper plies stand further to the right."""
    rows = []
    for path, node, _ in most_common(tree):
        red, space = node.points / node.games, _SPACE * (len(path) - 1)
        estimate = Estimate(red, *wilson_interval(red, node.games), node.games)
        share = stats.percent(node.games / tree.games)
        rows.append([space + tree.words(path[-1:]), share, *estimate.cells()])
    return Table(title, ("ply", "share of games", "Red wins", "95 %"), rows)


def tree_pictures(tree: OpeningTree, *, name: str) -> list[Picture]:
    """The tree as a drawing: wide lines are common, colours say who wins."""
    from matplotlib import colormaps

    shown, colours = most_common(tree), colormaps["coolwarm"]
    if not shown:
        return []
    depth, height = max(len(each.path) for each in shown), max(each.row for each in shown) + 1
    figure = new_figure(size=(1.15 * depth + 1.2, 0.42 * height + 0.9), dpi=144)
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_xlim(-0.1, depth + 0.55)
    axes.set_ylim(height - 0.4, -0.6)
    first = [each.row for each in shown if len(each.path) == 1]
    rows = {each.path: each.row for each in shown} | {(): (first[0] + first[-1]) / 2}
    for path, (games, points), row in shown:
        share, red, x, parent = games / tree.games, points / games, len(path), rows[path[:-1]]
        line = {"color": GREY, "linewidth": 0.4 + 8 * share, "solid_joinstyle": "round"}
        ends = (x - 1, x - 0.6, x - 0.4, x), (parent, parent, row, row)
        axes.plot(*ends, alpha=0.5, zorder=1, **line)
        words = f"{tree.words(path[-1:])}\n{100 * share:.1f} · {100 * red:.0f}"
        box = {"boxstyle": "round,pad=0.25", "edgecolor": GREY, "linewidth": 0.5}
        box |= {"facecolor": colours(0.5 + (red - 0.5) * 0.8)}
        place = {"ha": "center", "va": "center", "fontsize": 6.5}
        axes.text(x, row, words, color=INK, zorder=2, bbox=box, **place)
    axes.plot([0], [rows[()]], "o", color=INK, markersize=4)
    caption = (
        f"{name}, {tree.games:,} games, symmetry taken out; below each ply its share of the games "
        "and Red's win rate in per cent, the redder the higher"
    )
    return [Picture(f"openings-{_plain(name)}", caption, figure)]


def placement_counts(games: SelfplayGames) -> np.ndarray:
    """float[P, N]: stones that each player placed on each cell, a game, symmetry taken out.

    Each game counts with all its copies under the start's symmetries, so the map has them too.
    """
    rules, placements = games.rules, len(games.rules.order)
    placed = np.array([record.actions[:placements] for record in games.recorded.records])
    turned = turned_actions(rules, placed.reshape(len(placed), placements))
    counts = np.zeros((rules.players, rules.size**2))
    for column, player in enumerate(rules.order):
        np.add.at(counts[player], turned[:, :, column].ravel() - first_placement(rules.size), 1.0)
    return counts / (turned.shape[0] * turned.shape[1])


def placement_pictures(games: SelfplayGames, tree: OpeningTree, *, name: str) -> list[Picture]:
    """Heat maps of each player's placements; none where nobody places a stone."""
    if not tree.rules.order:
        return []
    counts, size, players = placement_counts(games), tree.rules.size, tree.rules.players
    figure = new_figure(size=(3.6 * players + 0.6, 3.9), dpi=144)
    axes = figure.subplots(1, players, squeeze=False)[0]
    for player, (plot, colour) in enumerate(zip(axes, COLOURS, strict=False)):
        shares = counts[player].reshape(size, size)
        image = plot.imshow(shares, cmap="viridis", vmin=0.0, vmax=counts.max())
        for row, column in np.argwhere(shares >= 0.005):
            ink = "#000000" if shares[row, column] > 0.6 * counts.max() else "#ffffff"
            place = {"ha": "center", "va": "center", "fontsize": 7, "color": ink}
            plot.text(column, row, f"{100 * shares[row, column]:.0f}", **place)
        plot.set_xticks(range(size), [cell_name(i, grid=size)[0] for i in range(size)])
        plot.set_yticks(range(size), [str(row + 1) for row in range(size)])
        plot.set_title(f"{colour} places", loc="left", fontsize=11, color=INK)
        if player == players - 1:
            figure.colorbar(image, ax=list(axes), shrink=0.8, label="stones a game")
    caption = f"{name}, {tree.games:,} games; numbers in per cent of games, symmetry taken out"
    return [Picture(f"placements-{_plain(name)}", caption, figure)]


def _plain(name: str) -> str:
    """A player's name as a part of a file's name."""
    return "".join(c if c.isalnum() else "-" for c in name)
