"""The command that reviews a game and writes its page (`review`)."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from train.api.arguments import WRITTEN, arg
from train.api.reviews import review_game
from train.cli import options
from train.cli.commands import made_from
from train.runtime.errors import UsageError
from train.runtime.showing import sparing

Theme = Literal["auto", "light", "dark"]
_Review: Any = made_from(review_game, "review")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReviewCommand(_Review):
    """Review a game: search every position, grade every move, write a page and figures."""

    out: Annotated[Path, arg("FILE"), WRITTEN] = Path("out/review.html")
    """Page to write."""
    json: Annotated[
        options.Written,
        tyro.conf.arg(help="File to write the figures to, as JSON."),
        arg(hint="(default: beside the page)"),
    ] = None
    records: options.Written = None
    """File to write the game's record to, with the value of each ply, which the replay page
    shows."""
    theme: Theme = "auto"
    """Colours of the page; `auto` follows the setting of the reader's system."""

    def run(self) -> int:
        """Returns the exit code."""
        from wallgo_jax.formats import records

        if self.out.suffix.lower() != ".html":
            raise UsageError(f"--out {self.out}: the page's ending must be .html")
        figures = self.json or self.out.with_suffix(".json")
        options.check_files(self.out, figures, self.records)
        review = self.call()
        written = {self.out: f"{len(review.game.actions)} plies"}
        with sparing(self.out):
            review.write(self.out, theme=self.theme)
        if self.records is not None:
            with sparing(self.records):
                records.write(self.records, [review.record])
            written[self.records] = "1 game"
        review = dataclasses.replace(review, written=written)
        return dataclasses.replace(self, json=figures).finish(review)
