"""Every number of a config, an option, an argument or a scale has bounds, and so has every number
in a file or a message that counts something."""

import dataclasses
import typing
from collections.abc import Iterator
from typing import Any

import pydantic

from train.cli.command_line import PROGRAM
from train.config import RunConfig
from train.engine import protocol
from train.engine.options import EngineOptions
from train.experiments import ablation
from train.review.puzzle_check import PuzzleOptions
from wallgo_jax.game.rules import Rules

WHOLE = (True, 2**31, -(2**31) - 1, 2**63, 10**400)
REAL = (True, 5e-324, -1e-46, 1e-40, 1e39, -1e39, 10**400, float("inf"), float("nan"))
BELOW_ONE = ("ema_decay", "momentum", "lr_drops")


def tables() -> Iterator[type]:
    """Everything whose fields a user sets."""
    models = [
        each
        for module in (ablation, protocol)
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, pydantic.BaseModel)
    ]
    yield from (*PROGRAM.commands.values(), *models, EngineOptions, PuzzleOptions)
    rest: list[type] = [RunConfig]
    while rest:
        table = rest.pop()
        yield table
        kinds = typing.get_type_hints(table).values()
        rest += [kind for kind in kinds if dataclasses.is_dataclass(kind) and kind is not Rules]


def numbers() -> Iterator[tuple[str, type, Any]]:
    """Name, int or float, and type of each field that holds numbers."""
    for table in tables():
        hints = typing.get_type_hints(table, include_extras=True)
        plain = typing.get_type_hints(table)
        for name, kind in hints.items():
            for number in (int, float):
                if number in parts_of(plain[name]):
                    yield f"{table.__name__}.{name}", number, kind


def parts_of(kind: Any) -> list[Any]:
    """The types that a type is made of; rules check themselves."""
    return [kind, *(part for each in typing.get_args(kind) for part in parts_of(each))]


def is_accepted(kind: Any, value: Any) -> bool:
    """Whether a field takes a value, or several of it."""
    adapter = pydantic.TypeAdapter(kind)
    for given in (value, [value], [value] * 2):
        try:
            adapter.validate_python(given)
        except pydantic.ValidationError:
            continue
        return True
    return False


def test_numbers_that_the_programs_cannot_hold_are_refused():
    fields = list(numbers())
    assert len(fields) > 180
    for name, number, kind in fields:
        for value in WHOLE if number is int else REAL:
            assert not is_accepted(kind, value), (name, value)
        if name.rpartition(".")[2] in BELOW_ONE:
            assert is_accepted(kind, 0.999) and not is_accepted(kind, 0.99999999), name
