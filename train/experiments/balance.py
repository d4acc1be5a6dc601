"""Is the game balanced, and how does strong play open? Games of a network against itself, each ply
searched in full with Gumbel noise, from the rules' start.

Intervals are over games (Wilson). All games are of one training, so the intervals do not say how
another seed's player would differ.
"""

import collections
import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from train.experiments import lab
from train.experiments.openings import Plies, setup_of, turned_actions
from train.experiments.selfplay_games import OwnGames, selfplay
from train.experiments.tables import Table
from train.metrics.figure import GREY, INK, new_figure
from train.runtime.host import fetch
from wallgo_jax.board import bitboard
from wallgo_jax.game.actions import NO_ACTION
from wallgo_jax.game.rules import PRESETS, Rules, named
from wallgo_jax.game.sizes import first_placement
from wallgo_jax.notation import COLOURS, cell_name, format_action

PAPER = {"wallzero-empty": "53.57 ± 1.38", "wallzero-4stone": "50.37 ± 1.38"}
"""Red's win rate in 5,000 games of self-play each ("WallZero", Chen, Arjonilla, Wu, Wu, slide
"Opening Strategy & Game Balance Analysis"), per cent."""
_LINES = 12
"""Branches of the table of lines, each with its most common continuation."""
_LEAVES, _NODES = 18, 60
"""Most branches and plies of the tree that are shown."""
_LEAST = 0.005  # share of the games that a shown ply must have


class OpeningNode(NamedTuple):
    """Games that share their first plies."""

    games: int
    points: float  # Red's wins, a draw as half


class OpeningTree(NamedTuple):
    """The openings of some games.

    A sequence of plies stands for all copies that symmetries of the rules' start turn it into; its
    representative has the smallest action numbers.
    """

    rules: Rules
    games: int
    depth: int  # most plies of a node
    nodes: dict[Plies, OpeningNode]  # by first plies, representatives
    setups: dict[Plies, int]  # by placements in any order, representatives

    def words(self, path: Sequence[int]) -> str:
        """Plies in the notation of moves."""
        return " ".join(format_action(action, grid=self.rules.size) for action in path)

    @property
    def ordered(self) -> list[Plies]:
        """First plies, the most common first, then those with the smallest actions."""
        return sorted(self.nodes, key=lambda path: (-self.nodes[path].games, path))


class ShownPly(NamedTuple):
    """A ply of the tree that is shown."""

    path: Plies
    node: OpeningNode
    row: float  # of the drawing, from the top; a parent stands at the middle of its children


@dataclasses.dataclass(frozen=True)
class Scale(lab.Options):
    """The scale of the page."""

    players: tuple[str, ...] = ("pretrained:wallzero-4stone-v2", "pretrained:wallzero-empty-v1")
    """Networks, each for the rules that it has learned."""
    simulations: tuple[int, ...] = (64,)
    """Numbers of simulations a move."""
    games: int = 5000
    """Games of each player at each number."""
    opening_depth: int = 6
    """Plies that the table of openings goes down to."""


def main(work: lab.Lab) -> dict[str, Any]:
    """Play the games and describe them."""
    scale = work.scale
    rows = []
    tables = {}
    for player in scale.players:
        lab.check_network(player)
    for player, simulations in itertools.product(scale.players, scale.simulations):
        games = selfplay(work, player, simulations=simulations, games=scale.games)
        presets = [preset for preset in PRESETS if named(preset) == games.rules]
        rules = (*presets, f"{games.rules.size}×{games.rules.size}")[0]
        name = f"{player}@{simulations}"
        tree = tree_of(games, depth=scale.opening_depth)
        owned = jnp.asarray(games.examples().outcome.owned)
        areas = np.asarray(fetch(bitboard.to_mask(owned, games.rules.size))).sum(axis=-1)
        row = {"player": f"`{name}`", "rules": f"`{rules}`", "paper": PAPER.get(rules, "")}
        rows.append(row | balance_of(games, tree, areas=areas))
        tables[_plain(name)] = line_table(tree, title=f"Openings of {name}")
        draw_placements(work, games, tree, name=name)
        draw_tree(work, tree, name=name)
    columns = [["player against itself", "player"], ["rules", "rules"], ["paper, %", "paper"]]
    columns += [["Red won, drawn, lost", "red", "counts"], ["Red wins, %", "red"]]
    columns += [["plies", "plies"], ["winner's share of cells, %", "share"]]
    columns += [["winner's lead", "margin"], ["distinct setups", "setups"]]
    columns += [["most common setup, %", "mode"], ["first eight plies unique, %", "eight"]]
    return work.finish({"table": Table("Balance", columns, rows), **tables})


