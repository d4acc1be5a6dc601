"""What a topic finds, as data: paragraphs, tables, pictures and figures for machines."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Table(NamedTuple):
    """A table of text; `markdown` and the console show the same cells."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def lines(self, width: int) -> list[str]:
        """The table for a terminal; one that is too wide becomes a block for each row."""
        cells = [[cell.replace("`", "") for cell in row] for row in (self.heads, *self.rows)]
        widths = [max(len(row[column]) for row in cells) for column in range(len(self.heads))]
        if sum(widths) + 2 * len(widths) <= width:
            padded = [
                "  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip()
                for row in cells
            ]
            return [self.title, *padded, ""]
        found, longest = [self.title], max(map(len, cells[0]))
        for row in cells[1:]:
            pairs = zip(cells[0], row, strict=True)
            found += [f"  {head.ljust(longest)}  {cell}" for head, cell in pairs if cell]
            found.append("")
        return found

    def markdown(self) -> str:
        """The table as Markdown, below its title."""
        lines = [f"**{self.title}**", "", _line(self.heads), _line(["---"] * len(self.heads))]
        return "\n".join([*lines, *map(_line, self.rows)])


class Picture(NamedTuple):
    """A figure of matplotlib with the name of its files and a line of small print."""

    name: str
    caption: str
    figure: Any


@dataclasses.dataclass(frozen=True)
class Report:
    """A finished topic.

    Attributes:
      title: of the page.
      text: paragraphs that say what was measured, what agrees with the paper and what does not.
      tables: in the order of the page.
      pictures: likewise.
      data: JSON-ready figures, more than the tables show.
    """

    title: str
    text: Sequence[str]
    tables: Sequence[Table]
    pictures: Sequence[Picture]
    data: Mapping[str, Any]

    def _repr_markdown_(self) -> str:
        parts = [f"### {self.title}", *self.text, *(table.markdown() for table in self.tables)]
        return "\n\n".join(parts)


def percent(share: float, digits: int = 1) -> str:
    """A share as `53.6 %`."""
    return f"{100 * share:.{digits}f} %"


def percent_range(low: float, high: float, digits: int = 1) -> str:
    """An interval of shares as `52.2 to 55.0`."""
    return f"{100 * low:.{digits}f} to {100 * high:.{digits}f}"


def points_range(low: float, high: float) -> str:
    """An interval of differences of shares as ` (+1.2 to +3.4)`, in points; empty for NaN ends."""
    if math.isnan(low):
        return ""
    return f" ({100 * low:+.1f} to {100 * high:+.1f})"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
