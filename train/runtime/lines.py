"""Lines of the console that fit its width: a bar, figures in the order of their rank, a table."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from rich.text import Text

_LEAST_BAR, _MOST_BAR = 8, 40
_GAP = "  "
MOST_LINES = 200
"""Lines of finished iterations that a run leaves on a terminal, at the most."""


class Column(NamedTuple):
    """A figure of an iteration: a column of a table, or a phrase of a line."""

    heading: str
    width: int  # characters, of the heading at least
    rank: int  # 0 for the last that is left out where there is no room
    text: Callable[[Mapping[str, Any]], str]
    """The figure of a row; empty where the row has none."""
    phrase: str
    """A format of the text that says what it is, such as `{} games/s`."""


def bar_line(
    title: str, share: float, tail: Sequence[str], width: int, *, needs_bar: bool = True
) -> Text:
    """A title, a bar, and texts behind it.

    Args:
      share: that is done, from 0 to 1.
      tail: texts, the most important last; where they do not fit the first are left out.
      width: characters of the line, never more.
      needs_bar: whether the bar is more important than all texts but the last; else it is the
        first to be left out.
    """
    kept, least = list(tail), 1 + _LEAST_BAR if needs_bar else 0
    while len(kept) > 1 and len(title) + least + sum(2 + len(part) for part in kept) > width:
        kept.pop(0)
    room = width - len(title) - 1 - sum(2 + len(part) for part in kept)
    line = Text(title, no_wrap=True, overflow="crop")
    if room >= _LEAST_BAR:
        size = min(room, _MOST_BAR)
        full = int(size * min(max(share, 0.0), 1.0))
        line.append(" ").append("━" * full, "green").append("─" * (size - full), "dim")
    for part in kept:
        line.append(f"{_GAP}{part}")
    line.truncate(width, overflow="ellipsis")
    return line


def figures_line(figures: Sequence[str], width: int) -> Text:
    """As many figures as fit, from the first on."""
    text = ""
    for figure in figures:
        longer = f"{text} · {figure}" if text else figure
        if len(longer) > width:
            break
        text = longer
    line = Text(text or (figures[0] if figures else ""), no_wrap=True, style="dim")
    line.truncate(width, overflow="ellipsis")
    return line


def columns_for(columns: Sequence[Column], width: int) -> list[Column]:
    """The columns of the lowest ranks that fit a width, in their order."""
    kept = list(columns)
    while len(kept) > 1 and _table_width(kept) > width:
        kept.remove(max(kept, key=lambda column: column.rank))
    return kept


def header_line(columns: Sequence[Column]) -> str:
    """The headings above `row_line`."""
    return _GAP.join(column.heading.rjust(column.width) for column in columns)


def row_line(columns: Sequence[Column], row: Mapping[str, Any]) -> str:
    """The figures of a row below their headings."""
    return _GAP.join(column.text(row).rjust(column.width) for column in columns)


def phrases(columns: Sequence[Column], row: Mapping[str, Any]) -> list[str]:
    """The figures that a row has, each with what it is, in the order of their rank."""
    found = []
    for column in sorted(columns, key=lambda column: column.rank):
        text = column.text(row)
        if text and column.phrase:
            found.append(column.phrase.format(text))
    return found


def line_every(total: int) -> int:
    """Iterations a line: the least of 1, 2, 5, 10, 20, 50 ... with at most `MOST_LINES` lines."""
    scale = 1
    while True:
        for step in (1, 2, 5):
            if total <= MOST_LINES * step * scale:
                return step * scale
        scale *= 10


def _table_width(columns: Sequence[Column]) -> int:
    return sum(column.width for column in columns) + len(_GAP) * (len(columns) - 1)
