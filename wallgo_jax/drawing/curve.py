"""Charts over the plies of a game, as SVG for a page: shares of the win, lines such as territory.

A chart fills its box's width. Its line of class `cursor` stands at the first position; the page
moves it and reads clicks, so that ply t of T stands at t / T of the width.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from wallgo_jax.drawing.svg import element, number
from wallgo_jax.drawing.theme import Theme
from wallgo_jax.notation import COLOURS, LETTERS

WIDTH, HEIGHT = 600.0, 120.0
_DASHES = (None, "9 3", "3 3", "9 3 2 3")
"""The line of each player, so that colour alone tells nothing."""
_EXPECTED = 0.45
"""Opacity of lines that are only expected."""

STYLE = """  #bar { display: flex; margin-top: .4rem; height: 1.5rem; border-radius: 6px;
         overflow: hidden; }
  #bar span { flex: 1 1 0; min-width: 3.8rem; padding: 0 .4rem; line-height: 1.5rem;
              font-size: .85rem; white-space: nowrap; overflow: hidden; transition: flex-grow .3s; }
  #bar span:last-child { text-align: right; }
  #bar i { font-style: normal; }
  .chart { margin-top: .4rem; }
  .chart svg { display: block; width: 100%; height: 5.2rem; cursor: pointer; border-radius: 6px; }
  .has-chances #play-area { width: min(100vw - 20rem, 100vh - 21rem, 44rem); }
  @media (max-width: 44rem) {
    .has-chances #play-area { width: 100%; }
    .has-chances #board svg { width: min(100%, 100vh - 24rem); }
    .chart svg { height: 3rem; }
  }
"""
"""The style of a page with charts."""


class Line(NamedTuple):
    """One player's numbers over the T + 1 positions of a game; None where there is none."""

    player: int
    values: Sequence[float | None]
    is_expected: bool = False


def panel(chances: Sequence[Sequence[float | None]], theme: Theme) -> str:
    """Write the bar of the position shown and the chart of win chances [T + 1][P], as HTML."""
    drawn = shares(chances, theme, label="win chances over the game")
    parts = "".join(
        f'<span class="p{player}"><b>{LETTERS[player]}</b> <i></i></span>'
        for player in range(len(chances[0]))
    )
    return (
        f'\n    <div id="bar" role="img" aria-label="win chances">{parts}</div>'
        f'\n    <div class="chart">{drawn}</div>'
    )


def shares(chances: Sequence[Sequence[float | None]], theme: Theme, *, label: str) -> str:
    """Draw the win chances [T + 1][P] of a game.

    Two players share the height: the first player's part lies below. More have a line each.

    Args:
      label: what screen readers say.
    """
    if len(chances[0]) > 2:
        return lines(
            [Line(player, column) for player, column in enumerate(zip(*chances, strict=True))],
            theme,
            top=1.0,
            label=label,
        )
    first = [None if row[0] is None else float(row[0]) for row in chances]
    drawn = []
    for run in _runs(first):
        (x0, _), (x1, _) = run[0], run[-1]
        curve = " ".join(f"{number(x)},{number(y)}" for x, y in run)
        box = {"x": x0, "y": 0, "width": x1 - x0, "height": HEIGHT}
        area = f"{number(x0)},{number(HEIGHT)} {curve} {number(x1)},{number(HEIGHT)}"
        drawn += [
            element("rect", fill=theme.players[1], **box),
            element("polygon", points=area, fill=theme.players[0]),
            _stroke(curve, theme.page, width=2),
        ]
    return _chart([*drawn, _level(0.5, theme.page)], theme, label=label)


def lines(each: Sequence[Line], theme: Theme, *, top: float, label: str) -> str:
    """Draw a line for each player, from 0 at the foot to `top`."""
    drawn = [_level(share, theme.quiet) for share in (0.25, 0.5, 0.75)]
    for line in each:
        scaled = [None if value is None else value / top for value in line.values]
        for run in _runs(scaled):
            points = " ".join(f"{number(x)},{number(y)}" for x, y in run)
            drawn.append(
                _stroke(
                    points,
                    theme.players[line.player],
                    width=2.5,
                    dash=_DASHES[line.player],
                    opacity=_EXPECTED if line.is_expected else 1.0,
                )
            )
    return _chart(drawn, theme, label=label)


def legend(players: int) -> str:
    """Name the players' lines, for the words above a chart."""
    words = ("solid", "long dashes", "short dashes", "dash and dot")
    return ", ".join(f"{COLOURS[player]} {words[player]}" for player in range(players))


def _chart(parts: Sequence[str], theme: Theme, *, label: str) -> str:
    ground = element("rect", width=WIDTH, height=HEIGHT, fill=theme.tile)
    cursor = element(
        "line",
        class_="cursor",
        y1=0,
        y2=HEIGHT,
        stroke=theme.ink,
        stroke_width=2,
        vector_effect="non-scaling-stroke",
    )
    return element(
        "svg",
        ground,
        *parts,
        cursor,
        viewBox=f"0 0 {number(WIDTH)} {number(HEIGHT)}",
        preserveAspectRatio="none",
        role="img",
        aria_label=label,
    )


def _runs(values: Sequence[float | None]) -> Iterator[list[tuple[float, float]]]:
    """The points of each run of values that are there; a run of one is drawn a little wide."""
    last = max(len(values) - 1, 1)
    points = [
        None if value is None else (place / last * WIDTH, (1 - value) * HEIGHT)
        for place, value in enumerate(values)
    ]
    for is_there, group in itertools.groupby(points, key=lambda point: point is not None):
        run = [point for point in group if point is not None]
        if is_there:
            yield run if len(run) > 1 else [run[0], (run[0][0] + 2, run[0][1])]


def _level(share: float, colour: str) -> str:
    y = (1 - share) * HEIGHT
    return element(
        "line",
        x1=0,
        x2=WIDTH,
        y1=y,
        y2=y,
        stroke=colour,
        stroke_width=1,
        stroke_dasharray="2 4",
        vector_effect="non-scaling-stroke",
    )


def _stroke(
    points: str, colour: str, *, width: float, dash: str | None = None, opacity: float = 1.0
) -> str:
    more = {} if dash is None else {"stroke_dasharray": dash}
    return element(
        "polyline",
        points=points,
        fill="none",
        stroke=colour,
        stroke_width=width,
        stroke_linejoin="round",
        opacity=opacity,
        vector_effect="non-scaling-stroke",
        **more,
    )
