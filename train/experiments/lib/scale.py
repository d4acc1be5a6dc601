"""The tables of a scale that experiments share, and the kinds of their values."""

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, TypeVar

import pydantic
from pydantic import AfterValidator, Field

from train.runtime.errors import UsageError, validation_errors

_T = TypeVar("_T")
_SET = ("name", "seed", "evaluation", "checkpoint", "tracking", "init_from")


def refuse_keys(config: Mapping[str, Any], *keys: str) -> None:
    """Refuse keys of a run's config, such as `network.blocks`, that an experiment sets."""
    for key in keys:
        table, _, name = key.rpartition(".")
        fields = config.get(table) if table else config
        if isinstance(fields, Mapping) and name in fields:
            raise ValueError(f"config: {key} is set by the experiment: leave it out")


def _free_keys(config: dict[str, Any]) -> dict[str, Any]:
    refuse_keys(config, *_SET)
    return config


Count = Annotated[int, Field(ge=1)]
Pairs = Annotated[int, Field(ge=2, multiple_of=2)]
Plies = Annotated[int, Field(ge=0)]
Keys = Annotated[dict[str, Any], AfterValidator(_free_keys)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scale:
    """A table of a scale."""

    __pydantic_config__: ClassVar = pydantic.ConfigDict(extra="forbid")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingScale(Scale):
    """Trainings of one config's variants, and matches among them.

    Attributes:
      config: keys of the run's config that differ from the quickstart's, as tables.
      seeds: trainings of each variant.
      games: of each two players of a seed.
      simulations: of a move in these games.
      opening_plies: random plies that games start with.
    """

    config: Keys
    seeds: Count
    games: Pairs
    simulations: Count
    opening_plies: Plies


def validated(kind: type[_T], fields: Mapping[str, Any], *, where: str) -> _T:
    """Tables as a dataclass; the message of a `UsageError` begins with `where`.

    Raises:
      UsageError: a key or a value is not allowed.
    """
    try:
        return pydantic.TypeAdapter(kind).validate_python(dict(fields))
    except pydantic.ValidationError as error:
        raise UsageError(f"{where}: {validation_errors(error)}") from None
