"""One position as an SVG picture: tiles, territory, walls, stones, last ply, caption.

Colour alone never tells the players apart: stones carry their player's letter, territory a pattern
(Red strokes, Blue dots, Green bars, Yellow crosses), and walls a line that is Red's none, Blue's
whole, Green's dashed and Yellow's dotted.
"""

from collections.abc import Iterable
from typing import Any

from wallgo_jax.board.geometry import HORIZONTAL, wall_on_side
from wallgo_jax.drawing import scale as scale_lib
from wallgo_jax.drawing.layout import (
    EDGE,
    FOOT,
    GAP,
    HEAD,
    STONE,
    TILE,
    Box,
    Layout,
    layout_of,
    text_size,
)
from wallgo_jax.drawing.scale import Scale
from wallgo_jax.drawing.svg import document, element, number
from wallgo_jax.drawing.theme import PATTERN, Theme
from wallgo_jax.notation import COLOURS, COLUMNS, LETTERS, cell_name
from wallgo_jax.view import captions
from wallgo_jax.view.snapshot import NOBODY, LastPly, Snapshot

_WALL_DASHES = (None, "none", "7 5", "0.1 5")
"""The line on each player's walls as a dash array; None for no line."""


def draw(
    snapshot: Snapshot,
    theme: Theme,
    *,
    under: Iterable[str] = (),
    over: Iterable[str] = (),
    caption: bool = True,
    scale: Scale | None = None,
) -> str:
    """Draw the picture as an SVG document.

    Args:
      under: more elements, between the tiles and the walls.
      over: more elements, above the stones.
      caption: whether to say below who moves and what each player holds.
      scale: the meaning of painted cells, drawn below all else.
    """
    layout = layout_of(snapshot)
    foot = layout.side + (FOOT if caption else 0)
    height = foot + (scale_lib.HEIGHT + 8 if scale else 0)
    label = " ".join(captions.status_lines(snapshot))
    parts = [
        ground(layout, theme, height),
        *territory(snapshot, layout, theme),
        *under,
        *(last_origin(snapshot.last, layout, theme) if snapshot.last else []),
        *walls(snapshot, layout, theme),
        *stones(snapshot, layout, theme),
        *(last_target(snapshot.last, layout, theme) if snapshot.last else []),
        *over,
        *(footer(snapshot, layout, theme) if caption else []),
        *(scale_lib.draw_row([scale], theme, y=foot, width=layout.side) if scale else []),
    ]
    return document(layout.side, height, *parts, label=label)


def ground(layout: Layout, theme: Theme, height: float) -> str:
    """Draw the page, the coordinates, the border and the empty tiles."""
    rim = [
        tile(layout, cell, theme.rim)
        for cell in range(layout.grid**2)
        if max(divmod(cell, layout.grid)) >= layout.size
    ]
    tiles = [
        tile(layout, row * layout.grid + column, theme.tile)
        for row in range(layout.size)
        for column in range(layout.size)
    ]
    frame = layout.frame()
    return element(
        "g",
        element("rect", width=layout.side, height=height, rx=10, fill=theme.page),
        *_coordinates(layout, theme),
        *rim,
        element(
            "rect",
            **frame._asdict(),
            rx=7,
            fill="none",
            stroke=theme.frame,
            stroke_width=3,
        ),
        *tiles,
    )


def _coordinates(layout: Layout, theme: Theme) -> list[str]:
    style = {"font_size": 13, "fill": theme.quiet, "text_anchor": "middle"}
    middle = HEAD / 2 - 2
    names = []
    for index in range(layout.size):
        along = layout.centre(index)[0]
        names.append(element("text", text=COLUMNS[index], x=along, y=middle + 4, **style))
        names.append(element("text", text=str(index + 1), x=middle, y=along + 4.5, **style))
    return names


def tile(layout: Layout, cell: int, fill: str, *children: str, **more: Any) -> str:
    """Draw the square of a cell."""
    x, y = layout.corner(cell)
    style = {"rx": 5, "fill": fill, **more}
    return element("rect", *children, x=x, y=y, width=TILE, height=TILE, **style)


