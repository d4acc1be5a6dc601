"""The commonest openings as a tree: each ply with its share of the games and Red's win rate."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from train.arena.result import wilson_interval
from train.metrics.plot_style import GREY, INK, new_figure
from train.study.frame.report import Picture, Table, percent, percent_range
from train.study.topics.openings import Node, Tree
from wallgo_jax.notation import format_action

Path = tuple[int, ...]

_LEAVES, _NODES = 18, 60
"""Most branches and plies that are shown."""
_LEAST = 0.005  # share of the games that a ply must have
_SPACE = "\u2003\u2003"  # Markdown and consoles keep it


class Shown(NamedTuple):
    """A ply of the tree that is shown."""

    path: Path
    node: Node
    row: float  # of the drawing, from the top; a parent stands at the middle of its children


def commonest(tree: Tree, *, leaves: int = _LEAVES, nodes: int = _NODES) -> list[Shown]:
    """The commonest plies, each after its parent and before less common siblings.

    Args:
      tree: of openings.
      leaves: most branches.
      nodes: most plies.
    """
    least = max(2, _LEAST * tree.games)
    # A parent has at least the games of its child and is shorter, so it comes first.
    ordered = sorted(tree.nodes, key=lambda path: (-tree.nodes[path].games, len(path), path))
    children: dict[Path, list[Path]] = {(): []}
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
    found: list[Shown] = []
    rows = 0

    def place(path: Path) -> float:
        nonlocal rows
        below = []
        for child in children[path]:
            found.append(Shown(child, tree.nodes[child], 0.0))
            mine = len(found) - 1
            found[mine] = found[mine]._replace(row=place(child))
            below.append(found[mine].row)
        if not below:
            rows += 1
            return rows - 1.0
        return (below[0] + below[-1]) / 2

    place(())
    return found


def table(tree: Tree, *, title: str) -> Table:
    """The tree as text: deeper plies stand further to the right."""
    rows = []
    for shown in commonest(tree):
        games, points = shown.node
        low, high = wilson_interval(points / games, games)
        rows.append(
            (
                _SPACE * (len(shown.path) - 1) + _word(tree, shown.path),
                percent(games / tree.games),
                percent(points / games),
                percent_range(low, high),
            )
        )
    return Table(title, ("ply", "share of games", "Red wins", "95 %"), tuple(rows))


def pictures(tree: Tree, *, name: str) -> list[Picture]:
    """The tree as a drawing: wide lines are common, colours say who wins."""
    shown = commonest(tree)
    if not shown:
        return []
    depth = max(len(each.path) for each in shown)
    height = max(each.row for each in shown) + 1
    figure = new_figure(size=(1.15 * depth + 1.2, 0.42 * height + 0.9), dpi=144)
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_xlim(-0.1, depth + 0.55)
    axes.set_ylim(height - 0.4, -0.6)
    _draw(axes, tree, shown)
    caption = (
        f"{name}, {tree.games:,} games, symmetry taken out; below each ply its share of the games "
        "and Red's win rate in per cent, the redder the higher"
    )
    stem = "openings-" + "".join(c if c.isalnum() else "-" for c in name)
    return [Picture(stem, caption, figure)]


def _draw(axes: Any, tree: Tree, shown: Sequence[Shown]) -> None:
    from matplotlib import colormaps

    colours = colormaps["coolwarm"]
    first = [each.row for each in shown if len(each.path) == 1]
    rows = {each.path: each.row for each in shown} | {(): (first[0] + first[-1]) / 2}
    for path, (games, points), row in shown:
        share, red = games / tree.games, points / games
        ends = [len(path) - 1, len(path) - 0.6, len(path) - 0.4, len(path)]
        parent = rows[path[:-1]]
        axes.plot(
            ends,
            [parent, parent, row, row],
            color=GREY,
            linewidth=0.4 + 8 * share,
            alpha=0.5,
            solid_joinstyle="round",
            zorder=1,
        )
        axes.text(
            len(path),
            row,
            f"{_word(tree, path)}\n{100 * share:.1f} · {100 * red:.0f}",
            ha="center",
            va="center",
            fontsize=6.5,
            color=INK,
            zorder=2,
            bbox={
                "boxstyle": "round,pad=0.25",
                "facecolor": colours(0.5 + (red - 0.5) * 0.8),
                "edgecolor": GREY,
                "linewidth": 0.5,
            },
        )
    axes.plot([0], [rows[()]], "o", color=INK, markersize=4)


def _word(tree: Tree, path: Path) -> str:
    return format_action(path[-1], grid=tree.rules.size)
