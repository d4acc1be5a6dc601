"""Options of the interface's calls, which the commands have too; pydantic checks them.

Nothing here loads JAX, so that a command's help page is there at once.
"""

import dataclasses
import enum
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_type_hints

import pydantic
import tyro
from pydantic import Field

from train.runtime.errors import usage_errors
from train.runtime.fields import AtLeastOne, Count, Real, Seed, Whole
from train.search.config import MAX_SIMULATIONS
from wallgo_jax.cli.parsing import Flag

FORMS = ROUND_ROBIN, ELIMINATION = "round-robin", "double-elimination"
DEFAULT_RULES = "wallzero-4stone"
SOLVED_RULES = '{"size": 3, "stones": 1, "order": [0, 1]}'
"""The rules of `accuracy` where neither it nor the player says any."""
Record = TypeVar("Record")
Call = TypeVar("Call", bound=Callable[..., Any])


class FileUse(enum.Enum):
    """What is done with the file that an option names."""

    READ, WRITTEN, PICTURE = "read", "written", "picture"


READ, WRITTEN, PICTURE = FileUse


def arg(metavar: str | None = None, hint: str | None = None) -> Any:
    """How a help page names an option's value, and its default in words; empty for none."""
    return tyro.conf.arg(metavar=metavar, help_behavior_hint=hint)


File = Annotated[Path | None, arg("FILE", "")]
Read = Annotated[File, READ]
Written = Annotated[File, WRITTEN]
Simulations = Annotated[Whole, Field(ge=0, le=MAX_SIMULATIONS)]
Games = Annotated[Whole, Field(ge=1, le=2**30)]
"""The most that a match can count in int32, each opening in every seating."""
Players = Annotated[list[Any], Field(min_length=2)]
RandomSeed = Annotated[Seed, tyro.conf.arg(help="Random seed.")]
WeightsFile = Annotated[
    Read,
    tyro.conf.arg(help="TOML file of a run, whose [heuristics] are the weights of ethen and wjx."),
]
Records = Annotated[
    Written,
    tyro.conf.arg(
        help="File to write the games to, a JSON object a line; compressed if it ends in .gz."
    ),
]


def checked(record: type[Record], given: Mapping[str, Any]) -> Record:
    """The keyword arguments of a call as a record.

    Raises:
      UsageError: in pydantic's words, an argument is unknown or has a value that is not allowed.
    """
    config = pydantic.ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    with usage_errors():
        return pydantic.TypeAdapter(pydantic.with_config(config)(record)).validate_python(given)


def takes(record: type) -> Callable[[Call], Call]:
    """Show a record's fields as keyword arguments of a call that gives its `**options` to
    `checked`: help and notebooks ask for its signature."""

    def show(call: Call) -> Call:
        signature, kinds = inspect.signature(call), get_type_hints(record)
        plain = [each for each in signature.parameters.values() if each.kind != each.VAR_KEYWORD]
        for field in dataclasses.fields(record):
            how = {"default": field.default, "annotation": kinds[field.name]}
            plain.append(inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, **how))
        call.__signature__ = signature.replace(parameters=plain)  # type: ignore[attr-defined]
        return call

    return show


def valid(kind: Any, **named: Any) -> Any:
    """A value with its name, which pydantic reads as a type of the fields below.

    Raises:
      UsageError: in pydantic's words, it is not allowed.
    """
    (name,) = named
    record = dataclasses.make_dataclass("Argument", [(name, kind)])
    return getattr(checked(record, named), name)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlayerArguments:
    """Options of every call that makes players of names."""

    rules: Any = None
    """Rules, their fields, or a preset's name, a JSON object, or a file (JSON or TOML); by default
    those that a trained player has learned."""
    seed: RandomSeed = 0
    config: WeightsFile = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class GameArguments(PlayerArguments):
    """Options of every call in which players meet."""

    games: Games = 400
    """Games of a match, a meeting or a pairing at least, so that each opening is played in every
    order of the players: half of them with each colour."""
    opening_plies: Count = 2
    """Random plies that all games of an opening start with."""
    transfer: Flag = False
    """Let networks play rules that they were not trained on."""
    move_seconds: Annotated[Real, Field(ge=0.001, le=3600, allow_inf_nan=False)] = 60.0
    """Seconds that a program (external:COMMAND) may take for a move; else it loses the game."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class MatchArguments(GameArguments):
    """Options of a match."""

    batch: AtLeastOne = 400
    """Games played in parallel; a sequential test looks at the result after each batch."""
    sprt: str = ""
    """Stop once a sequential test of two players tells which lead in Elo points is likelier, such
    as 0,20."""
    players_place: Flag = False
    """Let the players place all stones; the random plies come after."""
    openings: Any = None
    """File of positions to start from in place of random plies: the ends of recorded games, or
    diagrams; each is played in every seating."""
    records: Records = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class TournamentArguments(GameArguments):
    """Options of a tournament."""

    form: Annotated[Literal["round-robin", "double-elimination"], tyro.conf.arg(name="format")] = (
        "round-robin"
    )
    """Each player meets each, or is out after two losses; with more than two at a table, all
    tables meet."""
    games: Games = 2
    heats: Count = 0
    """Players of a heat before an elimination (its last start behind); 0 for no heats."""
    records: Records = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class EloArguments(GameArguments):
    """Options of a pool of rated players."""

    games: Games = 40
    minutes: Annotated[Real, Field(gt=0, allow_inf_nan=False)] = 10.0
    """Minutes to play for, but at least the games that connect all players: one pairing for each
    player but one. Once the first is played, a line says how long they take. Each call plays on for
    as long."""
    budget: Annotated[
        AtLeastOne | None, arg("INT", "(default: as many as the minutes have room for)")
    ] = None
    """Games in all, kept ones included, however long they take."""
    simulations: Simulations = 64
    """Simulations a move of checkpoints and exported folders; 0 for their raw policy."""
    checkpoints: Annotated[Literal[0] | Annotated[Whole, Field(ge=2)], arg("INT")] = 0
    """Most checkpoints of a run to rate, evenly spread; 0 for all."""
    zero: Annotated[str | None, arg("PLAYER")] = None
    """Player whose rating is 0; an empty name for a mean of 0. By default the first that is no
    run's, else the mean is 0."""
    cache: File = None
    """File that keeps the games; without one they are kept by nothing but the result."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class AccuracyArguments(PlayerArguments):
    """Options of the measurement of a player where the value of the game is known."""

    positions: Annotated[Count, arg(hint="")] = 0
    """Positions of random games to sample, each solved by alpha-beta (one stone each, at most 4x4
    cells), in place of all positions of a board that is solved as a whole (3x3)."""
    min_walls: Count = 4
    """Fewest walls of a sampled position; fewer take alpha-beta longer."""
    late: Any = None
    """File of proven late positions, to measure there instead."""
    batch: AtLeastOne = 512
    """Positions evaluated in parallel."""
