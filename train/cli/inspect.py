"""The commands that draw what a network sees: `attention` and `ownership`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from train.api.arguments import READ, WRITTEN, arg
from train.cli import options
from train.cli.options import Positional
from train.config import SHIPPED
from train.runtime.errors import UsageError
from train.runtime.fields import Whole

if TYPE_CHECKING:
    from wallgo_jax.formats.sources import SourceRequest

Theme = Literal["light", "dark"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Drawing:
    """A picture of what a network says of a game."""

    words: Annotated[
        Positional[tuple[str, ...]],
        arg("[PLAYER] SOURCE", f"(default player: {SHIPPED})"),
        READ,
    ]
    """Trained player, named as in docs/players.md, and a game or position, as `python -m wallgo_jax
    show` takes it."""
    out: Annotated[Path, arg("FILE"), WRITTEN]
    """File to write: a picture (.svg, .png) or the arrays (.npz, .json)."""
    rules: Annotated[
        options.SourceRules, arg(hint="(default: the record's, or the player's own)")
    ] = ""
    game: options.GameNumber = 1
    theme: Theme = "light"
    """Colours of pictures."""

    def _asked(self) -> tuple[str, SourceRequest]:
        """The player, and the game or position."""
        from wallgo_jax.formats.sources import SourceRequest

        if not 1 <= len(self.words) <= 2:
            raise UsageError(
                f"{options.word_of(type(self))}: takes a game or position, and before it a "
                f"player in place of {SHIPPED}"
            )
        player, source = (SHIPPED, *self.words)[-2:]
        return player, SourceRequest(source, self.rules, game=self.game)


@dataclasses.dataclass(frozen=True, kw_only=True)
class AttentionCommand(_Drawing):
    """Draw to which cells a cell attends, in each T block and head of a player's network."""

    cell: Annotated[str, arg("CELL")]
    """Cell whose attention is drawn, such as C3."""
    ply: Whole = -1
    """Plies of the game to play before the network looks; -1 for all."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.analysis.attention import draw_attention

        how = {"ply": self.ply, "cell": self.cell, "out": self.out, "theme": self.theme}
        draw_attention(*self._asked(), **how)
        options.say_written(self.out, f"attention of {self.cell}")
        return 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class OwnershipCommand(_Drawing):
    """Draw who will own each cell, as a player's network predicts, or a heuristic (`wjx`, `ethen`),
    beside how the game ended."""

    ply: Whole
    """Plies of the finished game to play before the network looks."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.analysis.attention import draw_ownership

        draw_ownership(*self._asked(), ply=self.ply, out=self.out, theme=self.theme)
        options.say_written(self.out, f"ownership after ply {self.ply}")
        return 0
