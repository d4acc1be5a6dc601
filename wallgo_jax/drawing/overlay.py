"""Layers over a position: reachable cells, heat over the cells, a search's moves.

`heat` takes numbers, `paint` colours, for pictures whose boards share one scale.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np

from wallgo_jax.board.geometry import wall_on_side
from wallgo_jax.drawing import board
from wallgo_jax.drawing import scale as scale_lib
from wallgo_jax.drawing.layout import STONE, TILE, Layout, layout_of
from wallgo_jax.drawing.scale import Scale, of_values
from wallgo_jax.drawing.svg import element, number
from wallgo_jax.drawing.theme import Theme
from wallgo_jax.notation import cell_name, decode_play, placement_of, target_of
from wallgo_jax.view.illegality import illegality
from wallgo_jax.view.snapshot import Snapshot

Key = TypeVar("Key")

MAX_ARROWS = 8
"""Moves drawn of a search; the rest have too few visits to see."""


def reach(snapshot: Snapshot, theme: Theme, player: int) -> list[str]:
    """Draw a dot on each cell where a move of the player can end, a ring round its own stones.

    Raises:
      ValueError: if there is no such player.
    """
    if not 0 <= player < snapshot.players:
        raise ValueError(f"reach: {player!r} is not a player from 0 to {snapshot.players - 1}")
    layout, colour = layout_of(snapshot), theme.players[player]
    drawn = []
    for cell in sorted(snapshot.reach[player]):
        x, y = layout.centre(cell)
        if cell in snapshot.stone_at:
            style = {"fill": "none", "stroke": colour, "stroke_width": 2.5, "r": STONE + 6}
        else:
            style = {"fill": colour, "stroke": theme.edges[player], "stroke_width": 1, "r": 5}
        drawn.append(element("circle", cx=x, cy=y, **style))
    return drawn


def heat(
    snapshot: Snapshot, theme: Theme, values: Sequence[float] | np.ndarray, *, label: str
) -> tuple[list[str], Scale]:
    """Paint each cell with the colour of its value, and return the scale for the picture's foot.

    Values of one sign run from the bare tile to one hue; with both signs, positive and negative
    ones have a hue each, and negative ones a minus besides. No hue is a player's. The largest
    magnitude is the end of the scale.

    Args:
      values: one number a cell of the grid: [grid²] or [grid, grid].
      label: what the numbers are.

    Raises:
      ValueError: if the number of values is wrong, or one is not finite.
    """
    flat = np.asarray(values, dtype=float).reshape(-1)
    if flat.size != snapshot.grid**2:
        raise ValueError(
            f"heat: {flat.size} values, not {snapshot.grid**2}, one for each cell of the grid"
        )
    if not np.isfinite(flat).all():
        raise ValueError("heat: a value is not finite")
    cells = list(snapshot.cells)
    scale, shown = of_values(flat[cells], theme, label=label)
    colours = dict(zip(cells, shown, strict=True))
    grid = [colours.get(cell, theme.tile) for cell in range(flat.size)]
    drawn = paint(snapshot, theme, grid, [f"{value:.3g}" for value in flat])
    if flat[cells].min() < 0 < flat[cells].max():
        corners = [layout_of(snapshot).corner(cell) for cell in cells if flat[cell] < 0]
        drawn += [scale_lib.minus(x + 5, y + 7, theme) for x, y in corners]
    return drawn, scale


def paint(
    snapshot: Snapshot,
    theme: Theme,
    colours: Sequence[str],
    notes: Sequence[str] | None = None,
    owners: Sequence[tuple[int, float]] | None = None,
) -> list[str]:
    """Paint each cell, territory included; stones stand on the bare tile.

    Args:
      colours: `#rrggbb` for each cell of the grid.
      notes: for each cell, what to say of it beside its name where the pointer rests.
      owners: for each cell, the owner whose pattern it has, NOBODY included, and the strength of
        the pattern from 0 to 1.

    Raises:
      ValueError: if the number of colours, notes or owners is wrong.
    """
    for what, given in (("colours", colours), ("notes", notes), ("owners", owners)):
        if given is not None and len(given) != snapshot.grid**2:
            raise ValueError(
                f"paint: {len(given)} {what}, not {snapshot.grid**2}, one for each cell of the grid"
            )
    layout, drawn = layout_of(snapshot), []
    for cell in snapshot.cells:
        name = cell_name(cell, grid=snapshot.grid)
        title = element("title", text=f"{name}: {notes[cell]}" if notes else name)
        drawn.append(board.tile(layout, cell, colours[cell], title))
        if owners is not None:
            owner, strength = owners[cell]
            drawn.append(board.pattern(owner, *layout.corner(cell), theme, strength=strength))
        if cell in snapshot.stone_at:
            x, y = layout.centre(cell)
            drawn.append(element("circle", cx=x, cy=y, r=STONE + 2.5, fill=theme.tile))
    return drawn


def mark(snapshot: Snapshot, theme: Theme, cell: int) -> list[str]:
    """Draw a frame round the cell that the picture is about."""
    layout = layout_of(snapshot)
    x, y = layout.corner(cell)
    box = {"x": x + 1, "y": y + 1, "width": TILE - 2, "height": TILE - 2, "rx": 4, "fill": "none"}
    outline = element("rect", stroke=theme.tile, stroke_width=8, **box)
    return [outline, element("rect", stroke=theme.mark, stroke_width=5, **box)]


def arrows(
    snapshot: Snapshot, theme: Theme, weights: Mapping[int, float], *, percents: bool = True
) -> list[str]:
    """Draw a search's moves as arrows, bars (walls) and discs (placements), bold by share.

    Args:
      weights: legal public action of the player to move -> visits or probability, at least 0.
      percents: write the shares beside them.

    Raises:
      ValueError: if a weight is negative or not finite, or an action is not legal.
    """
    layout, player = layout_of(snapshot), snapshot.player
    walks, walls, placements = _shares(snapshot, weights)
    told = 1.0 if percents else 0.0
    return [
        *(_bar(place, bold, player, layout, theme) for place, _, bold in _most(walls)),
        *(_arrow(at, told * s, bold, layout, theme) for at, s, bold in _most(walks)),
        *(_disc(at, told * s, bold, player, layout, theme) for at, s, bold in _most(placements)),
    ]


def _shares(
    snapshot: Snapshot, weights: Mapping[int, float]
) -> tuple[dict[tuple[int, int], float], dict[tuple[int, int], float], dict[int, float]]:
    """Return the shares of the total: of each (origin, target), each wall, each placement."""
    if not all(math.isfinite(weight) and weight >= 0 for weight in weights.values()):
        raise ValueError("arrows: a weight is negative or not finite")
    total = float(sum(weights.values())) or 1.0
    walks: dict[tuple[int, int], float] = {}
    walls: dict[tuple[int, int], float] = {}
    placements: dict[int, float] = {}
    for action, weight in weights.items():
        if (reason := illegality(snapshot, int(action))) is not None:
            raise ValueError(f"arrows: {reason}")
        share = float(weight) / total
        cell = placement_of(int(action), grid=snapshot.grid)
        if cell is not None:
            placements[cell] = placements.get(cell, 0.0) + share
            continue
        play = decode_play(int(action))
        target = target_of(play, grid=snapshot.grid)
        assert target is not None
        place = wall_on_side(target, play.side, grid=snapshot.grid)
        walks[play.cell, target] = walks.get((play.cell, target), 0.0) + share
        walls[place] = walls.get(place, 0.0) + share
    return walks, walls, placements


def _most(shares: Mapping[Key, float]) -> list[tuple[Key, float, float]]:
    """Return the largest shares, as (key, share, share of the largest), the largest last."""
    ranked = sorted(shares.items(), key=lambda item: item[1])[-MAX_ARROWS:]
    return [(key, share, share / ranked[-1][1]) for key, share in ranked if share > 0]


def _bar(place: tuple[int, int], bold: float, player: int, layout: Layout, theme: Theme) -> str:
    return board.wall(place, player, layout, theme, opacity=_ink(bold))


def _disc(cell: int, share: float, bold: float, player: int, layout: Layout, theme: Theme) -> str:
    x, y = layout.centre(cell)
    disc = element("circle", cx=x, cy=y, r=STONE, fill=theme.players[player], opacity=_ink(bold))
    return disc + _percent(x, y, share, theme)


def _arrow(walk: tuple[int, int], share: float, bold: float, layout: Layout, theme: Theme) -> str:
    """Draw an arrow from the stone's rim into the target cell; a ring for a stone that stays."""
    origin, target = walk
    (x0, y0), (x1, y1) = layout.centre(origin), layout.centre(target)
    width = 2 + 4 * bold
    style = {"stroke": theme.accent, "stroke_width": width, "opacity": _ink(bold)}
    if origin == target:
        ring = element("circle", cx=x0, cy=y0, r=STONE + 5, fill="none", **style)
        return ring + _percent(x0, y0 + 13, share, theme)
    length = math.hypot(x1 - x0, y1 - y0)
    dx, dy = (x1 - x0) / length, (y1 - y0) / length
    head = 6 + 1.6 * width
    neck_x, neck_y = x1 - head * dx, y1 - head * dy
    start = STONE + 2
    line = element("line", x1=x0 + start * dx, y1=y0 + start * dy, x2=neck_x, y2=neck_y, **style)
    half = 0.55 * head
    corners = [(x1, y1)] + [(neck_x - s * half * dy, neck_y + s * half * dx) for s in (1, -1)]
    points = " ".join(f"{number(x)},{number(y)}" for x, y in corners)
    tip = element("polygon", points=points, fill=theme.accent, opacity=_ink(bold))
    # Beyond the tip of an arrow that points up, below the others: not on the shaft.
    return line + tip + _percent(x1, y1 - 12 if dy < 0 else y1 + 13, share, theme)


def _ink(bold: float) -> float:
    return 0.3 + 0.6 * bold


def _percent(x: float, y: float, share: float, theme: Theme) -> str:
    """Draw the share in percent with a halo, readable on any colour; nothing below 1 %."""
    if share < 0.01:
        return ""
    text = f"{100 * share:.0f}%"
    style = {"x": x, "y": y + 4, "font_size": 11, "font_weight": "bold", "text_anchor": "middle"}
    halo = element("text", text=text, stroke=theme.page, stroke_width=3.5, **style)
    return halo + element("text", text=text, fill=theme.ink, **style)
