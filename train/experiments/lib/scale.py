"""The tables of a scale that experiments share, and the kinds of their values."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, TypeVar

import pydantic
from pydantic import AfterValidator, Field

from train.runtime.errors import UsageError, validation_errors

_T = TypeVar("_T", bound="Scale")
_SET = ("name", "seed", "evaluation", "checkpoint", "tracking", "init_from")


def _refuse_keys(config: Mapping[str, Any], *keys: str) -> None:
    """Refuse keys of a run's config, such as `network.blocks`, that an experiment sets."""
    for key in keys:
        table, _, name = key.rpartition(".")
        fields = config.get(table) if table else config
        if isinstance(fields, Mapping) and name in fields:
            raise ValueError(f"config: {key} is set by the experiment: leave it out")


def _free_keys(config: dict[str, Any]) -> dict[str, Any]:
    _refuse_keys(config, *_SET)
    return config


Count = Annotated[int, Field(ge=1)]
Pairs = Annotated[int, Field(ge=2, multiple_of=2)]
Plies = Annotated[int, Field(ge=0)]
Keys = Annotated[dict[str, Any], AfterValidator(_free_keys)]


class Scale(pydantic.BaseModel):
    """A table of a scale."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")


class TrainingScale(Scale):
    """Trainings of one config's variants, and matches among them."""

    SETS: ClassVar[tuple[str, ...]] = ()
    """Keys of the config that the experiment sets."""

    config: Keys  # keys of the run's config that differ from the quickstart's, as tables
    seeds: Count  # trainings of each variant
    games: Pairs  # of each two players of a seed
    simulations: Count  # of a move in these games
    opening_plies: Plies  # random plies that games start with

    def model_post_init(self, context: Any) -> None:
        _refuse_keys(self.config, *self.SETS)


def validated(kind: type[_T], fields: Mapping[str, Any], *, where: str) -> _T:
    """A table of a kind; the message of a `UsageError` begins with `where`.

    Raises:
      UsageError: a key or a value is not allowed.
    """
    try:
        return kind.model_validate(fields)
    except pydantic.ValidationError as error:
        raise UsageError(f"{where}: {validation_errors(error)}") from None
