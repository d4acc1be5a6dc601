"""Colour scales: a number as a colour, and the bar with figures that says which colour is which.

Scales are straight lines in CIELAB, so that equal steps of the number look like equal steps of
colour; from the bare tile the lightness changes in one direction, which also holds in grey.
"""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from wallgo_jax.drawing.layout import text_size
from wallgo_jax.drawing.svg import element, number
from wallgo_jax.drawing.theme import Theme

HEIGHT = 42.0
"""Room for a bar with its label above and its figures below."""
_STEPS = 32
_BAR = 10.0

# sRGB to XYZ of the white point D65 (IEC 61966-2-1).
_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
_WHITE = _XYZ.sum(axis=1)


class Scale(NamedTuple):
    """A colour bar.

    Attributes:
      label: what the numbers are, with their unit.
      colours: from left to right.
      ticks: (place from 0, left, to 1, right; text) of the figures below the bar.
      cover: draws more over the bar, given its (x, y, width, height); None for nothing.
    """

    label: str
    colours: tuple[str, ...]
    ticks: tuple[tuple[float, str], ...]
    cover: Callable[[float, float, float, float], str] | None = None


def shade(low: str, high: str, share: float) -> str:
    """Return the colour at a share, 0 to 1, of the straight way in CIELAB between two colours."""
    return _to_hex((1 - share) * _to_lab(low) + share * _to_lab(high))


def ramp(low: str, high: str) -> tuple[str, ...]:
    """Return the colours from `low` to `high` in equal steps."""
    return tuple(shade(low, high, step / (_STEPS - 1)) for step in range(_STEPS))


def of_values(values: np.ndarray, theme: Theme, *, label: str) -> tuple[Scale, list[str]]:
    """Return the scale of some numbers, and the colour of each.

    Numbers of one sign run from 0, the bare tile, to the largest magnitude; with both signs the
    positive ones run to `theme.heat` and the negative ones to `theme.chill`. In grey the two ends
    look alike: the bar has a minus over its left half, as `minus` draws it on cells.
    """
    most = float(np.abs(values).max(initial=0.0)) or 1.0
    ends = {True: theme.heat, False: theme.chill}
    signs = {bool(value > 0) for value in values if value}
    only = signs.pop() if len(signs) == 1 else None
    colours = [
        shade(theme.tile, ends[value > 0] if only is None else theme.heat, abs(value) / most)
        for value in values.tolist()
    ]
    if only is None and (values != 0).any():
        bar = (*ramp(theme.chill, theme.tile), *ramp(theme.tile, theme.heat))
        figures = (-most, -most / 2, 0.0, most / 2, most)
        cover = functools.partial(_minus_over_bar, theme)
    else:
        end = -most if only is False else most
        bar, figures, cover = ramp(theme.tile, theme.heat), (0.0, end / 2, end), None
    ticks = tuple((i / (len(figures) - 1), f"{x:.3g}") for i, x in enumerate(figures))
    return Scale(label, bar, ticks, cover), colours


def minus(x: float, y: float, theme: Theme) -> str:
    """Draw a minus from (x, y) to the right, readable on any colour."""
    way = {"d": f"M{number(x)} {number(y)}h6", "stroke_linecap": "round", "fill": "none"}
    halo = element("path", stroke=theme.tile, stroke_width=4, **way)
    return halo + element("path", stroke=theme.ink, stroke_width=1.6, **way)


def _minus_over_bar(theme: Theme, x: float, y: float, width: float, height: float) -> str:
    return minus(x + width / 4 - 3, y + height / 2, theme)


def draw(scale: Scale, theme: Theme, *, x: float, y: float, width: float) -> str:
    """Draw the bar with its label above and its figures below, in `HEIGHT` units from y down."""
    step, top = width / len(scale.colours), y + 15
    bar = [
        # Neighbours overlap a little, or a converter leaves hair lines between them.
        element("rect", x=x + i * step, y=top, width=step + 0.4, height=_BAR, fill=colour)
        for i, colour in enumerate(scale.colours)
    ]
    frame = {"x": x, "y": top, "width": width, "height": _BAR, "fill": "none"}
    text = {"font_size": 11, "fill": theme.ink, "text_anchor": "middle"}
    size = text_size(scale.label, room=width, most=11.0)
    label = {**text, "font_size": size, "x": x + width / 2, "y": y + 10}
    ticks = [
        element("text", text=figure, x=x + place * width, y=top + _BAR + 12, **text)
        for place, figure in scale.ticks
    ]
    return element(
        "g",
        element("text", text=scale.label, **label),
        *bar,
        "" if scale.cover is None else scale.cover(x, top, width, _BAR),
        element("rect", stroke=theme.frame, stroke_width=1, **frame),
        *ticks,
    )


def draw_row(scales: Sequence[Scale], theme: Theme, *, y: float, width: float) -> list[str]:
    """Draw bars side by side, centred in a page of that width."""
    space = 34.0
    each = min(240.0, (width - space) / max(1, len(scales)) - space)
    left = (width - len(scales) * (each + space) + space) / 2
    return [
        draw(scale, theme, x=left + i * (each + space), y=y, width=each)
        for i, scale in enumerate(scales)
    ]


def _to_lab(colour: str) -> np.ndarray:
    """float[3]: L*, a*, b* of `#rrggbb`."""
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    ratio = _XYZ @ linear / _WHITE
    f = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio * (29 / 6) ** 2 / 3 + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def _to_hex(lab: np.ndarray) -> str:
    middle = (lab[0] + 16) / 116
    f = np.array([middle + lab[1] / 500, middle, middle - lab[2] / 200])
    ratio = np.where(f > 6 / 29, f**3, (f - 4 / 29) * 3 * (6 / 29) ** 2)
    linear = np.clip(np.linalg.solve(_XYZ, ratio * _WHITE), 0, 1)
    rgb = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return "#" + "".join(f"{round(255 * float(part)):02x}" for part in rgb)