def territory(snapshot: Snapshot, layout: Layout, theme: Theme) -> list[str]:
    """Draw each owned cell in its owner's tint and pattern."""
    return [
        owned_tile(layout, cell, owner, theme)
        for cell, owner in enumerate(snapshot.owner)
        if owner != NOBODY
    ]


def owned_tile(
    layout: Layout, cell: int, owner: int, theme: Theme, *children: str, **more: Any
) -> str:
    """Draw a cell of a player's territory."""
    drawn = tile(layout, cell, theme.tints[owner])
    x, y = layout.corner(cell)
    return element("g", *children, drawn, pattern(owner, x, y, theme), **more)


def pattern(owner: int, x: float, y: float, theme: Theme, *, strength: float = 1.0) -> str:
    """Draw the pattern of an owner, NOBODY's a lattice, into the tile with that corner.

    Paths need no ids, which would clash where a page holds several pictures.
    """
    colour = theme.quiet if owner == NOBODY else theme.edges[owner]
    style = {"stroke": colour, "stroke_linecap": "round", "fill": "none"}
    width = 3.2 if owner == 1 else 1.5
    steps = "".join(f"M{number(x + a)} {number(y + b)}{way}" for a, b, way in _PATTERNS[owner])
    return element("path", d=steps, stroke_width=width, opacity=PATTERN * strength, **style)


def _diagonals() -> tuple[tuple[float, float, str], ...]:
    lines, low, high = [], 4.0, TILE - 4
    for total in (15.0, 29.0, 44.0, 59.0, 73.0):
        left = max(low, total - high)
        length = number(total - 2 * left)
        lines.append((left, total - left, f"l{length} -{length}"))
    return tuple(lines)


def _make_patterns() -> dict[int, tuple[tuple[float, float, str], ...]]:
    """Return each owner's strokes: (x, y) in the tile and the way from there as SVG writes it."""
    strokes = _diagonals()
    back = tuple((TILE - x, y, way.replace("l", "l-", 1)) for x, y, way in strokes)
    four, three = (7.0, 17.0, 27.0, 37.0), (9.0, 22.0, 35.0)
    return {
        NOBODY: (*strokes, *back),
        0: strokes,
        1: tuple((x, y, "h.01") for y in four for x in four),
        2: tuple((5.0, y, "h34") for y in four),
        3: tuple((x, y, "m-3.5 0h7m-3.5 -3.5v7") for y in three for x in three),
    }


_PATTERNS = _make_patterns()


def walls(snapshot: Snapshot, layout: Layout, theme: Theme) -> list[str]:
    """Draw every wall in its builder's colour."""
    return [
        wall((each.orientation, each.cell), each.builder, layout, theme) for each in snapshot.walls
    ]


def wall(
    place: tuple[int, int], player: int, layout: Layout, theme: Theme, *children: str, **more: Any
) -> str:
    """Draw a wall at (orientation, cell)."""
    box, paint = layout.wall(*place), {"fill": theme.players[player], "stroke": theme.edges[player]}
    bar = element("rect", **box._asdict(), rx=3, stroke_width=1, **paint)
    return element("g", *children, bar, _wall_line(place, player, layout, theme), **more)


def _wall_line(place: tuple[int, int], player: int, layout: Layout, theme: Theme) -> str:
    dashes = _WALL_DASHES[player]
    if dashes is None:
        return ""
    box, inset = layout.wall(*place), 5.0
    if place[0] == HORIZONTAL:
        way = f"M{number(box.x + inset)} {number(box.y + box.height / 2)}h{box.width - 2 * inset:g}"
    else:
        way = f"M{number(box.x + box.width / 2)} {number(box.y + inset)}v{box.height - 2 * inset:g}"
    style = {"stroke": theme.letters[player], "stroke_width": 1.6, "stroke_linecap": "round"}
    return element("path", d=way, fill="none", stroke_dasharray=dashes, **style)


def stones(snapshot: Snapshot, layout: Layout, theme: Theme) -> list[str]:
    """Draw every stone on the board."""
    drawn = []
    for cell, (player, index) in sorted(snapshot.stone_at.items()):
        x, y = layout.centre(cell)
        name = f"{COLOURS[player]}'s stone {LETTERS[player]}{index} on "
        title = element("title", text=name + cell_name(cell, grid=snapshot.grid))
        drawn.append(element("g", title, stone(player, theme), transform=f"translate({x:g} {y:g})"))
    return drawn


