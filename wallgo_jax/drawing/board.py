"""One position as an SVG picture: tiles, territory, walls, stones, last ply, caption."""

from collections.abc import Iterable
from typing import Any

from wallgo_jax.board.geometry import wall_on_side
from wallgo_jax.drawing.layout import EDGE, FOOT, GAP, HEAD, STONE, TILE, Layout, layout_of
from wallgo_jax.drawing.svg import document, element
from wallgo_jax.drawing.theme import Theme
from wallgo_jax.notation import COLOURS, COLUMNS, LETTERS, cell_name
from wallgo_jax.view import captions
from wallgo_jax.view.snapshot import NOBODY, LastPly, Snapshot


def draw(
    snapshot: Snapshot,
    theme: Theme,
    *,
    under: Iterable[str] = (),
    over: Iterable[str] = (),
    caption: bool = True,
) -> str:
    """Draw the picture as an SVG document.

    Args:
      under: more elements, between the tiles and the walls.
      over: more elements, above the stones.
      caption: whether to say below who moves and what each player holds.
    """
    layout = layout_of(snapshot)
    height = layout.side + (FOOT if caption else 0)
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
    """Draw a tint over each owned cell."""
    return [
        tile(layout, cell, theme.tint(owner))
        for cell, owner in enumerate(snapshot.owner)
        if owner != NOBODY
    ]


def walls(snapshot: Snapshot, layout: Layout, theme: Theme) -> list[str]:
    """Draw every wall in its builder's colour."""
    return [
        wall((each.orientation, each.cell), each.builder, layout, theme) for each in snapshot.walls
    ]


def wall(
    place: tuple[int, int], player: int, layout: Layout, theme: Theme, *children: str, **more: Any
) -> str:
    """Draw a wall at (orientation, cell)."""
    return element(
        "rect",
        *children,
        **layout.wall(*place)._asdict(),
        rx=3,
        fill=theme.players[player],
        stroke=theme.edges[player],
        stroke_width=1,
        **more,
    )


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
    """Draw a stone around the origin."""
    disc = element(
        "circle", r=STONE, fill=theme.players[player], stroke=theme.edges[player], stroke_width=2
    )
    shine = element("circle", cx=-4, cy=-5, r=4.5, fill="#ffffff", fill_opacity=0.35)
    return disc + shine


def last_origin(last: LastPly, layout: Layout, theme: Theme) -> list[str]:
    """Draw an empty ring where the last stone came from."""
    if last.origin is None or last.origin == last.target:
        return []
    x, y = layout.centre(last.origin)
    style = {"fill": "none", "stroke": theme.players[last.player], "stroke_width": 2}
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
    return [*tally(snapshot, layout, theme), footer_line(caption_text(snapshot), layout, theme)]


def caption_text(snapshot: Snapshot) -> str:
    """Say the last ply and who moves, or who won."""
    last = (
        "" if snapshot.last is None else f": {captions.ply_text(snapshot.last, grid=snapshot.grid)}"
    )
    return f"Ply {snapshot.ply}{last} · {captions.status(snapshot)}"


def footer_line(text: str, layout: Layout, theme: Theme) -> str:
    """Draw a line at the foot of the picture, smaller if the board is small."""
    room = layout.side - HEAD - EDGE + GAP
    size = min(14.0, 1.9 * room / max(len(text), 1))
    y = layout.side + FOOT - 12
    return element("text", text=text, x=HEAD, y=y, font_size=size, fill=theme.ink)


def tally(snapshot: Snapshot, layout: Layout, theme: Theme) -> list[str]:
    """Draw for each player a disc, the territory and, if limited, the walls left."""
    slot = (layout.side - HEAD - EDGE + GAP) / snapshot.players
    size = min(14.0, slot / 4.2)
    y = layout.side + 12
    drawn = []
    for player, cells in enumerate(snapshot.territory):
        x, radius, colour = HEAD + player * slot, size / 2.6, theme.players[player]
        number_at, bar_at = x + 3 * radius, x + 3 * radius + 2 * size
        disc = element("circle", cx=x + radius, cy=y - radius, r=radius, fill=colour)
        number = {"text": str(cells), "x": number_at, "font_weight": "bold", "fill": theme.ink}
        drawn += [disc, element("text", y=y, font_size=size, **number)]
        if snapshot.walls_left is not None:
            bar = {"x": bar_at, "y": y - 2 * radius - 1, "width": 4, "height": 2 * radius + 2}
            left = {"text": str(snapshot.walls_left[player]), "x": bar_at + 8, "fill": theme.quiet}
            drawn += [element("rect", rx=2, fill=colour, **bar)]
            drawn += [element("text", y=y, font_size=size, **left)]
    return drawn
