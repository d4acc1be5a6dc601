"""A table of text that the console, a notebook and a Markdown page show alike."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import rich.table
from rich.text import Text

_FIGURE = re.compile(r"[-+−–·∞]?\d*|[-+−]?\d.*")
"""A cell of figures, which stands at the right; so does one that is empty or a mark."""

_LABEL = 12
"""Characters of the first head that stay on one line."""


class Table(NamedTuple):
    """Rows of text below heads; backquotes are for Markdown alone."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""

    def markdown(self) -> str:
        """The table as Markdown, below its title."""
        lines = [self.heads, ["---"] * len(self.heads), *self.rows]
        return "\n".join([f"**{self.title}**", "", *(f"| {' | '.join(row)} |" for row in lines)])

    def __rich__(self) -> rich.table.Table:
        shown = rich.table.Table(
            title=Text(self.title) if self.title else None,
            caption=Text(self.caption) if self.caption else None,
            title_justify="left",
            caption_justify="left",
        )
        for place, head in enumerate(self.heads):
            are_figures = all(_FIGURE.fullmatch(row[place]) for row in self.rows)
            justify = "right" if place and are_figures else "left"
            least = None if place else min(_LABEL, len(head))
            shown.add_column(Text(_plain(head)), overflow="fold", justify=justify, min_width=least)
        for row in self.rows:
            shown.add_row(*(Text(_plain(cell)) for cell in row))
        return shown


def _plain(cell: str) -> str:
    return cell.replace("`", "")