def stone(player: int, theme: Theme) -> str:
    """Draw a stone with its player's letter around the origin."""
    style = {"fill": theme.players[player], "stroke": theme.edges[player], "stroke_width": 2}
    return element("circle", r=STONE, **style) + letter(player, theme, size=17)


def letter(player: int, theme: Theme, *, size: float, x: float = 0.0, y: float = 0.0) -> str:
    """Draw a player's letter with its middle at (x, y)."""
    style = {"font_size": size, "font_weight": "bold", "text_anchor": "middle"}
    # Capitals are about 0.72 of the size high; text stands on its baseline.
    at = {"x": x, "y": y + 0.36 * size}
    return element("text", text=LETTERS[player], fill=theme.letters[player], **at, **style)


def last_origin(last: LastPly, layout: Layout, theme: Theme) -> list[str]:
    """Draw an empty ring where the last stone came from."""
    if last.origin is None or last.origin == last.target:
        return []
    x, y = layout.centre(last.origin)
    style = {"fill": "none", "stroke": theme.edges[last.player], "stroke_width": 2}
    return [element("circle", cx=x, cy=y, r=STONE - 3, stroke_dasharray="4 4", **style)]


def last_target(last: LastPly, layout: Layout, theme: Theme) -> list[str]:
    """Draw a ring round the last stone and an outline round the last wall."""
    x, y = layout.centre(last.target)
    style = {"fill": "none", "stroke": theme.accent, "stroke_width": 2}
    marks = [element("circle", cx=x, cy=y, r=STONE + 3.5, **style)]
    if last.side is not None:
        box = layout.wall(*wall_on_side(last.target, last.side, grid=layout.grid))
        marks.append(element("rect", **box._asdict(), rx=3, **style))
    return marks


def footer(snapshot: Snapshot, layout: Layout, theme: Theme) -> list[str]:
    """Draw each player's territory and walls left, then who moves or who won."""
    return [
        *tally(snapshot, layout, theme),
        footer_line(captions.step_text(snapshot), layout, theme),
    ]


def footer_line(text: str, layout: Layout, theme: Theme) -> str:
    """Draw a line at the foot of the picture, smaller if the board is small."""
    room = layout.side - HEAD - EDGE + GAP
    size = text_size(text, room=room, most=14.0)
    y = layout.side + FOOT - 12
    return element("text", text=text, x=HEAD, y=y, font_size=size, fill=theme.ink)


def tally(snapshot: Snapshot, layout: Layout, theme: Theme) -> list[str]:
    """Draw for each player a disc, the territory and, if limited, the walls left."""
    slot = (layout.side - HEAD - EDGE + GAP) / snapshot.players
    size = min(14.0, slot / _widest_entry(snapshot))
    y = layout.side + 12
    drawn = []
    for player, cells in enumerate(snapshot.territory):
        x, radius, middle = HEAD + player * slot, 0.55 * size, y - 0.36 * size
        colours = {"fill": theme.players[player], "stroke": theme.edges[player]}
        disc = element("circle", cx=x + radius, cy=middle, r=radius, **colours)
        sign = letter(player, theme, size=0.72 * size, x=x + radius, y=middle)
        style: dict[str, Any] = {"y": y, "font_size": size, "fill": theme.ink}
        drawn += [
            disc,
            sign,
            element("text", text=str(cells), x=x + 2.6 * radius, font_weight="bold", **style),
        ]
        if snapshot.walls_left is not None:
            at = x + 2.6 * radius + 1.9 * size
            bar = Box(at, middle - radius, 0.3 * size, 2 * radius)
            text = str(snapshot.walls_left[player])
            drawn += [element("rect", rx=2, **colours, **bar._asdict())]
            style |= {"x": at + 0.55 * size, "fill": theme.quiet}
            drawn += [element("text", text=text, **style)]
    return drawn


def _widest_entry(snapshot: Snapshot) -> float:
    """Return the width of a player's entry in the tally, with the space after it, at size 1."""
    if snapshot.walls_left is None:
        return 4.2
    # Two digits at least: the size stays where walls left fall below ten.
    digits = max(2, *(len(str(walls)) for walls in snapshot.walls_left))
    return 4.2 + 0.65 * digits
