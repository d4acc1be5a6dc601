"""The command that looks into a network (`inspect`): its parts, attention, predicted owners."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from train.cli import options
from train.cli.options import READ, WRITTEN, AtLeastOne, Positional, arg
from train.config import SHIPPED
from train.runtime.errors import UsageError
from train.runtime.fields import Whole
from wallgo_jax.cli.parsing import Program

if TYPE_CHECKING:
    from wallgo_jax.formats.sources import SourceRequest

Theme = Literal["light", "dark"]
_Pairs = Annotated[Whole, Field(ge=2, multiple_of=2)]
_SOME = Field(min_length=1)


@dataclasses.dataclass(frozen=True)
class Describe:
    """Describe a network part by part: shapes, parameters, multiply-adds, and its speed here."""

    EXAMPLES = ("describe runs/quickstart", "describe configs/restnet.toml --no-measure")

    target: Annotated[options.ShippedPlayer, arg("[CONFIG|PLAYER]"), READ] = SHIPPED
    """TOML file or trained player, named as in docs/players.md."""
    batch: AtLeastOne = 256
    """Boards of an evaluation whose speed is measured."""
    measure: Annotated[bool, arg(hint="")] = True
    """Leave the speed out, whose measurement takes some seconds."""
    json: options.Json = None

    def run(self) -> int:
        """Returns the exit code."""
        from rich.console import Console

        from train.analysis import describe

        described = describe.describe(self.target, batch=self.batch, measure=self.measure)
        Console().print(describe.describe_report(described))
        options.write_json(self.json, describe.describe_record(described))
        return 0


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
                f"inspect {type(self).__name__.lower()}: takes a game or position, and before it a "
                f"player in place of {SHIPPED}"
            )
        player, source = (SHIPPED, *self.words)[-2:]
        return player, SourceRequest(source, self.rules, game=self.game)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Attention(_Drawing):
    """Draw what a cell attends to, in each T block and head of a player's network."""

    EXAMPLES = ("attention RUN game.jsonl --ply 20 --cell C3 --out out/attention.svg",)

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
class Ownership(_Drawing):
    """Draw who will own each cell, as a player's network predicts, or a heuristic (`wjx`, `ethen`),
    beside how the game ended."""

    EXAMPLES = (
        "ownership runs/quickstart game.jsonl --ply 20 --out out/ownership.svg",
        "ownership wjx game.jsonl --ply 20 --out out/wjx.svg",
    )

    ply: Whole
    """Plies of the finished game to play before the network looks."""

    def run(self) -> int:
        """Returns the exit code."""
        from train.analysis.attention import draw_ownership

        draw_ownership(*self._asked(), ply=self.ply, out=self.out, theme=self.theme)
        options.say_written(self.out, f"ownership after ply {self.ply}")
        return 0


INSPECT = Program(
    name="python -m train inspect",
    description="Look into a network.",
    groups={
        "WHAT": {
            "describe": Describe,
            "attention": Attention,
            "ownership": Ownership,
        }
    },
    examples=("describe runs/quickstart",),
)


@dataclasses.dataclass(frozen=True)
class Inspect:
    """Look into a network: parts and speed, attention, predicted owners. `INSPECT` reads the
    words after it."""

    EXAMPLES = ("inspect describe runs/quickstart",)

    what: Positional[str]
    """describe, attention or ownership."""
