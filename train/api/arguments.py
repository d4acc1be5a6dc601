"""Types of the arguments of verbs: what they may be, and beside the type what only a shell shows,
such as the name of a value.

Nothing here loads JAX, so that a help page is there at once.
"""

import enum
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import pydantic
import tyro
from pydantic import Field

from train.config import DEFAULT_RULES
from train.runtime.fields import Real, Whole

if TYPE_CHECKING:
    from train.analysis.late_positions import LatePositions
    from train.api.configs import AnyRules as AnyRules
    from train.api.configs import Source as Source
    from train.api.players import AnyPlayer as AnyPlayer
    from train.api.states import States as States
    from train.arena.match_openings import Positions
    from train.ratings.pool import Entrant
    from train.runtime.interrupts import Shown
    from wallgo_jax.formats.records import Record
    from wallgo_jax.formats.sources import LoadedGame
    from wallgo_jax.view.game_replay import Game

SOLVED_RULES = '{"size": 3, "stones": 1, "order": [0, 1]}'
"""The rules of `accuracy` where neither it nor the player says any."""


class FileUse(enum.Enum):
    """What is done with the file that an option names."""

    READ = "read"
    WRITTEN = "written"
    PICTURE = "picture"
    GROWN = "grown"


READ, WRITTEN, PICTURE, GROWN = FileUse


def arg(metavar: str | None = None, hint: str | None = None, **more: Any) -> Any:
    """How a help page names an option's value, and its default in words; empty for none."""
    return tyro.conf.arg(metavar=metavar, help_behavior_hint=hint, **more)


# What Python may give; below, what a shell can spell of it.
if TYPE_CHECKING:
    AnyGame = Game | Record | LoadedGame | str | Path
    """A game, a record, or what `train.load_game` takes."""
    File = str | Path
    Files = Sequence[File]
    Flag = bool
    LateFile = File | LatePositions
    """A file of proven positions, or what it holds."""
    Openings = File | Positions
    """A file of positions to start from, or what it holds."""
    Progress = Shown
    """Whether a bar is shown; or a command's console."""
    Rated = AnyPlayer | Path | Entrant
    """A player of a pool; a `Path` is a run's directory and stands for its checkpoints."""
    Target = Source | None
    """What makes a config, or a trained player's name."""
    ReadFile = WrittenFile = WrittenFolder = File
else:
    _File = Annotated[pydantic.SkipValidation[Path], READ, arg("FILE", "")]
    _Text = pydantic.SkipValidation[str]
    AnyGame = Annotated[_Text, READ, arg("GAME")]
    AnyPlayer = Annotated[_Text, arg("PLAYER")]
    AnyRules = Annotated[
        _Text, READ, arg("RULES", f"(default: the players' own, else {DEFAULT_RULES})")
    ]
    File = Annotated[Path, arg("FILE", "")]
    Files = Annotated[tuple[Path, ...], READ, arg("FILE ...", "")]
    Flag = Annotated[bool, arg(hint="")]
    LateFile = Openings = _File
    Progress = pydantic.SkipValidation[Any]
    Rated = Annotated[_Text, arg("RUN|PLAYER")]
    ReadFile = Annotated[Path, READ, arg("FILE", "")]
    Source = Target = Annotated[_Text, READ]
    States = pydantic.SkipValidation[Any]
    WrittenFile = Annotated[Path, WRITTEN, arg("FILE", "")]
    WrittenFolder = Annotated[Path, arg("FOLDER", "")]

Games = Annotated[Whole, Field(ge=1, le=2**30)]
"""The most that a match can count in int32, each opening in every seating."""
MoveSeconds = Annotated[Real, Field(ge=0.001, le=3600, allow_inf_nan=False)]