def balance_of(games: OwnGames, tree: OpeningTree, *, areas: np.ndarray) -> dict[str, Any]:
    """Figures of the games of two players, who own int[G, 2] cells at their end: games that Red
    won, drew and lost, shares of the winner's cells, of the most common setup, and of
    games whose first eight plies no other game has, means of plies and of the winner's lead, and
    the number of setups."""
    reward, count = games.rewards[:, 0], len(games.plies)
    winner = np.where(reward[:, None] > 0, areas, areas[:, ::-1])[reward != 0]
    won = winner[winner.sum(axis=1) > 0]
    eights = collections.Counter(actions[:8] for actions in games.actions)
    return {
        "red": {
            "won": int((reward > 0).sum()),
            "drawn": int((reward == 0).sum()),
            "lost": int((reward < 0).sum()),
        },
        "plies": round(float(games.plies.mean()), 1),
        "share": round(100 * float((won[:, 0] / won.sum(axis=1)).mean()), 1) if len(won) else "",
        "margin": round(float((won[:, 0] - won[:, 1]).mean()), 1) if len(won) else "",
        "setups": len(tree.setups),
        "mode": {"kept": max(tree.setups.values()), "of": count},
        "eight": {"kept": list(eights.values()).count(1), "of": count},
    }


def tree_of(games: OwnGames, *, depth: int) -> OpeningTree:
    """Count the openings of games down to this many plies, and to the last placement at least."""
    rules, placements = games.rules, len(games.rules.order)
    depth = max(depth, placements)
    table = np.full((len(games.plies), depth), NO_ACTION, np.int32)
    for row, actions in enumerate(games.actions):
        first = actions[:depth]
        table[row, : len(first)] = first
    turned = turned_actions(rules, table).swapaxes(0, 1).tolist()  # [G, K, D]
    points = (1 + games.rewards[:, 0].clip(-1, 1)) / 2
    nodes: dict[Plies, OpeningNode] = {}
    setups: collections.Counter[Plies] = collections.Counter()
    for copies, gained in zip(turned, points.tolist(), strict=True):
        best = tuple(min(copies))
        for length in range(1, depth + 1):
            path = best[:length]
            if path[-1] == NO_ACTION:
                break
            # A prefix of the smallest copy is the smallest copy of the prefix.
            old = nodes.get(path, OpeningNode(0, 0.0))
            nodes[path] = OpeningNode(old.games + 1, old.points + gained)
        setups[min(setup_of(rules, copy[:placements]) for copy in copies)] += 1
    return OpeningTree(rules, len(points), depth, nodes, dict(setups))


def line_table(tree: OpeningTree, *, title: str) -> Table:
    """The most common setups and the most common line after each, ply by ply, to the tree's
    depth."""
    rows, placements, ordered = [], max(len(tree.rules.order), 1), tree.ordered
    for path in [each for each in ordered if len(each) == placements][:_LINES]:
        node, line = tree.nodes[path], path
        for length in range(placements + 1, tree.depth + 1):
            longer = (each for each in ordered if len(each) == length and each[:-1] == line)
            line = next(longer, line)
        after = tree.nodes[line].games
        row: dict[str, Any] = {"plies": tree.words(path), "line": tree.words(line[len(path) :])}
        row["share"] = {"kept": node.games, "of": tree.games}
        red = {"mean": node.points / node.games, "low": None, "high": None}
        rows.append(row | {"red": red, "after": {"kept": after, "of": node.games}})
    columns = [["first plies", "plies"], ["share, %", "share"], ["Red wins, %", "red"]]
    columns += [["most common line after them", "line"], ["share of these, %", "after"]]
    return Table(title, columns, rows)


def most_common(tree: OpeningTree, *, leaves: int = _LEAVES, nodes: int = _NODES) -> list[ShownPly]:
    """The most common plies, each after its parent and before less common siblings: at most this
    many branches and plies."""
    least, ends = max(2, _LEAST * tree.games), 0
    children: dict[Plies, list[Plies]] = {(): []}
    # A parent has at least the games of its child and is shorter, so it comes first.
    for path in sorted(tree.ordered, key=lambda path: (-tree.nodes[path].games, len(path))):
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


def draw_tree(work: lab.Lab, tree: OpeningTree, *, name: str) -> None:
    """Draw the tree as a drawing: wide lines are common, colours say who wins."""
    from matplotlib import colormaps

    shown, colours = most_common(tree), colormaps["coolwarm"]
    if not shown:
        return
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
    work.save_figure(f"openings-{_plain(name)}", figure, caption=caption)


def placement_counts(games: OwnGames) -> np.ndarray:
    """float[P, N]: stones that each player placed on each cell, a game, symmetry taken out.

    Each game counts with all its copies under the start's symmetries, so the map has them too.
    """
    rules, placements = games.rules, len(games.rules.order)
    placed = np.array([actions[:placements] for actions in games.actions])
    turned = turned_actions(rules, placed.reshape(len(placed), placements))
    counts = np.zeros((rules.players, rules.size**2))
    for column, player in enumerate(rules.order):
        np.add.at(counts[player], turned[:, :, column].ravel() - first_placement(rules.size), 1.0)
    return counts / (turned.shape[0] * turned.shape[1])


def draw_placements(work: lab.Lab, games: OwnGames, tree: OpeningTree, *, name: str) -> None:
    """Draw heat maps of each player's placements; none where nobody places a stone."""
    if not tree.rules.order:
        return
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
    work.save_figure(f"placements-{_plain(name)}", figure, caption=caption)


def _plain(name: str) -> str:
    """A player's name as a part of a file's name."""
    return "".join(c if c.isalnum() else "-" for c in name)


if __name__ == "__main__":
    lab.start(main, Scale, __file__)
